//! What may be asked over a socket, and what comes of it: answers, errors, several operations at a time.

use serde_json::{Value, json};

use crate::harness::*;

const TOP: &str = "subscription { leaderboardChanged(board: \"points\") { cause top { points } } }";

const READ: &str = "{ leaderboard(board: \"points\") { participants } }";

pub async fn opened(app: &TestApp) -> Wire {
    Wire::open(&app.address(), json!({})).await
}

pub fn ask(id: &str, payload: Value) -> Value {
    json!({ "id": id, "type": "subscribe", "payload": payload })
}

pub fn complete(id: &str) -> Value {
    json!({ "id": id, "type": "complete" })
}

/// The errors of the operation `1`, which nothing may follow.
pub async fn errors(wire: &mut Wire, payload: Value) -> Value {
    wire.send(ask("1", payload.clone())).await;
    wire.send(json!({ "type": "ping" })).await;
    let mut message = wire.answer().await;
    if message["type"] == "pong" {
        message = wire.answer().await;
    } else {
        assert_eq!(wire.answer().await["type"], "pong");
    }
    assert_eq!(
        (&message["id"], &message["type"]),
        (&json!("1"), &json!("error")),
        "{payload}: {message}"
    );
    let errors = message["payload"].take();
    for error in errors.as_array().expect("a list of errors") {
        assert!(
            error["message"].is_string() && error["extensions"]["code"].is_string(),
            "{errors}"
        );
    }
    errors
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_executed_is_an_error_and_the_socket_stays() {
    let app = spawn_app().await;
    let mut wire = opened(&app).await;
    let of_board =
        |what: &str| format!("subscription {{ leaderboardChanged(board: \"points\") {{ {what} }} }}");
    for (query, code) in [
        ("", "BAD_USER_INPUT"),
        ("subscription {", "BAD_USER_INPUT"),
        ("subscription { nothing }", "BAD_USER_INPUT"),
        ("{ nothing }", "BAD_USER_INPUT"),
        ("mutation { nothing }", "BAD_USER_INPUT"),
        (&of_board("nothing"), "BAD_USER_INPUT"),
        (&of_board("top(first: 1) { points }"), "BAD_USER_INPUT"),
        (&of_board("...Missing"), "BAD_USER_INPUT"),
        (
            "subscription { leaderboardChanged(board: 1.5) { cause } }",
            "BAD_USER_INPUT",
        ),
        ("subscription { leaderboardChanged { cause } }", "BAD_USER_INPUT"),
        (
            "subscription ($b: ID!) { leaderboardChanged(board: $b) { cause } }",
            "BAD_USER_INPUT",
        ),
        (
            "subscription { leaderboardChanged(board: \"points\", first: 501) { cause } }",
            "BAD_USER_INPUT",
        ),
        (
            "subscription { leaderboardChanged(board: \"nowhere\") { cause } }",
            "NOT_FOUND",
        ),
        (
            "subscription { rankChanged(board: \"points\") { cause } }",
            "UNAUTHENTICATED",
        ),
    ] {
        let errors = errors(&mut wire, json!({ "query": query })).await;
        assert_eq!(errors[0]["extensions"]["code"], code, "{query}: {errors}");
    }
    wire.send(subscribe("1", TOP)).await;
    assert_eq!(wire.data("1").await["leaderboardChanged"]["cause"], "SNAPSHOT");
    crowd_becomes(&app.address(), [1, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_mutations_are_answered_once_and_completed() {
    let app = spawn_app().await;
    let mut wire = Wire::open(&app.address(), app.user("amy").claims()).await;
    wire.send(subscribe("m", "mutation { checkIn { outcome } }"))
        .await;
    assert_eq!(wire.data("m").await["checkIn"]["outcome"], "CHECKED_IN");
    assert_eq!(wire.answer().await, complete("m"));
    wire.send(subscribe("q", "{ viewer { user { id } } streak { current } }"))
        .await;
    let data = json!({ "viewer": { "user": { "id": "amy" } }, "streak": { "current": 1 } });
    assert_eq!(wire.data("q").await, data);
    assert_eq!(wire.answer().await, complete("q"));

    // A field that fails is null beside its error, which is an answer.
    wire.send(subscribe(
        "f",
        "{ streak(userId: \"zed\") { current } viewer { role } }",
    ))
    .await;
    let failed = wire.answer().await;
    assert_eq!(failed["type"], "next", "{failed}");
    assert_eq!(
        failed["payload"]["data"],
        json!({ "streak": null, "viewer": { "role": "USER" } })
    );
    assert_eq!(failed["payload"]["errors"][0]["extensions"]["code"], "FORBIDDEN");
    assert_eq!(wire.answer().await, complete("f"));
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_of_one_socket_go_on_beside_each_other() {
    let app = spawn_app().await;
    let mut wire = opened(&app).await;
    let rank = "subscription ($u: ID) { rankChanged(board: \"points\", userId: $u) { standing { points } } }";
    wire.send_together(&[
        subscribe("top", TOP),
        ask("amy", json!({ "query": rank, "variables": { "u": "amy" } })),
        subscribe("once", READ),
    ])
    .await;
    let mut seen: Vec<(String, Value)> = Vec::new();
    let mut gather = async |wire: &mut Wire, until: &[(&str, Value)]| {
        while !until
            .iter()
            .all(|(id, data)| seen.iter().any(|(seen, value)| seen == id && value == data))
        {
            let mut message = wire.answer().await;
            let id = message["id"].as_str().unwrap().to_owned();
            let data = match message["type"].as_str() {
                Some("next") => message["payload"]["data"].take(),
                kind => json!(kind),
            };
            seen.push((id, data));
        }
    };
    let top = |cause: &str, points: &[i64]| {
        let top: Vec<Value> = points.iter().map(|points| json!({ "points": points })).collect();
        json!({ "leaderboardChanged": { "cause": cause, "top": top } })
    };
    let standing = |points: Value| json!({ "rankChanged": { "standing": points } });
    gather(
        &mut wire,
        &[
            ("top", top("SNAPSHOT", &[])),
            ("amy", standing(Value::Null)),
            ("once", json!({ "leaderboard": { "participants": 0 } })),
            ("once", json!("complete")),
        ],
    )
    .await;
    app.service().score("points", "amy", 5).await;
    gather(
        &mut wire,
        &[
            ("top", top("CHANGED", &[5])),
            ("amy", standing(json!({ "points": 5 }))),
        ],
    )
    .await;
    // While they go on, others come and go.
    wire.send(subscribe("once", READ)).await;
    gather(
        &mut wire,
        &[("once", json!({ "leaderboard": { "participants": 1 } }))],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operation_name_picks_one_of_several() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let mut wire = opened(&app).await;
    let query = "query Count { leaderboard(board: \"points\") { participants } }
        subscription Top { leaderboardChanged(board: \"points\") { top { points } } }
        subscription Cause { leaderboardChanged(board: \"points\") { cause } }";
    for (name, data) in [
        (
            "Top",
            json!({ "leaderboardChanged": { "top": [{ "points": 5 }] } }),
        ),
        ("Cause", json!({ "leaderboardChanged": { "cause": "SNAPSHOT" } })),
        ("Count", json!({ "leaderboard": { "participants": 1 } })),
    ] {
        wire.send(ask(name, json!({ "query": query, "operationName": name })))
            .await;
        assert_eq!(wire.data(name).await, data);
    }
    assert_eq!(wire.answer().await, complete("Count"));
    for payload in [
        json!({ "query": query }),
        json!({ "query": query, "operationName": "Other" }),
        json!({ "query": query, "operationName": "" }),
    ] {
        errors(&mut wire, payload).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_has_completed_says_nothing_more() {
    let app = spawn_app().await;
    let mut wire = opened(&app).await;
    wire.send_together(&[subscribe("gone", TOP), subscribe("stays", TOP)])
        .await;
    for _ in 0..2 {
        assert_eq!(wire.answer().await["type"], "next");
    }
    wire.send(complete("gone")).await;
    crowd_becomes(&app.address(), [1, 1, 1]).await;
    for points in 1..=3 {
        app.service().score("points", "amy", 1).await;
        let top = wire.data("stays").await["leaderboardChanged"]["top"].take();
        assert_eq!(top, json!([{ "points": points }]));
    }

    // The same when both come in one packet. What is said before the client's word was read is no fault.
    wire.send_together(&[
        subscribe("never", TOP),
        complete("never"),
        subscribe("nor this", READ),
        complete("nor this"),
        json!({ "type": "ping" }),
    ])
    .await;
    while wire.answer().await["type"] != "pong" {}
    crowd_becomes(&app.address(), [1, 1, 1]).await;
    app.service().score("points", "amy", 1).await;
    let message = wire.answer().await;
    assert_eq!(message["id"], "stays", "{message}");
    assert_eq!(
        message["payload"]["data"]["leaderboardChanged"]["top"],
        json!([{ "points": 4 }])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_protocol_is_spoken_to_those_who_ask_for_it() {
    let app = spawn_app()
        .with(|settings| settings.live.max_subscriptions = 2)
        .await;
    let mut wire = Wire::connect(&app.address(), Some("graphql-ws")).await;
    wire.init(app.user("amy").claims()).await;
    let start = |id: &str, query: &str| json!({ "id": id, "type": "start", "payload": { "query": query } });
    wire.send(start("1", TOP)).await;
    let message = wire.answer().await;
    assert_eq!(
        (&message["id"], &message["type"]),
        (&json!("1"), &json!("data")),
        "{message}"
    );
    app.service().score("points", "amy", 5).await;
    let message = wire.answer().await;
    assert_eq!(
        message["payload"]["data"]["leaderboardChanged"]["top"],
        json!([{ "points": 5 }])
    );

    wire.send(start(
        "2",
        "subscription { rankChanged(board: \"points\") { standing { points } } }",
    ))
    .await;
    let message = wire.answer().await;
    assert_eq!(
        message["payload"]["data"]["rankChanged"]["standing"]["points"], 5,
        "{message}"
    );
    wire.send(start("3", TOP)).await;
    let refused = wire.answer().await;
    assert!(
        refused.to_string().contains("too many subscriptions"),
        "{refused}"
    );
    assert_eq!(wire.answer().await, complete("3"));
    crowd_becomes(&app.address(), [1, 2, 0]).await;

    for id in ["1", "2"] {
        wire.send(json!({ "id": id, "type": "stop" })).await;
        assert_eq!(wire.answer().await, complete(id));
    }
    crowd_becomes(&app.address(), [1, 0, 0]).await;

    let mut wire = Wire::connect(&app.address(), Some("graphql-ws")).await;
    wire.send(json!({ "type": "connection_init", "payload": { "devUser": "a b" } }))
        .await;
    let message = wire.answer().await;
    assert_eq!(message["type"], "connection_error", "{message}");
}
