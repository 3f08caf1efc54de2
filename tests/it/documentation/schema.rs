//! Every part of the API is described, as whoever introspects it sees it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::access::declared;
use crate::harness::*;

const INTROSPECTION: &str = "{ __schema {
    types { name kind description fields { name description args { ...Argument } } inputFields { ...Argument }
        enumValues { name description } }
    directives { name description args { ...Argument } } } }
    fragment Argument on __InputValue { name description type { ...Type } }
    fragment Type on __Type { name ofType { name ofType { name ofType { name } } } }";

/// The fewest words that say something; the name of an enum's value says some of it.
const FEWEST: usize = 3;
const FEWEST_OF_VALUES: usize = 2;

/// Something that has a description, and where it stands.
struct Part {
    path: String,
    description: String,
    fewest: usize,
    /// The named type of an argument.
    argument: Option<String>,
}

impl Part {
    fn new(path: String, part: &Value, fewest: usize) -> Part {
        Part {
            path,
            description: part["description"].as_str().unwrap_or_default().to_owned(),
            fewest,
            argument: None,
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn name(part: &Value) -> &str {
    part["name"].as_str().unwrap()
}

fn arguments(path: &str, arguments: &Value, parts: &mut Vec<Part>) {
    for argument in list(arguments) {
        let mut kind = &argument["type"];
        while !kind["ofType"].is_null() {
            kind = &kind["ofType"];
        }
        let path = format!("{path}({}:)", name(argument));
        let mut part = Part::new(path, argument, FEWEST);
        part.argument = Some(name(kind).to_owned());
        parts.push(part);
    }
}

/// Everything that the schema has, but the part of it that GraphQL itself describes.
fn parts(schema: &Value) -> Vec<Part> {
    let mut parts = Vec::new();
    for ty in list(&schema["types"]).filter(|ty| !name(ty).starts_with("__")) {
        parts.push(Part::new(name(ty).to_owned(), ty, FEWEST));
        for field in list(&ty["fields"]) {
            let path = format!("{}.{}", name(ty), name(field));
            parts.push(Part::new(path.clone(), field, FEWEST));
            arguments(&path, &field["args"], &mut parts);
        }
        arguments(name(ty), &ty["inputFields"], &mut parts);
        for value in list(&ty["enumValues"]) {
            let path = format!("{}.{}", name(ty), name(value));
            parts.push(Part::new(path, value, FEWEST_OF_VALUES));
        }
    }
    for directive in list(&schema["directives"]) {
        let path = format!("@{}", name(directive));
        parts.push(Part::new(path.clone(), directive, FEWEST));
        if ["allowed", "shared"].contains(&name(directive)) {
            arguments(&path, &directive["args"], &mut parts);
        }
    }
    parts
}

async fn introspected() -> Vec<Part> {
    let app = spawn_app().await;
    let answer = app.anonymous().try_ask(INTROSPECTION, json!({})).await.unwrap();
    assert_eq!(answer.get("errors"), None, "{answer}");
    let parts = parts(&answer["data"]["__schema"]);
    assert!(parts.len() > 300, "only {} parts were seen", parts.len());
    parts
}

fn fail_over(wanting: Vec<String>) {
    assert!(wanting.is_empty(), "\n{}\n", wanting.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_field_argument_and_value_is_described_in_a_sentence() {
    let wanting = introspected().await.into_iter().filter(|part| {
        let words = part.description.split_whitespace().count();
        words < part.fewest || part.description.starts_with("Implement ")
    });
    fail_over(
        wanting
            .map(|part| {
                format!(
                    "{} is not described, or hardly: {:?}",
                    part.path, part.description
                )
            })
            .collect(),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_number_that_a_caller_gives_says_its_bounds() {
    let wanting = introspected().await.into_iter().filter(|part| {
        part.argument.as_deref() == Some("Int") && !part.description.contains(|c: char| c.is_ascii_digit())
    });
    fail_over(
        wanting
            .map(|part| format!("{} has no bounds: {:?}", part.path, part.description))
            .collect(),
    );
}

/// Which argument of which field names a user whom only a backend may choose: it is about the caller for all others.
fn names_another(path: &str, rules: &BTreeMap<String, (Option<String>, String)>) -> bool {
    let Some(owner) = path.strip_suffix("(userId:)") else {
        return false;
    };
    let Some((root, field)) = owner.split_once('.') else {
        return ["SubmitScoreInput", "ProfileInput"].contains(&owner);
    };
    let rule = rules.get(field).and_then(|(rule, _)| rule.as_deref());
    ["Query", "Mutation", "Subscription"].contains(&root) && rule == Some("OWNER")
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_only_a_backend_may_name_is_described_so() {
    let rules = declared();
    let parts = introspected().await;
    let named = parts.iter().filter(|part| names_another(&part.path, &rules));
    let (good, wanting): (Vec<_>, Vec<_>) =
        named.partition(|part| part.description.contains("only for SERVICE"));
    fail_over(
        wanting
            .iter()
            .map(|part| format!("{} does not say so: {:?}", part.path, part.description))
            .collect(),
    );
    assert!(good.len() >= 10, "only {} were seen", good.len());
}
