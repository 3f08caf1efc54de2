//! The one field at the root of a subscription.
//!
//! Owns four rules of the GraphQL specification that async-graphql 7 leaves out: fragments at the root count as what they
//! spread (it answers nothing for them), there is exactly one root field (it would merge the streams of several), what is
//! selected of it at several places comes together (it would follow the field once for each), and `__typename`, which
//! some clients add by themselves, may stand beside it (it would answer that with an error).

use std::collections::HashMap;

use async_graphql::parser::types::{
    Directive, DocumentOperations, ExecutableDocument, Field, FragmentDefinition, InlineFragment,
    OperationType, Selection, SelectionSet,
};
use async_graphql::{Name, Positioned, Request, Response, ServerError, ServerResult, Value, Variables};

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
    let typenames = spread(&mut document, name.as_deref(), &request.variables)?;
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
fn spread(
    document: &mut ExecutableDocument,
    name: Option<&str>,
    variables: &Variables,
) -> ServerResult<Vec<Name>> {
    let operation = match &mut document.operations {
        DocumentOperations::Single(operation) => Some(operation),
        DocumentOperations::Multiple(operations) => match name {
            Some(name) => operations.get_mut(name),
            None if operations.len() == 1 => operations.values_mut().next(),
            None => None,
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
    for mut item in flat {
        if let Selection::Field(field) = &mut item.node {
            let key = &field.node.response_key().node;
            if field.node.name.node == "__typename" {
                let mut conditions = field
                    .node
                    .directives
                    .iter()
                    .filter(|directive| is_condition(directive));
                if conditions.all(|condition| holds(condition, variables)) {
                    typenames.push(key.clone());
                }
                continue;
            }
            if !fields.contains(key) {
                fields.push(key.clone());
            }
            keep_one_condition(field, variables);
            let mut known = set.items.iter_mut();
            if let Some(same) = known.find_map(|known| same_field(known, &field.node)) {
                join(same, field.node.clone(), variables);
                continue;
            }
        }
        set.items.push(item);
    }
    if fields.len() > 1 || set.items.is_empty() || typenames.iter().any(|key| fields.contains(key)) {
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

/// Whether a directive is `@skip` or `@include`.
fn is_condition(directive: &Positioned<Directive>) -> bool {
    matches!(directive.node.name.node.as_str(), "skip" | "include")
}

/// Whether `@skip` or `@include` lets something stand.
fn holds(condition: &Positioned<Directive>, variables: &Variables) -> bool {
    let value = condition.node.get_argument("if");
    let value = value.and_then(|value| {
        let variable = |name: Name| variables.get(&name).cloned().ok_or(());
        value.node.clone().into_const_with(variable).ok()
    });
    (value == Some(Value::Boolean(true))) == (condition.node.name.node == "include")
}

/// Fragments may have brought a field several conditions, of which one may stand at it: one that does not hold, if there
/// is such. The others go inside, where they say the same.
fn keep_one_condition(field: &mut Positioned<Field>, variables: &Variables) {
    let directives = std::mem::take(&mut field.node.directives);
    let (mut conditions, others): (Vec<_>, Vec<_>) = directives.into_iter().partition(is_condition);
    field.node.directives = others;
    if conditions.is_empty() {
        return;
    }
    let decides = conditions
        .iter()
        .position(|condition| !holds(condition, variables));
    field
        .node
        .directives
        .push(conditions.remove(decides.unwrap_or(0)));
    for condition in conditions {
        put_inside(&mut field.node, vec![condition]);
    }
}

/// Puts what a field selects into a fragment with these directives.
fn put_inside(field: &mut Field, directives: Vec<Positioned<Directive>>) {
    let pos = field.selection_set.pos;
    let inner = std::mem::replace(
        &mut field.selection_set,
        Positioned::new(SelectionSet::default(), pos),
    );
    let fragment = InlineFragment {
        type_condition: None,
        directives,
        selection_set: inner,
    };
    let fragment = Selection::InlineFragment(Positioned::new(fragment, pos));
    field
        .selection_set
        .node
        .items
        .push(Positioned::new(fragment, pos));
}

/// The field of `known`, if `field` asks the same and may select more of it.
fn same_field<'k>(known: &'k mut Positioned<Selection>, field: &Field) -> Option<&'k mut Field> {
    let Selection::Field(known) = &mut known.node else {
        return None;
    };
    let known = &mut known.node;
    let has = |(name, value): &(Positioned<Name>, Positioned<_>)| {
        let mut arguments = field.arguments.iter();
        arguments.any(|(other, given)| other.node == name.node && given.node == value.node)
    };
    let same = known.response_key().node == field.response_key().node
        && known.name.node == field.name.node
        && known.arguments.len() == field.arguments.len()
        && known.arguments.iter().all(has);
    same.then_some(known)
}

/// Adds to `field` what `other` selects of the same field. Whichever stands decides that it stands.
fn join(field: &mut Field, mut other: Field, variables: &Variables) {
    let stands = |field: &Field| {
        let mut conditions = field
            .directives
            .iter()
            .filter(|directive| is_condition(directive));
        conditions.all(|condition| holds(condition, variables))
    };
    if !stands(field) && stands(&other) {
        std::mem::swap(field, &mut other);
    }
    let directives = std::mem::take(&mut other.directives);
    if !directives.is_empty() {
        put_inside(&mut other, directives);
    }
    let items = &mut field.selection_set.node.items;
    items.append(&mut other.selection_set.node.items);
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
