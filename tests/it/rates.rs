//! How much may be asked in a minute: counted by mutation however it is spelled and sent, told truly, felt by nobody else.

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tallyboard::config::Rate;

use crate::harness::*;

const NOW: &str = "2027-03-01T08:00:00Z";
const BEAT: &str = "mutation { heartbeat { nextWithinSeconds } }";
const NEW: &str = "application/graphql-response+json";

/// No limits but these.
fn unlimited() -> Rate {
    Rate {
        user_mutations: 0,
        user_operations: 0,
        address_mutations: 0,
        address_operations: 0,
        service_mutations: 0,
        service_operations: 0,
    }
}

async fn limited(rate: Rate) -> TestApp {
    let app = spawn_app().at(NOW);
    app.with(|settings| settings.rate = rate).await
}

/// Of an answer that was refused whole: after how many milliseconds the same is served.
#[track_caller]
fn wait_of(answer: &Value) -> i64 {
    assert_eq!(answer.get("data"), None, "{answer}");
    let error = &answer["errors"][0];
    assert_eq!(error["extensions"]["code"], "RATE_LIMITED", "{answer}");
    (error["extensions"]["retryAfter"].as_f64().unwrap() * 1000.0).round() as i64
}

fn aliases(count: usize) -> String {
    let fields: String = (0..count)
        .map(|i| format!("a{i}: heartbeat {{ nextWithinSeconds }} "))
        .collect();
    format!("mutation {{ {fields} }}")
}

async fn later(app: &TestApp, ms: i64) {
    app.clock
        .set(app.clock.now() + chrono::TimeDelta::milliseconds(ms));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_a_hundred_aliases_counts_and_a_document_is_served_whole_or_not_at_all() {
    let app = limited(Rate {
        user_mutations: 150,
        ..unlimited()
    })
    .await;
    let (amy, bob) = (app.user("amy"), app.user("bob"));
    amy.data(&aliases(100), json!({})).await;
    let wait = wait_of(&amy.try_ask(&aliases(100), json!({})).await.unwrap());
    assert_eq!(wait, 50 * 400, "50 are left, and one comes back in 400 ms");
    // What was refused has taken nothing.
    amy.data(&aliases(50), json!({})).await;
    wait_of(&amy.try_ask(BEAT, json!({})).await.unwrap());
    let root = "mutation { ...F ... { heartbeat { nextWithinSeconds } } }
        fragment F on Mutation { b: heartbeat { nextWithinSeconds } c: heartbeat { nextWithinSeconds } }";
    assert_eq!(wait_of(&amy.try_ask(root, json!({})).await.unwrap()), 3 * 400);
    // Others notice nothing, nor do questions count as changes.
    bob.data(&aliases(150), json!({})).await;
    amy.data("{ a: onlineCount b: onlineCount }", json!({})).await;
    app.service()
        .data(
            "mutation { heartbeat(userId: \"amy\") { nextWithinSeconds } }",
            json!({}),
        )
        .await;
    // More than there ever is must be asked for otherwise.
    let (code, message) = bob.refusal(&aliases(151), json!({})).await;
    assert_eq!(code, "BAD_USER_INPUT");
    assert!(message.contains("151 mutations, and 150 a minute"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_true_to_the_millisecond() {
    let app = limited(Rate {
        user_mutations: 7,
        ..unlimited()
    })
    .await;
    let amy = app.user("amy");
    for round in 0..5 {
        while amy
            .try_ask(BEAT, json!({}))
            .await
            .unwrap()
            .get("errors")
            .is_none()
        {}
        let wait = wait_of(&amy.try_ask(&aliases(3), json!({})).await.unwrap());
        later(&app, wait - 1).await;
        assert_eq!(
            wait_of(&amy.try_ask(&aliases(3), json!({})).await.unwrap()),
            1,
            "{round}"
        );
        later(&app, 1).await;
        amy.data(&aliases(3), json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_its_own_status_and_header() {
    let app = limited(Rate {
        user_mutations: 1,
        ..unlimited()
    })
    .await;
    let amy = app.user("amy");
    amy.data(BEAT, json!({})).await;
    later(&app, 500).await;
    for (accept, status) in [
        (NEW, StatusCode::TOO_MANY_REQUESTS),
        ("application/json", StatusCode::OK),
    ] {
        let request = amy.post(BEAT, json!({})).header("Accept", accept);
        let response = request.send().await.unwrap();
        assert_eq!(
            (response.status(), &response.headers()["retry-after"]),
            (status, &"60".parse().unwrap())
        );
        let answer: Value = response.json().await.unwrap();
        assert_eq!(wait_of(&answer), 59_500);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_count_each_of_their_requests() {
    let app = limited(Rate {
        user_mutations: 5,
        ..unlimited()
    })
    .await;
    let one = json!({ "query": BEAT });
    let request = app.http().post(app.url()).header("X-Dev-User", "amy");
    let answers: Vec<Value> = request
        .json(&vec![one; 10])
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(
        answers[..5].iter().all(|answer| answer.get("errors").is_none()),
        "{answers:?}"
    );
    answers[5..]
        .iter()
        .for_each(|answer| assert_eq!(wait_of(answer), 12_000));
    app.user("bob").data(BEAT, json!({})).await;
}

/// Asks for one mutation over a socket of its own; whether it was served.
async fn over_socket(app: &TestApp, protocol: &str, user: &str) -> bool {
    let (begin, answered) = match protocol {
        "graphql-ws" => ("start", "data"),
        _ => ("subscribe", "next"),
    };
    let mut wire = Wire::connect(&app.address(), Some(protocol)).await;
    wire.send(json!({ "type": "connection_init", "payload": { "devUser": user } }))
        .await;
    while wire.answer().await["type"] != "connection_ack" {}
    wire.send(json!({ "id": "1", "type": begin, "payload": { "query": BEAT } }))
        .await;
    loop {
        let message = wire.answer().await;
        let payload = &message["payload"];
        match message["type"].as_str().unwrap() {
            "ka" => {}
            kind if kind == answered && payload.get("errors").is_none() => return true,
            "error" if payload.is_array() => {
                wait_of(&json!({ "errors": payload }));
                return false;
            }
            // The old protocol has refusals among its answers.
            "data" => {
                assert_eq!(
                    payload["errors"][0]["extensions"]["code"], "RATE_LIMITED",
                    "{message}"
                );
                return false;
            }
            _ => panic!("{message}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_sockets_and_streams_share_one_allowance() {
    let app = limited(Rate {
        user_mutations: 12,
        ..unlimited()
    })
    .await;
    let served = |outcomes: Vec<bool>| outcomes.into_iter().filter(|served| *served).count();
    let sockets = (0..20).map(|_| over_socket(&app, "graphql-transport-ws", "amy"));
    assert_eq!(served(join_all(sockets).await), 12);
    let old = (0..20).map(|_| over_socket(&app, "graphql-ws", "bob"));
    assert_eq!(served(join_all(old).await), 12);
    let stream = async |user: &str| {
        let request = app
            .user(user)
            .post(BEAT, json!({}))
            .header("Accept", "text/event-stream");
        let events = request.send().await.unwrap().text().await.unwrap();
        assert!(
            events.contains("\"data\":{") != events.contains("RATE_LIMITED"),
            "{events}"
        );
        events.contains("\"data\":{")
    };
    assert_eq!(served(join_all((0..20).map(|_| stream("eve"))).await), 12);
    let posts = (0..50).map(|_| async { app.user("joe").try_ask(BEAT, json!({})).await.unwrap() });
    let answers = join_all(posts).await;
    assert_eq!(
        served(
            answers
                .iter()
                .map(|answer| answer.get("errors").is_none())
                .collect()
        ),
        12
    );
    // It does not matter where amy asks: she has spent what she had.
    wait_of(&app.user("amy").try_ask(BEAT, json!({})).await.unwrap());
    assert!(over_socket(&app, "graphql-transport-ws", "zed").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_subscriptions_count_by_operation() {
    let app = limited(Rate {
        user_operations: 4,
        ..unlimited()
    })
    .await;
    let amy = app.user("amy");
    let mut wire = Wire::open(&app.address(), amy.claims()).await;
    let query = "subscription { leaderboardChanged(board: \"points\") { cause } }";
    for id in ["1", "2"] {
        wire.send(subscribe(id, query)).await;
        wire.data(id).await;
    }
    amy.data("{ a: onlineCount b: onlineCount c: onlineCount }", json!({}))
        .await;
    // What cannot be executed is not for nothing.
    amy.refusal("{ nothing }", json!({})).await;
    wait_of(&amy.try_ask("{ onlineCount }", json!({})).await.unwrap());
    wait_of(&amy.try_ask("{", json!({})).await.unwrap());
    wire.send(subscribe("3", query)).await;
    wait_of(&json!({ "errors": wire.answer().await["payload"] }));
    // The subscriptions that go on are not cut, and updates cost nothing.
    for points in 1..20 {
        app.service().score("points", "bob", points).await;
        wire.data("1").await;
        wire.data("2").await;
    }
    amy.data(BEAT, json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_an_allowance_that_one_user_cannot_use_up() {
    let app = limited(Rate {
        user_mutations: 5,
        address_mutations: 8,
        ..unlimited()
    })
    .await;
    for _ in 0..30 {
        app.user("amy").try_ask(BEAT, json!({})).await.unwrap();
    }
    for user in ["bob", "eve", "joe"] {
        app.user(user).data(BEAT, json!({})).await;
    }
    assert_eq!(
        wait_of(&app.user("zed").try_ask(BEAT, json!({})).await.unwrap()),
        7_500
    );
    app.service()
        .data(
            "mutation { heartbeat(userId: \"zed\") { nextWithinSeconds } }",
            json!({}),
        )
        .await;
    later(&app, 7_500).await;
    app.user("zed").data(BEAT, json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_is_the_one_that_a_trusted_proxy_tells() {
    let app = spawn_app().guarded().at(NOW);
    let app = app.with(|settings| {
        settings.auth.jwt_secret = "a secret of the tests that is long enough".into();
        settings.server.trusted_proxies = vec!["127.0.0.0/8".into()];
        settings.rate = Rate {
            address_operations: 2,
            ..unlimited()
        };
    });
    let app = app.await;
    let ask = async |app: &TestApp, forwarded: &str| {
        let request = app.anonymous().post("{ __typename }", json!({}));
        let answer: Value = request
            .header("X-Forwarded-For", forwarded)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        answer.get("errors").is_none()
    };
    assert!(ask(&app, "198.51.100.1").await && ask(&app, "198.51.100.1").await);
    assert!(!ask(&app, "198.51.100.1").await);
    // What a client makes up stands before what the proxy says.
    assert!(!ask(&app, "192.0.2.1, 198.51.100.1").await);
    assert!(ask(&app, "198.51.100.2").await);
    // Without trust it is all one address, whatever it says.
    let app = app
        .restarted(|settings| settings.server.trusted_proxies = Vec::new())
        .await;
    assert!(ask(&app, "198.51.100.1").await && ask(&app, "198.51.100.2").await);
    assert!(!ask(&app, "198.51.100.3").await);
}
