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

/// The deepest that fields and spreads of fragments may be nested in each other. Whoever walks a document goes as deep,
/// and only so deep can a stack.
const DEEPEST: usize = 200;

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
    /// Whether something is nested too deeply to walk through, in a fragment that nobody spreads either.
    pub bottomless: bool,
    depth: usize,
}

impl Amount {
    /// Of a document with all its operations. Takes time for what is written, not for what that spreads to.
    pub fn of(document: &ExecutableDocument) -> Amount {
        let mut walk = Walk {
            document,
            known: HashMap::new(),
        };
        let mut all = Amount::default();
        for (_, operation) in document.operations.iter() {
            let operation = &operation.node;
            let variables = operation.variable_definitions.iter();
            all.add_directives(operation.directives.len());
            variables.for_each(|variable| all.add_directives(variable.node.directives.len()));
            all.add(walk.set(&operation.selection_set.node, DEEPEST));
        }
        for name in document.fragments.keys() {
            all.bottomless |= walk.fragment(name, DEEPEST).bottomless;
        }
        all
    }

    fn add(&mut self, other: Amount) {
        self.fields = self.fields.saturating_add(other.fields);
        self.aliases = self.aliases.saturating_add(other.aliases);
        self.directives = self.directives.saturating_add(other.directives);
        self.introspection = self.introspection.saturating_add(other.introspection);
        self.bottomless |= other.bottomless;
        self.depth = self.depth.max(other.depth);
    }

    fn add_directives(&mut self, many: usize) {
        self.directives = self.directives.saturating_add(many);
    }
}

struct Walk<'d> {
    document: &'d ExecutableDocument,
    /// The amounts of the fragments that were seen; of one within itself, which validation refuses, nothing.
    known: HashMap<&'d Name, Amount>,
}

impl<'d> Walk<'d> {
    /// Of a selection set, going down at most `left` levels.
    fn set(&mut self, set: &'d SelectionSet, left: usize) -> Amount {
        let mut all = Amount::default();
        let Some(left) = left.checked_sub(1) else {
            all.bottomless = true;
            return all;
        };
        for item in &set.items {
            let mut one = Amount {
                fields: 1,
                ..Amount::default()
            };
            match &item.node {
                Selection::Field(field) => {
                    let field = &field.node;
                    one.aliases = usize::from(field.alias.is_some());
                    one.introspection =
                        usize::from(matches!(field.name.node.as_str(), "__schema" | "__type"));
                    one.add_directives(field.directives.len());
                    one.add(self.set(&field.selection_set.node, left));
                }
                Selection::InlineFragment(inline) => {
                    one.add_directives(inline.node.directives.len());
                    one.add(self.set(&inline.node.selection_set.node, left));
                }
                Selection::FragmentSpread(spread) => {
                    one.add_directives(spread.node.directives.len());
                    one.add(self.fragment(&spread.node.fragment_name.node, left));
                }
            }
            all.add(one);
        }
        all.depth += 1;
        all.bottomless |= all.depth > DEEPEST;
        all
    }

    fn fragment(&mut self, name: &'d Name, left: usize) -> Amount {
        if let Some(&amount) = self.known.get(name) {
            return amount;
        }
        let Some(fragment) = self.document.fragments.get(name) else {
            return Amount::default();
        };
        self.known.insert(name, Amount::default());
        let mut amount = self.set(&fragment.node.selection_set.node, left);
        amount.add_directives(fragment.node.directives.len());
        self.known.insert(name, amount);
        amount
    }
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

    #[test]
    fn chains_of_fragments_end_somewhere_however_they_are_begun() {
        let chain = |many: usize, spread: &str| {
            let links = (0..many).map(|i| format!("fragment A{i} on Q {{ ...A{} }}", i + 1));
            let links: String = links.collect();
            let text = format!("{{ {spread} }} {links} fragment A{many} on Q {{ a }}");
            Amount::of(&parse_query(text).unwrap()).bottomless
        };
        for spread in ["...A0", "a", "...A50 ...A0"] {
            assert!(!chain(100, spread), "{spread}");
            assert!(chain(DEEPEST + 1, spread), "{spread}");
            assert!(chain(20_000, spread), "{spread}");
        }
    }

    #[test]
    fn what_doubles_adds_up_to_no_more_than_can_be_counted() {
        let links = (0..70).map(|i| format!("fragment A{i} on Q {{ ...A{0} ...A{0} }}", i + 1));
        let links: String = links.collect();
        let text = format!("{{ ...A0 x: a @d ...A0 }} {links} fragment A70 on Q {{ x: __type @d }}");
        let amount = Amount::of(&parse_query(text).unwrap());
        let most = usize::MAX;
        assert_eq!(
            (
                amount.fields,
                amount.aliases,
                amount.directives,
                amount.introspection
            ),
            (most, most, most, most)
        );
    }
}
