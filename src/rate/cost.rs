//! What a request costs.
//!
//! Owns the counting of mutations at the root of a document. Pure.

use std::collections::HashMap;
use std::num::NonZeroU32;

use async_graphql::Name;
use async_graphql::parser::types::{
    ExecutableDocument, OperationDefinition, OperationType, Selection, SelectionSet,
};

/// What is taken from an allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// A query, a subscription, or what cannot be executed.
    Operation,
    /// So many mutations.
    Mutations(NonZeroU32),
}

impl Cost {
    /// What an operation of a document costs. Fields that `@skip` leaves out count as well: what is written is counted.
    pub fn of(document: &ExecutableDocument, operation: Option<&OperationDefinition>) -> Cost {
        let Some(operation) = operation.filter(|one| one.ty == OperationType::Mutation) else {
            return Cost::Operation;
        };
        let fields = at_root(&operation.selection_set.node, document, &mut HashMap::new());
        NonZeroU32::new(fields).map_or(Cost::Operation, Cost::Mutations)
    }

    pub(super) fn amount(self) -> NonZeroU32 {
        match self {
            Cost::Operation => NonZeroU32::MIN,
            Cost::Mutations(many) => many,
        }
    }
}

/// Takes time for what is written, not for what fragments spread it to; `known` are those that were counted.
fn at_root<'d>(
    set: &'d SelectionSet,
    document: &'d ExecutableDocument,
    known: &mut HashMap<&'d Name, u32>,
) -> u32 {
    let mut fields = 0_u32;
    for item in &set.items {
        fields = fields.saturating_add(match &item.node {
            Selection::Field(field) => u32::from(field.node.name.node != "__typename"),
            Selection::InlineFragment(inline) => at_root(&inline.node.selection_set.node, document, known),
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                match (known.get(name), document.fragments.get(name)) {
                    (Some(&counted), _) => counted,
                    (None, None) => 0,
                    (None, Some(fragment)) => {
                        known.insert(name, 0); // within itself, which validation refuses, it is nothing
                        let counted = at_root(&fragment.node.selection_set.node, document, known);
                        known.insert(name, counted);
                        counted
                    }
                }
            }
        });
    }
    fields
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;
    use crate::graphql::document::chosen;

    fn of(text: &str, name: Option<&str>) -> Cost {
        let document = parse_query(text).unwrap();
        Cost::of(&document, chosen(&document, name))
    }

    #[test]
    fn each_mutation_counts_however_it_is_spelled() {
        let mutations = |many| Cost::Mutations(NonZeroU32::new(many).unwrap());
        for (text, name, cost) in [
            ("{ a b c }", None, Cost::Operation),
            ("subscription { a }", None, Cost::Operation),
            ("mutation { __typename }", None, Cost::Operation),
            ("mutation { a }", None, mutations(1)),
            ("mutation { a { x y z } b: a a }", None, mutations(3)),
            (
                "mutation { a ... { b } ... on Mutation { c d } __typename }",
                None,
                mutations(4),
            ),
            (
                "mutation { ...F a ...F } fragment F on Mutation { b c @skip(if: true) }",
                None,
                mutations(5),
            ),
            ("query A { a } mutation B { a b }", Some("A"), Cost::Operation),
            ("query A { a } mutation B { a b }", Some("B"), mutations(2)),
            ("query A { a } mutation B { a b }", None, Cost::Operation),
            (
                "mutation { ...F } fragment F on Mutation { a ...F }",
                None,
                mutations(1),
            ),
        ] {
            assert_eq!(of(text, name), cost, "{text}");
        }
    }

    #[test]
    fn fragments_that_double_are_counted_without_walking_through_them() {
        let fragments: String = (0..100)
            .map(|i| {
                format!(
                    "fragment F{i} on Mutation {{ ...F{next} ...F{next} }} ",
                    next = i + 1
                )
            })
            .collect();
        let text = format!("mutation {{ ...F0 }} {fragments} fragment F100 on Mutation {{ a }}");
        let cost = of(&text, None);
        assert_eq!(cost.amount().get(), u32::MAX);
    }
}
