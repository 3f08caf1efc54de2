//! The root of a subscription: one field, through whatever fragments, conditions and variables it is asked for.

use serde_json::json;

use crate::harness::*;
use crate::operations::{ask, complete, errors, opened};

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_has_one_field_at_its_root() {
    let app = spawn_app().await;
    let mut wire = opened(&app).await;
    let field = "leaderboardChanged(board: \"points\") { cause }";
    for query in [
        format!("subscription {{ a: {field} b: {field} }}"),
        format!("subscription {{ {field} rankChanged(board: \"points\", userId: \"amy\") {{ cause }} }}"),
        format!("subscription {{ {field} ...More }} fragment More on Subscription {{ other: {field} }}"),
        format!("subscription {{ {field} ... {{ other: {field} }} }}"),
    ] {
        let errors = errors(&mut wire, json!({ "query": query })).await;
        let message = errors[0]["message"].as_str().unwrap();
        assert!(
            message.contains("exactly one field at its root"),
            "{query}: {message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fragments_at_the_root_are_as_good_as_the_field_itself() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let mut wire = opened(&app).await;
    let whole = json!({ "leaderboardChanged": { "cause": "SNAPSHOT", "top": [{ "points": 5 }] } });
    let named = "fragment F on Subscription { leaderboardChanged(board: \"points\") { cause ...T } }
        fragment T on LeaderboardUpdate { top { points } }";
    let field = "leaderboardChanged(board: \"points\") { cause top { points } }";
    for (query, variables) in [
        (format!("subscription {{ ...F }} {named}"), json!({})),
        (
            format!("subscription {{ ... on Subscription {{ {field} }} }}"),
            json!({}),
        ),
        (
            format!("subscription {{ ... {{ ... {{ ...F }} }} }} {named}"),
            json!({}),
        ),
        (
            format!("subscription {{ ...G }} fragment G on Subscription {{ ... {{ ...F }} }} {named}"),
            json!({}),
        ),
        (
            format!("subscription ($on: Boolean!) {{ ...F @include(if: $on) }} {named}"),
            json!({ "on": true }),
        ),
        (
            format!("subscription ($off: Boolean = false) {{ ... @skip(if: $off) {{ {field} }} }}"),
            json!({}),
        ),
        (
            "subscription ($b: ID!) { ...V } fragment V on Subscription {
                leaderboardChanged(board: $b) { cause top { points } } }"
                .into(),
            json!({ "b": "points" }),
        ),
        // The same field twice, as frameworks write it that compose fragments: one field with all that is selected.
        (
            format!("subscription {{ ...F leaderboardChanged(board: \"points\") {{ cause }} }} {named}"),
            json!({}),
        ),
        (
            "subscription { ...A ...B }
             fragment A on Subscription { leaderboardChanged(board: \"points\") { cause } }
             fragment B on Subscription { leaderboardChanged(board: \"points\") { top { points } } }"
                .into(),
            json!({}),
        ),
        (
            format!("subscription ($on: Boolean!, $off: Boolean!) {{
                ... @include(if: $on) {{ ...F @include(if: $on) @skip(if: $off)
                    leaderboardChanged(board: \"points\") @skip(if: $on) {{ sinceVersion }} ...N @include(if: $off) }} }} {named}
                fragment N on Subscription {{ leaderboardChanged(board: \"points\") {{ moves {{ from }} }} }}"),
            json!({ "on": true, "off": false }),
        ),
        (
            format!("subscription ($on: Boolean!) {{ leaderboardChanged(board: \"points\") @skip(if: $on) {{ sinceVersion }}
                ...F @include(if: $on) }} {named}"),
            json!({ "on": true }),
        ),
    ] {
        wire.send(ask("1", json!({ "query": query, "variables": variables })))
            .await;
        let message = wire.answer().await;
        assert_eq!(message["payload"]["data"], whole, "{query}: {message}");
        wire.send(complete("1")).await;
    }
    // With nothing left to follow there is nothing to come.
    let off = format!("subscription ($on: Boolean!) {{ ...F @include(if: $on) }} {named}");
    wire.send(ask("1", json!({ "query": off, "variables": { "on": false } })))
        .await;
    assert_eq!(wire.answer().await, complete("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn fragments_that_double_at_each_step_are_refused_at_the_root() {
    let app = spawn_app().await;
    let mut wire = opened(&app).await;
    let step = |n: usize| format!("fragment F{n} on Subscription {{ ...F{0} ...F{0} }} ", n + 1);
    let steps: String = (0..12).map(step).collect();
    let query = format!(
        "subscription {{ ...F0 }} {steps} fragment F12 on Subscription {{
            leaderboardChanged(board: \"points\") {{ cause }} }}"
    );
    let errors = errors(&mut wire, json!({ "query": query })).await;
    assert_eq!(
        errors[0]["message"],
        "the document has more than 1000 fields; ask in several requests"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_is_left_out_has_its_default_also_in_skip_and_include() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let mut wire = opened(&app).await;
    let query = "subscription ($b: ID! = \"points\", $yes: Boolean! = true, $no: Boolean = false, $p: BoardPeriod = WEEK) {
        leaderboardChanged(board: $b, span: { period: $p }) {
            a: cause @include(if: $yes) b: cause @include(if: $no)
            c: cause @skip(if: $yes) d: cause @skip(if: $no)
            ... @include(if: $yes) { top { points } } } }";
    let top = json!([{ "points": 5 }]);
    for (variables, update) in [
        (json!({}), json!({ "a": "SNAPSHOT", "d": "SNAPSHOT", "top": top })),
        (
            json!({ "yes": true, "no": true }),
            json!({ "a": "SNAPSHOT", "b": "SNAPSHOT", "top": top }),
        ),
        (
            json!({ "yes": false }),
            json!({ "c": "SNAPSHOT", "d": "SNAPSHOT" }),
        ),
    ] {
        wire.send(ask("1", json!({ "query": query, "variables": variables })))
            .await;
        assert_eq!(wire.data("1").await["leaderboardChanged"], update, "{variables}");
        wire.send(complete("1")).await;
    }
    // The shape check knows no directives.
    let query = "query ($yes: Boolean! = true) { viewer @include(if: $yes) { role } businessDay @skip(if: $yes) { date } }";
    let answer = app.anonymous().try_ask(query, json!({})).await.unwrap();
    assert_eq!(
        answer["data"],
        json!({ "viewer": { "role": "ANONYMOUS" } }),
        "{answer}"
    );
}
