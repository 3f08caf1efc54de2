//! What two subscribers must have in common to share an execution.
//!
//! Owns the canonical form of an operation: its fields with the variables put in, without fragments, directives, white space
//! and arguments that say what is the default anyway; aliases and the order of fields stay, since the answer shows them.
//! Pure. The operation must have been validated before.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::{self, Display, Formatter};

use async_graphql::parser::types::{
    Directive, ExecutableDocument, Field, OperationDefinition, OperationType, Selection, SelectionSet,
};
use async_graphql::{Name, Positioned, Value, Variables};

use crate::graphql::shared::Marks;

/// The longest canonical form: fragments that use fragments can make a short text very long.
const LONGEST: usize = 64 * 1024;

/// An operation as others may have asked it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    /// Equal for equal questions.
    pub text: String,
    /// Whether the answer is the same for everybody who may ask.
    pub shared: bool,
}

/// Why an operation has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoForm {
    /// It would be too long.
    #[error("the subscription selects too much")]
    TooLong,
    /// Two fields of different names or arguments have one key in the answer.
    #[error("two different fields would have the same key in the answer; name one of them otherwise")]
    Conflict,
}

/// The canonical form of `operation`.
pub fn canonical(
    document: &ExecutableDocument,
    operation: &OperationDefinition,
    variables: &Variables,
    marks: &Marks,
) -> Result<Canonical, NoForm> {
    let root = match operation.ty {
        OperationType::Query => "Query",
        OperationType::Mutation => "Mutation",
        OperationType::Subscription => "Subscription",
    };
    let mut writer = Writer {
        document,
        operation,
        variables,
        marks,
        conflict: false,
        out: Canonical {
            text: String::new(),
            shared: true,
        },
    };
    writer.selections(root, &[&operation.selection_set.node]);
    match writer.out {
        _ if writer.conflict => Err(NoForm::Conflict),
        out if out.text.len() > LONGEST => Err(NoForm::TooLong),
        out => Ok(out),
    }
}

struct Writer<'a> {
    document: &'a ExecutableDocument,
    operation: &'a OperationDefinition,
    variables: &'a Variables,
    marks: &'a Marks,
    conflict: bool,
    out: Canonical,
}

impl<'a> Writer<'a> {
    fn selections(&mut self, ty: &str, sets: &[&'a SelectionSet]) {
        let mut fields: Vec<(&Name, Vec<&'a Field>)> = Vec::new();
        let mut spread = Vec::new();
        sets.iter()
            .for_each(|set| self.collect(set, &mut fields, &mut spread));
        if fields.is_empty() {
            return;
        }
        self.out.text.push('{');
        for (place, (key, same)) in fields.into_iter().enumerate() {
            if self.out.text.len() > LONGEST {
                return;
            }
            if place > 0 {
                self.out.text.push(' ');
            }
            self.field(ty, key, &same);
        }
        self.out.text.push('}');
    }

    /// The fields of a set in their order, those under the same key together. A fragment that was spread already adds
    /// nothing; and would it be spread again, those that spread others twice would double at each step.
    fn collect(
        &self,
        set: &'a SelectionSet,
        fields: &mut Vec<(&'a Name, Vec<&'a Field>)>,
        spread: &mut Vec<&'a Name>,
    ) {
        for item in &set.items {
            match &item.node {
                Selection::Field(field) if self.is_left_out(&field.node.directives) => {}
                Selection::Field(field) => {
                    let key = &field.node.response_key().node;
                    match fields.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, same)) => same.push(&field.node),
                        None => fields.push((key, vec![&field.node])),
                    }
                }
                Selection::InlineFragment(inline) if self.is_left_out(&inline.node.directives) => {}
                Selection::InlineFragment(inline) => {
                    self.collect(&inline.node.selection_set.node, fields, spread);
                }
                Selection::FragmentSpread(of) if self.is_left_out(&of.node.directives) => {}
                Selection::FragmentSpread(of) => {
                    let name = &of.node.fragment_name.node;
                    if !spread.contains(&name)
                        && let Some(fragment) = self.document.fragments.get(name)
                    {
                        spread.push(name);
                        self.collect(&fragment.node.selection_set.node, fields, spread);
                    }
                }
            }
        }
    }

    fn field(&mut self, ty: &str, key: &Name, same: &[&'a Field]) {
        let Some(field) = same.first() else { return };
        let name = field.name.node.as_str();
        if key != name {
            self.out.text.push_str(key);
            self.out.text.push(':');
        }
        self.out.text.push_str(name);
        let known = self.marks.field(ty, name).cloned();
        let given = self.given(field);
        // Validation compares fields of one parent only. Here they may come from several that are merged.
        self.conflict |= same
            .iter()
            .any(|other| other.name.node != name || self.given(other) != given);
        self.arguments(&given, known.as_ref().map(|known| &known.defaults));
        if name == "__typename" {
            return;
        }
        self.out.shared &= known.as_ref().is_some_and(|known| {
            known.is_shared(|argument| given.get(argument).is_some_and(|value| *value != Value::Null))
        });
        let answers = known.map(|known| known.answers).unwrap_or_default();
        let sets: Vec<&SelectionSet> = same.iter().map(|field| &field.selection_set.node).collect();
        self.selections(&answers, &sets);
    }

    /// The arguments that a field was given, with the variables put in.
    fn given(&self, field: &Field) -> BTreeMap<String, Value> {
        let mut given = BTreeMap::new();
        for (name, value) in &field.arguments {
            let mut missing = false;
            let value = value.node.clone().into_const_with(|name| {
                let value = self.variable(&name);
                missing |= value.is_none();
                Ok::<_, Infallible>(value.unwrap_or_default())
            });
            // Where a variable that was not given is all of an argument, the argument was not given.
            if let Ok(value) = value
                && !(missing && value == Value::Null)
            {
                given.insert(name.node.to_string(), value);
            }
        }
        given
    }

    /// Writes the arguments, sorted, those left out that say the default.
    fn arguments(&mut self, given: &BTreeMap<String, Value>, defaults: Option<&BTreeMap<String, Value>>) {
        let default = |name: &String| defaults.and_then(|defaults| defaults.get(name));
        let said = given.iter().filter(|(name, value)| default(name) != Some(value));
        let said: Vec<String> = said
            .map(|(name, value)| format!("{name}:{}", Sorted(value)))
            .collect();
        if !said.is_empty() {
            self.out.text.push_str(&format!("({})", said.join(" ")));
        }
    }

    fn variable(&self, name: &Name) -> Option<Value> {
        self.variables.get(name).cloned().or_else(|| {
            let mut definitions = self.operation.variable_definitions.iter();
            let definition = definitions.find(|definition| definition.node.name.node == *name)?;
            definition
                .node
                .default_value
                .as_ref()
                .map(|default| default.node.clone())
        })
    }

    /// Whether `@skip` or `@include` leaves something out.
    fn is_left_out(&self, directives: &[Positioned<Directive>]) -> bool {
        directives.iter().any(|directive| {
            let value = directive
                .node
                .get_argument("if")
                .map(|argument| argument.node.clone());
            let value =
                value.and_then(|value| value.into_const_with(|name| self.variable(&name).ok_or(())).ok());
            let on = value == Some(Value::Boolean(true));
            match directive.node.name.node.as_str() {
                "skip" => on,
                "include" => !on,
                _ => false,
            }
        })
    }
}

/// A value as JSON with sorted keys. Names of enums are strings, since that is how variables bear them.
struct Sorted<'v>(&'v Value);

impl Display for Sorted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Enum(name) => write!(f, "{}", Value::from(name.as_str())),
            Value::List(items) => {
                f.write_str("[")?;
                items.iter().try_for_each(|item| write!(f, "{},", Sorted(item)))?;
                f.write_str("]")
            }
            Value::Object(fields) => {
                let sorted: BTreeMap<&str, &Value> = fields
                    .iter()
                    .map(|(name, value)| (name.as_str(), value))
                    .collect();
                f.write_str("{")?;
                sorted
                    .into_iter()
                    .try_for_each(|(name, value)| write!(f, "{name}:{},", Sorted(value)))?;
                f.write_str("}")
            }
            other => write!(f, "{other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use serde_json::json;

    use super::*;
    use crate::graphql::document::chosen;

    fn asked(query: &str, variables: serde_json::Value) -> Canonical {
        let document = parse_query(query).unwrap();
        form(&document, variables).unwrap()
    }

    fn form(document: &ExecutableDocument, variables: serde_json::Value) -> Result<Canonical, NoForm> {
        let operation = chosen(document, None).unwrap();
        let marks = Marks::read(&crate::graphql::sdl());
        canonical(document, operation, &Variables::from_json(variables), &marks)
    }

    #[test]
    fn the_same_question_has_one_form_however_it_is_written() {
        let plain = asked(
            "subscription { leaderboardChanged(board: \"points\", span: {period: DAY}) { cause top { rank user { id } } } }",
            json!({}),
        );
        assert!(plain.shared);
        let written = [
            ("subscription Named {leaderboardChanged(span:{period:DAY},board:\"points\"){cause,top{rank user{id}}}}", json!({})),
            (
                "subscription ($b: ID!, $s: BoardSpan) { leaderboardChanged(board: $b, span: $s) { cause top { rank user { id } } } }",
                json!({ "b": "points", "s": { "period": "DAY" } }),
            ),
            (
                "subscription ($p: BoardPeriod = DAY, $f: Int!) {
                   leaderboardChanged(board: \"points\", span: {period: $p}, first: $f) { ...U } }
                 fragment U on LeaderboardUpdate { cause ...T top { user { id } } }
                 fragment T on LeaderboardUpdate { top { rank } }",
                json!({ "f": 10 }),
            ),
            (
                "subscription ($on: Boolean!) { leaderboardChanged(board: \"points\", span: {period: DAY}) {
                   cause ... @include(if: $on) { top { rank user { id } } } version: sinceVersion @skip(if: true) } }",
                json!({ "on": true }),
            ),
        ];
        for (query, variables) in written {
            assert_eq!(asked(query, variables), plain, "{query}");
        }
    }

    #[test]
    fn what_the_answer_shows_otherwise_is_another_question() {
        let query = |selected: &str| {
            format!("subscription {{ leaderboardChanged(board: \"points\") {{ {selected} }} }}")
        };
        let plain = asked(&query("cause top { rank }"), json!({}));
        for other in [
            "top { rank } cause",
            "why: cause top { rank }",
            "cause top { place: rank }",
            "cause top { rank(method: DENSE) }",
            "cause top { rank points }",
            "cause",
        ] {
            assert_ne!(asked(&query(other), json!({})).text, plain.text, "{other}");
        }
        let spanned = |span: serde_json::Value| {
            let query =
                "subscription ($s: BoardSpan) { leaderboardChanged(board: \"points\", span: $s) { cause } }";
            asked(query, json!({ "s": span })).text
        };
        assert_ne!(
            spanned(json!({ "lastDays": 7 })),
            spanned(json!({ "lastDays": 30 }))
        );
        assert_ne!(
            spanned(json!({ "lastDays": 7 })),
            spanned(json!({ "period": "WEEK" }))
        );
    }

    #[test]
    fn what_depends_on_the_viewer_is_not_shared() {
        let shared = |selected: &str| {
            let query = format!("subscription {{ leaderboardChanged(board: \"points\") {{ {selected} }} }}");
            asked(&query, json!({})).shared
        };
        assert!(shared(
            "leaderboard { id __typename standing(userId: \"amy\") { rank } entries { nodes { points } } }"
        ));
        assert!(shared("moves { user { name avatarUrl } }"));
        assert!(!shared("leaderboard { standing { rank } }"));
        assert!(!shared("leaderboard { around { rank } }"));
        assert!(!shared("leaderboard { standing(userId: null) { rank } }"));
        let own = "subscription ($u: ID) { rankChanged(board: \"points\", userId: $u) { previousRank } }";
        assert!(!asked(own, json!({})).shared);
        assert!(asked(own, json!({ "u": "amy" })).shared);
    }

    #[test]
    fn two_fields_of_one_key_are_one_question_or_none() {
        let query = |selected: &str| {
            format!("subscription {{ leaderboardChanged(board: \"points\") {{ {selected} }} }}")
        };
        let merged = |selected: &str| form(&parse_query(query(selected)).unwrap(), json!({}));
        let one = "leaderboard { standing(userId: \"amy\") { rank points } }";
        let two = "leaderboard { standing(userId: \"amy\") { rank } } leaderboard { standing(userId: \"amy\") { points } }";
        assert_eq!(merged(two), merged(one));
        for conflict in [
            "leaderboard { standing(userId: \"amy\") { rank } } leaderboard { standing { points } }",
            "leaderboard { top(first: 1) { rank } } ... on LeaderboardUpdate { leaderboard { top(first: 3) { rank } } }",
            "leaderboard { x: id } leaderboard { x: version }",
        ] {
            assert_eq!(merged(conflict), Err(NoForm::Conflict), "{conflict}");
        }
    }

    #[test]
    fn what_is_not_known_is_told_apart_and_not_shared() {
        let marks = Marks::read("type Query { a: Int }");
        let form = |query: &str| {
            let document = parse_query(query).unwrap();
            let operation = chosen(&document, None).unwrap();
            canonical(&document, operation, &Variables::default(), &marks).unwrap()
        };
        let (one, other) = (form("subscription { x { a } }"), form("subscription { x { b } }"));
        assert!(!one.shared && one.text != other.text);
    }
}
