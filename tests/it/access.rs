//! Who may ask what: every field of the roots, by every role, about oneself and about another.
//!
//! What must come out is written here once more, by hand, for each rule that a field may declare; which rule a field
//! declares is read from the schema. A field without a rule, or without a sample below, fails.

use std::collections::BTreeMap;

use async_graphql_parser::parse_schema;
use async_graphql_parser::types::{TypeKind, TypeSystemDefinition};
use serde_json::{Value, json};

use crate::harness::*;

const SECRET: &str = "a secret of the tests that is long enough";
const ROLES: [(&str, Option<&str>); 6] = [
    ("ANONYMOUS", None),
    ("USER", Some("amy")),
    ("ANALYST", Some("ann")),
    ("ANALYST", None),
    ("SERVICE", None),
    ("ADMIN", None),
];

/// A question for each field; `$user` is whom it is about, where it is about somebody.
const SAMPLES: [(&str, &str, &str); 33] = [
    ("query", "viewer", "viewer { role }"),
    ("query", "user", "user(id: \"bob\") { id }"),
    ("query", "businessDay", "businessDay { date }"),
    ("query", "calendar", "calendar(userId: $user) { month }"),
    (
        "query",
        "checkIns",
        "checkIns(userId: $user, from: \"2027-02-01\", to: \"2027-02-02\") { date }",
    ),
    ("query", "checkInsKnownSince", "checkInsKnownSince(userId: $user)"),
    ("query", "streak", "streak(userId: $user) { current }"),
    ("query", "wallet", "wallet(userId: $user) { points }"),
    ("query", "boards", "boards { id }"),
    (
        "query",
        "leaderboard",
        "leaderboard(board: \"points\") { id around(userId: \"bob\") { rank } }",
    ),
    ("query", "rank", "rank(board: \"points\", userId: $user) { rank }"),
    ("query", "onlineCount", "onlineCount"),
    ("query", "online", "online { totalCount }"),
    ("query", "presence", "presence(userIds: [\"bob\"]) { online }"),
    ("query", "dayStats", "dayStats { active }"),
    (
        "query",
        "dayStatsRange",
        "dayStatsRange(from: \"2027-02-28\", to: \"2027-03-01\") { active }",
    ),
    (
        "query",
        "activeUsers",
        "activeUsers(from: \"2027-02-28\", to: \"2027-03-01\")",
    ),
    (
        "query",
        "retention",
        "retention(cohort: \"2027-02-01\", days: [1]) { size }",
    ),
    (
        "query",
        "retentionTable",
        "retentionTable(from: \"2027-02-01\", to: \"2027-02-02\", days: [1]) { size }",
    ),
    ("mutation", "checkIn", "checkIn(userId: $user) { outcome }"),
    (
        "mutation",
        "makeUpCheckIn",
        "makeUpCheckIn(userId: $user, date: \"2027-02-27\") { outcome }",
    ),
    (
        "mutation",
        "grantMakeUpCards",
        "grantMakeUpCards(userId: \"bob\", cards: 1) { outcome }",
    ),
    (
        "mutation",
        "adjustWallet",
        "adjustWallet(userId: \"bob\", points: 1) { outcome }",
    ),
    (
        "mutation",
        "submitScore",
        "submitScore(input: { board: \"points\", userId: $user, points: 1 }) { outcome }",
    ),
    (
        "mutation",
        "submitScores",
        "submitScores(inputs: [{ board: \"points\", userId: $user, points: 1 }]) { rejection { code } }",
    ),
    (
        "mutation",
        "removeFromBoard",
        "removeFromBoard(board: \"points\", userId: \"bob\") { removed }",
    ),
    (
        "mutation",
        "heartbeat",
        "heartbeat(userId: $user) { onlineCount }",
    ),
    ("mutation", "leave", "leave(userId: $user) { onlineCount }"),
    (
        "mutation",
        "setProfile",
        "setProfile(input: { userId: $user, name: \"B\" }) { id }",
    ),
    (
        "subscription",
        "leaderboardChanged",
        "leaderboardChanged(board: \"points\") { cause }",
    ),
    (
        "subscription",
        "rankChanged",
        "rankChanged(board: \"points\", userId: $user) { cause }",
    ),
    (
        "subscription",
        "onlineCountChanged",
        "onlineCountChanged { count }",
    ),
    ("subscription", "dayStatsChanged", "dayStatsChanged { active }"),
];

/// What is switched in the settings.
#[derive(Debug, Clone, Copy)]
struct Switches {
    public_reads: bool,
    user_writes: bool,
}

/// Whom a question is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum About {
    Self_,
    Another,
    NobodyNamed,
}

/// The code that must come out; `None`: an answer.
fn wanted(
    rule: &str,
    (role, user): (&str, Option<&str>),
    about: About,
    names: bool,
    switches: Switches,
) -> Option<&'static str> {
    let signed_in = role != "ANONYMOUS";
    let backend = matches!(role, "SERVICE" | "ADMIN");
    let own = about == About::Self_ || (about == About::NobodyNamed && user.is_some());
    let unauthenticated = (!signed_in).then_some("UNAUTHENTICATED");
    // A field that may be about the viewer needs one, if nobody is named.
    let viewerless = names && about == About::NobodyNamed && user.is_none();
    let nobody = viewerless.then_some(if signed_in {
        "BAD_USER_INPUT"
    } else {
        "UNAUTHENTICATED"
    });
    let forbidden = |may: bool| (!may).then_some("FORBIDDEN");
    match rule {
        "ANYBODY" => None,
        "READERS" if switches.public_reads => nobody,
        "READERS" | "SIGNED_IN" => unauthenticated.or(nobody),
        "OWNER" => unauthenticated.or(nobody).or(forbidden(backend || own)),
        "SCORERS" | "PROFILE_WRITERS" => unauthenticated
            .or(forbidden(backend || switches.user_writes))
            .or(nobody)
            .or(forbidden(backend || own)),
        "ANALYSTS" => unauthenticated.or(forbidden(backend || role == "ANALYST")),
        "BACKENDS" => unauthenticated.or(forbidden(backend)),
        "ADMINS" => unauthenticated.or(forbidden(role == "ADMIN")),
        rule => panic!("this test does not know what {rule} means"),
    }
}

/// The code that an answer bears.
fn code(errors: &Value) -> Option<String> {
    let code = |error: &Value| error["extensions"]["code"].as_str().unwrap_or("none").to_owned();
    errors.as_array().and_then(|errors| errors.first()).map(code)
}

async fn outcome(
    caller: &Caller<'_>,
    wire: &mut Wire,
    kind: &str,
    field: &str,
    query: &str,
    user: Option<&str>,
) -> Option<String> {
    if kind == "subscription" {
        let payload = json!({ "query": query, "variables": { "user": user } });
        wire.send(json!({ "id": field, "type": "subscribe", "payload": payload }))
            .await;
        let told = loop {
            let told = wire.answer().await;
            if told["id"] == field {
                break told;
            }
        };
        wire.send(json!({ "id": field, "type": "complete" })).await;
        return match told["type"].as_str() {
            Some("error") => code(&told["payload"]),
            _ => code(&told["payload"]["errors"]),
        };
    }
    let answer = caller.ask(query, json!({ "user": user })).await;
    // Of several scores each has an outcome of its own.
    let rejected = &answer["data"]["submitScores"][0]["rejection"]["code"];
    code(&answer["errors"]).or_else(|| rejected.as_str().map(str::to_owned))
}

/// For each field of the roots the rule that it declares, and its description on one line.
pub fn declared() -> BTreeMap<String, (Option<String>, String)> {
    let mut fields = BTreeMap::new();
    for definition in parse_schema(tallyboard::graphql::sdl()).unwrap().definitions {
        let TypeSystemDefinition::Type(ty) = definition else {
            continue;
        };
        let TypeKind::Object(root) = ty.node.kind else {
            continue;
        };
        if !matches!(ty.node.name.node.as_str(), "Query" | "Mutation" | "Subscription") {
            continue;
        }
        for field in root.fields {
            let mut directives = field.node.directives.iter();
            let rule = directives.find(|directive| directive.node.name.node == "allowed");
            let rule = rule.map(|rule| rule.node.get_argument("to").unwrap().node.to_string());
            let described = field.node.description.map(|text| text.node).unwrap_or_default();
            let described = described.split_whitespace().collect::<Vec<_>>().join(" ");
            let known = fields.insert(field.node.name.node.to_string(), (rule, described));
            assert!(
                known.is_none(),
                "{} is a field of two roots, and rules go by the name",
                field.node.name.node
            );
        }
    }
    fields
}

/// What each rule says of itself in the schema.
fn rules_in_words() -> BTreeMap<String, String> {
    let definitions = parse_schema(tallyboard::graphql::sdl()).unwrap().definitions;
    let values = definitions.into_iter().find_map(|definition| match definition {
        TypeSystemDefinition::Type(ty) if ty.node.name.node == "Askers" => match ty.node.kind {
            TypeKind::Enum(askers) => Some(askers.values),
            _ => None,
        },
        _ => None,
    });
    let values = values.unwrap().into_iter();
    values
        .map(|value| {
            (
                value.node.value.node.to_string(),
                value.node.description.unwrap().node,
            )
        })
        .collect()
}

#[test]
fn every_field_of_the_roots_declares_who_may_ask_it_and_says_so_in_words() {
    let words = rules_in_words();
    for (field, (rule, described)) in declared() {
        let rule = rule.unwrap_or_else(|| {
            panic!("{field} declares no rule: give it @allowed, and a sample in this file")
        });
        assert!(
            described.contains(&words[&rule]),
            "{field} is {rule}, and its description does not say {:?}: {described}",
            words[&rule]
        );
        let others = words
            .iter()
            .filter(|(other, said)| **other != rule && !words[&rule].contains(*said));
        for (other, said) in others {
            assert!(
                !described.contains(said),
                "{field} is {rule}, and its description speaks of {other}: {described}"
            );
        }
    }
}

#[test]
fn the_page_on_access_knows_every_rule_and_every_setting() {
    let page = include_str!("../../docs/auth.md");
    for rule in rules_in_words().keys() {
        assert!(
            page.contains(&format!("| `{rule}` |")),
            "{rule} is not in docs/auth.md"
        );
    }
    let settings = serde_json::to_value(tallyboard::config::Auth::default()).unwrap();
    for key in settings.as_object().unwrap().keys() {
        let named = [format!("`{key}`"), format!("`auth.{key}`")];
        assert!(
            named.iter().any(|key| page.contains(key)),
            "{key} is not in docs/auth.md"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_gets_from_every_field_what_its_rule_says_about_oneself_and_about_others() {
    let rules = declared();
    let samples: BTreeMap<_, _> = SAMPLES
        .iter()
        .map(|(kind, field, question)| (*field, (*kind, *question)))
        .collect();
    let missing: Vec<_> = rules
        .keys()
        .filter(|field| !samples.contains_key(field.as_str()))
        .collect();
    assert!(
        missing.is_empty() && samples.len() == rules.len(),
        "no sample for {missing:?}, or one for a field that is gone"
    );
    for (public_reads, user_writes) in [(true, false), (false, true)] {
        let switches = Switches {
            public_reads,
            user_writes,
        };
        let app = spawn_app().guarded().with(|settings| {
            settings.auth.jwt_secret = SECRET.into();
            settings.auth.public_reads = public_reads;
            settings.board[0].user_writes = user_writes;
            settings.profile.user_writes = user_writes;
        });
        let app = app.await;
        let signer = Signer::secret(SECRET);
        for (role, user) in ROLES {
            let claims = json!({ "sub": user, "role": role, "exp": app.clock.now().timestamp() + 60 });
            let caller = match role {
                "ANONYMOUS" => app.anonymous(),
                _ => app.bearer(signer.token(&claims)),
            };
            let mut wire = Wire::open(&app.address(), caller.claims()).await;
            for (field, (kind, question)) in &samples {
                let rule = rules[*field].0.as_deref().unwrap();
                let names = question.contains("$user");
                for (about, named) in [
                    (About::Self_, user),
                    (About::Another, Some("bob")),
                    (About::NobodyNamed, None),
                ] {
                    if about == About::Self_ && user.is_none() || about != About::Another && !names {
                        continue;
                    }
                    let variable = if names { "($user: ID)" } else { "" };
                    let query = format!("{kind} {variable} {{ {question} }}");
                    let found = outcome(&caller, &mut wire, kind, field, &query, named).await;
                    let wanted = wanted(rule, (role, user), about, names, switches);
                    assert_eq!(
                        found.as_deref(),
                        wanted,
                        "{field} ({rule}) by {role} {user:?} about {about:?} with {switches:?}"
                    );
                }
            }
        }
    }
}
