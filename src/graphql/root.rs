//! The one field at the root of a subscription.
//!
//! Owns two rules of the GraphQL specification that async-graphql 7 leaves out: fragments at the root count as what they
//! spread (it answers nothing for them), and there is exactly one root field (it would merge the streams of several).

use std::sync::Arc;

use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextParseQuery};
use async_graphql::parser::types::{
    Directive, DocumentOperations, ExecutableDocument, FragmentDefinition, OperationDefinition,
    OperationType, Selection, SelectionSet,
};
use async_graphql::{Name, Positioned, ServerError, ServerResult, Variables};

/// The root's type.
const ROOT: &str = "Subscription";

/// Deeper fragments within fragments than this are left to validation, which refuses circles.
const DEEPEST: usize = 32;

/// Spreads fragments at the root of subscriptions, and counts the fields there.
pub struct OneRootField;

impl ExtensionFactory for OneRootField {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(OneRootField)
    }
}

#[async_graphql::async_trait::async_trait]
impl Extension for OneRootField {
    async fn parse_query(
        &self,
        ctx: &ExtensionContext<'_>,
        query: &str,
        variables: &Variables,
        next: NextParseQuery<'_>,
    ) -> ServerResult<ExecutableDocument> {
        let mut document = next.run(ctx, query, variables).await?;
        spread(&mut document)?;
        Ok(document)
    }
}

fn spread(document: &mut ExecutableDocument) -> ServerResult<()> {
    let fragments = document.fragments.clone();
    let mut used = Vec::new();
    let operations: Vec<&mut Positioned<OperationDefinition>> = match &mut document.operations {
        DocumentOperations::Single(operation) => vec![operation],
        DocumentOperations::Multiple(operations) => operations.values_mut().collect(),
    };
    for operation in operations {
        if operation.node.ty != OperationType::Subscription {
            continue;
        }
        let pos = operation.pos;
        let set = &mut operation.node.selection_set.node;
        let items = std::mem::take(&mut set.items);
        flatten(items, &[], &fragments, &mut used, 0, &mut set.items);
        let mut keys: Vec<&Name> = Vec::new();
        for item in &set.items {
            if let Selection::Field(field) = &item.node
                && !keys.contains(&&field.node.response_key().node)
            {
                keys.push(&field.node.response_key().node);
            }
        }
        if keys.len() > 1 {
            return Err(ServerError::new(
                "a subscription has exactly one field at its root",
                Some(pos),
            ));
        }
    }
    // What was only used at a root is not used any more, and validation refuses unused fragments.
    let still = still_used(document);
    document
        .fragments
        .retain(|name, _| !used.contains(name) || still.contains(name));
    Ok(())
}

/// Puts what fragments spread in their place; their directives go to each of it.
fn flatten(
    items: Vec<Positioned<Selection>>,
    directives: &[Positioned<Directive>],
    fragments: &std::collections::HashMap<Name, Positioned<FragmentDefinition>>,
    used: &mut Vec<Name>,
    depth: usize,
    flat: &mut Vec<Positioned<Selection>>,
) {
    for mut item in items {
        let with = |own: &[Positioned<Directive>]| [directives, own].concat();
        match &mut item.node {
            Selection::Field(field) => {
                field.node.directives = with(&field.node.directives);
                flat.push(item);
            }
            Selection::InlineFragment(inline)
                if depth < DEEPEST
                    && inline
                        .node
                        .type_condition
                        .as_ref()
                        .is_none_or(|on| on.node.on.node == ROOT) =>
            {
                let all = with(&inline.node.directives);
                let inner = std::mem::take(&mut inline.node.selection_set.node.items);
                flatten(inner, &all, fragments, used, depth + 1, flat);
            }
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                match fragments.get(name) {
                    Some(fragment)
                        if depth < DEEPEST && fragment.node.type_condition.node.on.node == ROOT =>
                    {
                        used.push(name.clone());
                        let all = with(&spread.node.directives);
                        let inner = fragment.node.selection_set.node.items.clone();
                        flatten(inner, &all, fragments, used, depth + 1, flat);
                    }
                    _ => flat.push(item),
                }
            }
            Selection::InlineFragment(_) => flat.push(item),
        }
    }
}

/// The fragments that are used from operations, by whatever way.
fn still_used(document: &ExecutableDocument) -> Vec<Name> {
    fn walk(set: &SelectionSet, document: &ExecutableDocument, found: &mut Vec<Name>) {
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => walk(&field.node.selection_set.node, document, found),
                Selection::InlineFragment(inline) => walk(&inline.node.selection_set.node, document, found),
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    if !found.contains(name) {
                        found.push(name.clone());
                        if let Some(fragment) = document.fragments.get(name) {
                            walk(&fragment.node.selection_set.node, document, found);
                        }
                    }
                }
            }
        }
    }
    let mut found = Vec::new();
    for (_, operation) in document.operations.iter() {
        walk(&operation.node.selection_set.node, document, &mut found);
    }
    found
}
