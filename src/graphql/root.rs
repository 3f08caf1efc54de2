//! The one field at the root of a subscription.
//!
//! Owns three rules of the GraphQL specification that async-graphql 7 leaves out: fragments at the root count as what they
//! spread (it answers nothing for them), there is exactly one root field (it would merge the streams of several), and
//! `__typename`, which some clients add by themselves, may stand beside it (it would answer that with an error).

use std::collections::HashMap;

use async_graphql::parser::types::{
    Directive, DocumentOperations, ExecutableDocument, FragmentDefinition, OperationType, Selection,
    SelectionSet,
};
use async_graphql::{Name, Positioned, Request, Response, ServerError, ServerResult, Value};

/// The root's type.
const ROOT: &str = "Subscription";

/// Deeper fragments within fragments than this are left to validation, which refuses circles.
const DEEPEST: usize = 32;

/// Brings a request for a subscription into the form that async-graphql executes rightly; answers with the keys of
/// `__typename` that are to be answered beside the field. Other requests stay as they are.
pub fn leave_one_field(request: &mut Request) -> ServerResult<Vec<Name>> {
    let name = request.operation_name.clone();
    let Ok(document) = request.parsed_query() else {
        return Ok(Vec::new()); // the schema says best what is wrong
    };
    let mut document = document.clone();
    let typenames = spread(&mut document, name.as_deref())?;
    request.set_parsed_query(document);
    Ok(typenames)
}

/// An answer with `__typename` beside its field.
pub fn with_typenames(mut answer: Response, keys: &[Name]) -> Response {
    if let Value::Object(fields) = &mut answer.data {
        fields.extend(keys.iter().map(|key| (key.clone(), Value::from(ROOT))));
    }
    answer
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
