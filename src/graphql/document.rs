//! What is asked of a document, before it is executed.
//!
//! Owns which of its operations is meant, and how much it asks with its fragments spread out: a few lines of fragments that
//! spread others twice are more than any server can walk through.

use std::collections::HashMap;

use async_graphql::Name;
use async_graphql::parser::types::{ExecutableDocument, OperationDefinition, Selection, SelectionSet};

/// The operation that a request means; `None` if the document has none of that name, or several and no name is given.
pub fn chosen<'d>(document: &'d ExecutableDocument, name: Option<&str>) -> Option<&'d OperationDefinition> {
    let mut operations = document.operations.iter();
    let chosen = match name {
        None => operations.next().filter(|_| operations.next().is_none()),
        Some(name) => operations.find(|(known, _)| known.is_some_and(|known| known == name)),
    };
    chosen.map(|(_, operation)| &operation.node)
}

/// How much a document asks, fragments counted as often as they are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Fields, and spreads of fragments.
    pub fields: usize,
    /// Fields with another name.
    pub aliases: usize,
    /// Directives.
    pub directives: usize,
    /// Questions about the schema.
    pub introspection: usize,
}

impl Amount {
    /// Of a document with all its operations. Takes time for what is written, not for what that spreads to.
    pub fn of(document: &ExecutableDocument) -> Amount {
        let mut known = HashMap::new();
        let mut all = Amount::default();
        for (_, operation) in document.operations.iter() {
            let operation = &operation.node;
            let variables = operation.variable_definitions.iter();
            all.directives += operation.directives.len();
            all.directives += variables
                .map(|variable| variable.node.directives.len())
                .sum::<usize>();
            all.add(of_set(&operation.selection_set.node, document, &mut known));
        }
        all
    }

    fn add(&mut self, other: Amount) {
        self.fields = self.fields.saturating_add(other.fields);
        self.aliases = self.aliases.saturating_add(other.aliases);
        self.directives = self.directives.saturating_add(other.directives);
        self.introspection = self.introspection.saturating_add(other.introspection);
    }
}

/// `known` are the amounts of the fragments that were seen; of one within itself, which validation refuses, nothing.
fn of_set<'d>(
    set: &'d SelectionSet,
    document: &'d ExecutableDocument,
    known: &mut HashMap<&'d Name, Amount>,
) -> Amount {
    let mut all = Amount::default();
    for item in &set.items {
        all.fields = all.fields.saturating_add(1);
        match &item.node {
            Selection::Field(field) => {
                all.aliases += usize::from(field.node.alias.is_some());
                all.directives += field.node.directives.len();
                all.introspection +=
                    usize::from(matches!(field.node.name.node.as_str(), "__schema" | "__type"));
                all.add(of_set(&field.node.selection_set.node, document, known));
            }
            Selection::InlineFragment(inline) => {
                all.directives += inline.node.directives.len();
                all.add(of_set(&inline.node.selection_set.node, document, known));
            }
            Selection::FragmentSpread(spread) => {
                all.directives += spread.node.directives.len();
                all.add(of_fragment(&spread.node.fragment_name.node, document, known));
            }
        }
    }
    all
}

fn of_fragment<'d>(
    name: &'d Name,
    document: &'d ExecutableDocument,
    known: &mut HashMap<&'d Name, Amount>,
) -> Amount {
    if let Some(&amount) = known.get(name) {
        return amount;
    }
    let Some(fragment) = document.fragments.get(name) else {
        return Amount::default();
    };
    known.insert(name, Amount::default());
    let mut amount = of_set(&fragment.node.selection_set.node, document, known);
    amount.directives += fragment.node.directives.len();
    known.insert(name, amount);
    amount
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    #[test]
    fn fragments_that_double_are_counted_without_walking_through_them() {
        let doubling = |many: usize| {
            let fragments: Vec<String> = (0..many)
                .map(|i| format!("fragment F{i} on Query {{ ...F{next} ...F{next} }}", next = i + 1))
                .collect();
            let text = format!(
                "{{ ...F0 }} {} fragment F{many} on Query {{ a }}",
                fragments.join(" ")
            );
            parse_query(text).unwrap()
        };
        assert_eq!(Amount::of(&doubling(5)).fields, 95);
        assert!(Amount::of(&doubling(40)).fields > 1 << 40);
        assert_eq!(Amount::of(&doubling(100)).fields, usize::MAX);
        let endless =
            parse_query("{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }").unwrap();
        assert_eq!(Amount::of(&endless).fields, 3);
    }

    #[test]
    fn aliases_and_directives_are_counted_wherever_they_stand() {
        let document = parse_query(
            "query A($v: Int @a) @b { x: y @c(d: 1) @e ...F @f ... @g { z: y } ...F }
             fragment F on Query @h { w: y { v: u @i } }",
        );
        let amount = Amount::of(&document.unwrap());
        assert_eq!((amount.aliases, amount.directives), (6, 10));
    }

    #[test]
    fn the_operation_that_is_meant_is_the_named_or_the_only_one() {
        let one = parse_query("query A { a }").unwrap();
        let two = parse_query("query A { a } query B { b }").unwrap();
        assert!(chosen(&one, None).is_some() && chosen(&one, Some("A")).is_some());
        assert!(chosen(&one, Some("B")).is_none() && chosen(&two, None).is_none());
        assert!(chosen(&two, Some("B")).is_some());
    }
}
