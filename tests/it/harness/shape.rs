//! Whether an answer has the shape that the schema promises for its question: every selected key is there, null only
//! where it may be, and nothing else.

use std::collections::HashMap;
use std::sync::LazyLock;

use async_graphql_parser::types::{
    BaseType, DocumentOperations, ExecutableDocument, FieldDefinition, OperationType, Selection,
    SelectionSet, Type, TypeKind, TypeSystemDefinition,
};
use async_graphql_parser::{parse_query, parse_schema};
use serde_json::Value;

/// For each object type its fields' types.
static SCHEMA: LazyLock<HashMap<String, HashMap<String, Type>>> = LazyLock::new(|| {
    let document = parse_schema(tallyboard::graphql::sdl()).unwrap();
    let fields = |fields: &[async_graphql_parser::Positioned<FieldDefinition>]| {
        fields
            .iter()
            .map(|field| (field.node.name.node.to_string(), field.node.ty.node.clone()))
            .collect()
    };
    document
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            TypeSystemDefinition::Type(ty) => match &ty.node.kind {
                TypeKind::Object(object) => Some((ty.node.name.node.to_string(), fields(&object.fields))),
                _ => None,
            },
            _ => None,
        })
        .collect()
});

/// Panics where `answer` is not what `query` should have got.
pub fn check(query: &str, answer: &Value) {
    let Ok(document) = parse_query(query) else { return }; // tests of broken documents
    let Some(data) = answer.get("data") else {
        assert!(
            answer.get("errors").is_some(),
            "neither data nor errors: {answer}"
        );
        return;
    };
    if data.is_null() {
        assert!(
            answer.get("errors").is_some(),
            "data is null without an error: {answer}"
        );
        return;
    }
    let operation = match &document.operations {
        DocumentOperations::Single(operation) => operation,
        DocumentOperations::Multiple(operations) => operations.values().next().unwrap(),
    };
    let root = match operation.node.ty {
        OperationType::Query => "Query",
        OperationType::Mutation => "Mutation",
        OperationType::Subscription => "Subscription",
    };
    object(&document, root, &[&operation.node.selection_set.node], data, root);
}

fn object(document: &ExecutableDocument, ty: &str, sets: &[&SelectionSet], value: &Value, path: &str) {
    let fields = SCHEMA
        .get(ty)
        .unwrap_or_else(|| panic!("{path}: the schema has no object type {ty}"));
    let found = value
        .as_object()
        .unwrap_or_else(|| panic!("{path}: {value} is no object"));
    let mut selected: HashMap<String, (Type, Vec<&SelectionSet>)> = HashMap::new();
    for set in sets {
        collect(document, fields, set, &mut selected);
    }
    for (key, (ty, inner)) in &selected {
        let path = format!("{path}.{key}");
        let value = found
            .get(key)
            .unwrap_or_else(|| panic!("{path} was selected and is missing"));
        typed(document, ty, inner, value, &path);
    }
    for key in found.keys() {
        assert!(selected.contains_key(key), "{path}.{key} was not selected");
    }
}

fn collect<'d>(
    document: &'d ExecutableDocument,
    fields: &HashMap<String, Type>,
    set: &'d SelectionSet,
    selected: &mut HashMap<String, (Type, Vec<&'d SelectionSet>)>,
) {
    for selection in &set.items {
        match &selection.node {
            Selection::Field(field) => {
                let name = field.node.name.node.as_str();
                let ty = match name {
                    "__typename" => Type::new("String!").unwrap(),
                    _ => fields
                        .get(name)
                        .unwrap_or_else(|| panic!("no field {name}"))
                        .clone(),
                };
                let key = field.node.response_key().node.to_string();
                selected
                    .entry(key)
                    .or_insert_with(|| (ty, Vec::new()))
                    .1
                    .push(&field.node.selection_set.node);
            }
            Selection::InlineFragment(fragment) => {
                collect(document, fields, &fragment.node.selection_set.node, selected);
            }
            Selection::FragmentSpread(spread) => {
                let fragment = &document.fragments[&spread.node.fragment_name.node];
                collect(document, fields, &fragment.node.selection_set.node, selected);
            }
        }
    }
}

fn typed(document: &ExecutableDocument, ty: &Type, sets: &[&SelectionSet], value: &Value, path: &str) {
    if value.is_null() {
        assert!(ty.nullable, "{path} is null and its type is {ty}");
        return;
    }
    match &ty.base {
        BaseType::List(inner) => {
            let items = value
                .as_array()
                .unwrap_or_else(|| panic!("{path}: {value} is no list"));
            for (i, item) in items.iter().enumerate() {
                typed(document, inner, sets, item, &format!("{path}[{i}]"));
            }
        }
        BaseType::Named(name) if SCHEMA.contains_key(name.as_str()) => {
            object(document, name, sets, value, path)
        }
        BaseType::Named(_) => assert!(
            !value.is_object() && !value.is_array(),
            "{path}: {value} is no {ty}"
        ),
    }
}
