//! The one field at the root of a subscription.
//!
//! Owns three rules of the GraphQL specification that async-graphql 7 leaves out: fragments at the root count as what they
//! spread (it answers nothing for them), there is exactly one root field (it would merge the streams of several), and
//! `__typename`, which some clients add by themselves, may stand beside it (it would answer that with an error).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_graphql::extensions::{
    Extension, ExtensionContext, ExtensionFactory, NextParseQuery, NextPrepareRequest, NextSubscribe,
};
use async_graphql::futures_util::stream::BoxStream;
use async_graphql::parser::types::{
    Directive, DocumentOperations, ExecutableDocument, FragmentDefinition, OperationType, Selection,
    SelectionSet,
};
use async_graphql::{Name, Positioned, Request, Response, ServerError, ServerResult, Value, Variables};
use futures::StreamExt;

/// The root's type.
const ROOT: &str = "Subscription";

/// Deeper fragments within fragments than this are left to validation, which refuses circles.
const DEEPEST: usize = 32;

/// Spreads fragments at the root of subscriptions, and counts the fields there.
pub struct OneRootField;

impl ExtensionFactory for OneRootField {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(OfRequest::default())
    }
}

/// What one request asked for besides its field.
#[derive(Default)]
struct OfRequest(Arc<Mutex<Besides>>);

#[derive(Default)]
struct Besides {
    operation: Option<String>,
    /// The keys of `__typename`.
    typenames: Vec<Name>,
}

#[async_graphql::async_trait::async_trait]
impl Extension for OfRequest {
    async fn prepare_request(
        &self,
        ctx: &ExtensionContext<'_>,
        request: Request,
        next: NextPrepareRequest<'_>,
    ) -> ServerResult<Request> {
        let request = next.run(ctx, request).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).operation = request.operation_name.clone();
        Ok(request)
    }

    async fn parse_query(
        &self,
        ctx: &ExtensionContext<'_>,
        query: &str,
        variables: &Variables,
        next: NextParseQuery<'_>,
    ) -> ServerResult<ExecutableDocument> {
        let mut document = next.run(ctx, query, variables).await?;
        let mut besides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        besides.typenames = spread(&mut document, besides.operation.as_deref())?;
        Ok(document)
    }

    fn subscribe<'s>(
        &self,
        ctx: &ExtensionContext<'_>,
        stream: BoxStream<'s, Response>,
        next: NextSubscribe<'_>,
    ) -> BoxStream<'s, Response> {
        let besides = self.0.clone();
        let name_the_root = move |mut response: Response| {
            if let Value::Object(fields) = &mut response.data {
                let besides = besides.lock().unwrap_or_else(PoisonError::into_inner);
                fields.extend(
                    besides
                        .typenames
                        .iter()
                        .map(|key| (key.clone(), Value::from(ROOT))),
                );
            }
            response
        };
        next.run(ctx, stream).map(name_the_root).boxed()
    }
}

/// Leaves the one field at the root of the subscription that is meant, and no fragment; answers with the keys of
/// `__typename` that stood beside it.
fn spread(document: &mut ExecutableDocument, name: Option<&str>) -> ServerResult<Vec<Name>> {
    let operation = match &mut document.operations {
        DocumentOperations::Single(operation) => Some(operation),
        DocumentOperations::Multiple(operations) => match name {
            Some(name) => operations.get_mut(name),
            None => operations.values_mut().next(),
        },
    };
    let Some(operation) = operation.filter(|operation| operation.node.ty == OperationType::Subscription)
    else {
        return Ok(Vec::new());
    };
    let (pos, set) = (operation.pos, &mut operation.node.selection_set.node);
    let mut used = Vec::new();
    let (mut flat, mut typenames) = (Vec::new(), Vec::new());
    flatten(
        std::mem::take(&mut set.items),
        &[],
        &document.fragments,
        &mut used,
        0,
        &mut flat,
    );
    let mut fields: Vec<Name> = Vec::new();
    for item in flat {
        if let Selection::Field(field) = &item.node {
            let key = &field.node.response_key().node;
            if field.node.name.node == "__typename" {
                typenames.push(key.clone());
                continue;
            }
            if !fields.contains(key) {
                fields.push(key.clone());
            }
        }
        set.items.push(item);
    }
    if fields.len() > 1 || set.items.is_empty() {
        return Err(ServerError::new(
            "a subscription has exactly one field at its root",
            Some(pos),
        ));
    }
    // What was only used at the root is not used any more, and validation refuses unused fragments.
    let still = still_used(document);
    document
        .fragments
        .retain(|name, _| !used.contains(name) || still.contains(name));
    Ok(typenames)
}

/// Puts what fragments spread in their place; their directives go to each of it.
fn flatten(
    items: Vec<Positioned<Selection>>,
    directives: &[Positioned<Directive>],
    fragments: &HashMap<Name, Positioned<FragmentDefinition>>,
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
