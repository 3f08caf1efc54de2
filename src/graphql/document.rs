//! What is asked of a document, before it is executed.
//!
//! Owns which of its operations is meant, and how large it is with its fragments spread out: a few lines of fragments that
//! spread others twice are more than any server can walk through.

use std::collections::HashMap;

use async_graphql::Name;
use async_graphql::parser::types::{ExecutableDocument, OperationDefinition, Selection, SelectionSet};

/// The most fields and fragments that a document may have, each counted as often as it is spread.
const MOST: usize = 10_000;

/// The operation that a request means; `None` if the document has none of that name, or several and no name is given.
pub fn chosen<'d>(document: &'d ExecutableDocument, name: Option<&str>) -> Option<&'d OperationDefinition> {
    let mut operations = document.operations.iter();
    let chosen = match name {
        None => operations.next().filter(|_| operations.next().is_none()),
        Some(name) => operations.find(|(known, _)| known.is_some_and(|known| known == name)),
    };
    chosen.map(|(_, operation)| &operation.node)
}

/// Whether a document can be walked through. Takes time for what is written, not for what that spreads to.
pub fn is_bearable(document: &ExecutableDocument) -> bool {
    let mut sizes = HashMap::new();
    let operations = document.operations.iter();
    let sets =
        operations.map(|(_, operation)| size(&operation.node.selection_set.node, document, &mut sizes));
    sets.fold(0, usize::saturating_add) <= MOST
}

/// `sizes` are those of the fragments that were seen; of one within itself, which validation refuses, none.
fn size<'d>(
    set: &'d SelectionSet,
    document: &'d ExecutableDocument,
    sizes: &mut HashMap<&'d Name, usize>,
) -> usize {
    let mut all: usize = 0;
    for item in &set.items {
        let inner = match &item.node {
            Selection::Field(field) => size(&field.node.selection_set.node, document, sizes),
            Selection::InlineFragment(inline) => size(&inline.node.selection_set.node, document, sizes),
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                match (sizes.get(name), document.fragments.get(name)) {
                    (Some(&known), _) => known,
                    (None, Some(fragment)) => {
                        sizes.insert(name, 0);
                        let spread = size(&fragment.node.selection_set.node, document, sizes);
                        sizes.insert(name, spread);
                        spread
                    }
                    (None, None) => 0,
                }
            }
        };
        all = all.saturating_add(inner).saturating_add(1);
    }
    all
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
        assert!(is_bearable(&doubling(5)));
        assert!(!is_bearable(&doubling(40)));
        assert!(is_bearable(
            &parse_query("{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }").unwrap()
        ));
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
