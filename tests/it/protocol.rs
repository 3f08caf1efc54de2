//! graphql-transport-ws by raw frames: what is answered, and which close code follows from what.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::*;

const TOP: &str = "subscription { leaderboardChanged(board: \"points\") { cause top { points } } }";

/// A query that needs Redis, so that it takes a moment.
const READ: &str = "{ leaderboard(board: \"points\") { participants } }";

async fn connected(app: &TestApp) -> Wire {
    Wire::connect(&app.address(), Some("graphql-transport-ws")).await
}

async fn opened(app: &TestApp) -> Wire {
    Wire::open(&app.address(), json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_closes_with_4400() {
    let app = spawn_app().await;
    let texts = [
        "",
        "{",
        "null",
        "[]",
        "\"ping\"",
        "{}",
        r#"{"type":1}"#,
        r#"{"type":"hello"}"#,
        r#"{"type":"start","id":"1","payload":{"query":"{a}"}}"#,
        r#"{"type":"next","id":"1","payload":{}}"#,
        r#"{"type":"connection_ack"}"#,
        r#"{"type":"connection_init","payload":"amy"}"#,
        r#"{"type":"connection_init","payload":7}"#,
        r#"{"type":"connection_init","payload":["amy","ADMIN"]}"#,
        r#"{"type":"ping","payload":1}"#,
        r#"{"type":"pong","payload":"x"}"#,
        r#"{"type":"subscribe"}"#,
        r#"{"type":"subscribe","payload":{"query":"{a}"}}"#,
        r#"{"type":"subscribe","id":"","payload":{"query":"{a}"}}"#,
        r#"{"type":"subscribe","id":1,"payload":{"query":"{a}"}}"#,
        r#"{"type":"subscribe","id":"1"}"#,
        r#"{"type":"subscribe","id":"1","payload":null}"#,
        r#"{"type":"subscribe","id":"1","payload":"{a}"}"#,
        r#"{"type":"subscribe","id":"1","payload":{}}"#,
        r#"{"type":"subscribe","id":"1","payload":["{a}"]}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":1}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":"{a}","variables":"x"}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":"{a}","operationName":1}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":"{a}","extensions":[]}}"#,
        r#"{"type":"complete"}"#,
        r#"{"type":"complete","id":""}"#,
    ];
    let ping = r#"{"type":"ping"}"#;
    let mut cases: Vec<(String, Vec<u8>)> = texts
        .iter()
        .map(|text| ((*text).into(), frame(Kind::Text, text)))
        .collect();
    cases.push(("a binary frame".into(), frame(Kind::Binary, ping)));
    cases.push(("no UTF-8".into(), frame(Kind::Text, b"{\"type\":\"ping\xff\"}")));
    for (what, bytes) in cases {
        let mut wire = connected(&app).await;
        wire.write(bytes).await;
        let (code, reason) = wire.closed().await;
        assert_eq!(code, 4400, "{what}: {reason}");
        assert!(reason.starts_with("Invalid message: "), "{what}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_and_words_that_are_not_of_the_protocol_are_let_pass() {
    let app = spawn_app().await;
    let mut wire = connected(&app).await;
    wire.send(json!({ "type": "ping", "payload": null, "more": 1 }))
        .await;
    assert_eq!(wire.answer().await["type"], "pong");
    wire.init(Value::Null).await;
    let payload = json!({ "query": READ, "variables": null, "operationName": null, "extensions": null });
    wire.send(json!({ "id": "1", "type": "subscribe", "payload": payload }))
        .await;
    wire.data("1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_ask_before_saying_who_asks_closes_with_4401() {
    let app = spawn_app().await;
    for query in [TOP, READ, "{"] {
        let mut wire = connected(&app).await;
        wire.send(subscribe("1", query)).await;
        assert_eq!(wire.closed().await, (4401, "Unauthorized".into()), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_gets_4403_and_the_reason() {
    let app = spawn_app().await;
    for (claims, why) in [
        (json!({ "devUser": "a b" }), "no spaces"),
        (json!({ "devUser": "" }), "1 to 128"),
        (json!({ "devUser": 7 }), "expected a string"),
        (json!({ "devRole": "KING" }), "KING"),
        (json!({ "devRole": "USER" }), "needs a user"),
    ] {
        let mut wire = connected(&app).await;
        wire.send(json!({ "type": "connection_init", "payload": claims }))
            .await;
        let (code, reason) = wire.closed().await;
        assert_eq!(code, 4403, "{claims}: {reason}");
        assert!(
            reason.starts_with("Forbidden: ") && reason.contains(why),
            "{claims}: {reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_offers_no_protocol_that_is_spoken_here_gets_4406() {
    let app = spawn_app().await;
    for protocols in [None, Some("mqtt"), Some("mqtt, soap")] {
        let mut wire = Wire::connect(&app.address(), protocols).await;
        assert!(!wire.handshake.to_lowercase().contains("sec-websocket-protocol"));
        assert_eq!(wire.closed().await, (4406, "Subprotocol not acceptable".into()));
    }
    for protocols in ["graphql-ws, graphql-transport-ws", "mqtt,graphql-transport-ws"] {
        let mut wire = Wire::connect(&app.address(), Some(protocols)).await;
        let chosen = "\r\nsec-websocket-protocol: graphql-transport-ws\r\n";
        assert!(
            wire.handshake.to_lowercase().contains(chosen),
            "{}",
            wire.handshake
        );
        wire.init(json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_say_in_time_who_asks_gets_4408_however_much_it_pings() {
    let app = spawn_app()
        .with(|settings| settings.live.init_timeout_seconds = 1)
        .await;
    let began = Instant::now();
    let (mut silent, mut talking) = (connected(&app).await, connected(&app).await);
    let end = (4408, "Connection initialisation timeout".to_owned());
    let talk = async {
        loop {
            talking.send(json!({ "type": "ping" })).await;
            match talking.next().await {
                Came::Message(pong) => assert_eq!(pong["type"], "pong"),
                came => return assert_eq!(came, Came::Close(end.0, end.1.clone())),
            }
        }
    };
    let (closed, ()) = tokio::join!(silent.closed(), talk);
    assert_eq!(closed, end);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());

    let mut init = connected(&app).await;
    init.init(json!({})).await;
    let long_after = began.elapsed() + Duration::from_secs(2);
    eventually("what is acknowledged to stay", async || {
        began.elapsed() > long_after
    })
    .await;
    init.send(json!({ "type": "ping" })).await;
    assert_eq!(init.answer().await["type"], "pong");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_in_use_closes_with_4409() {
    let app = spawn_app().await;
    let end = (4409, "Subscriber for 1 already exists".to_owned());

    let mut wire = opened(&app).await;
    wire.send(subscribe("1", TOP)).await;
    wire.data("1").await;
    wire.send(subscribe("1", READ)).await;
    assert_eq!(wire.closed().await, end);

    let mut wire = opened(&app).await;
    wire.send_together(&[subscribe("1", TOP), subscribe("1", TOP)])
        .await;
    assert_eq!(wire.closed().await, end);

    let pid = app.running().redis_pid().unwrap();
    let mut wire = opened(&app).await;
    signal("STOP", pid);
    wire.send(subscribe("1", READ)).await;
    wire.send(json!({ "type": "ping" })).await;
    assert_eq!(wire.answer().await["type"], "pong");
    wire.send(subscribe("1", READ)).await;
    let closed = wire.closed().await;
    signal("CONT", pid);
    assert_eq!(closed, end, "while a query runs");
    crowd_becomes(&app.address(), [0, 0, 0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn to_open_twice_closes_with_4429() {
    let app = spawn_app().await;
    let init = json!({ "type": "connection_init" });
    let mut wire = opened(&app).await;
    wire.send(init.clone()).await;
    let end = (4429, "Too many initialisation requests".to_owned());
    assert_eq!(wire.closed().await, end);

    let mut wire = connected(&app).await;
    wire.send_together(&[init.clone(), init]).await;
    assert_eq!(wire.closed().await, end);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_closes_with_1009_and_the_largest_is_answered() {
    const MOST: usize = 1024;
    let app = spawn_app()
        .with(|settings| settings.live.max_message_bytes = MOST)
        .await;
    let ping = |size: usize| {
        let empty = json!({ "type": "ping", "payload": { "x": "" } }).to_string();
        empty.replace("\"\"", &format!("\"{}\"", "x".repeat(size - empty.len())))
    };
    let mut wire = opened(&app).await;
    wire.write(frame(Kind::Text, ping(MOST))).await;
    assert_eq!(wire.answer().await["type"], "pong");

    let halves = [
        part(Kind::Text, false, &ping(MOST + 1)[..MOST / 2]),
        part(Kind::Continuation, true, &ping(MOST + 1)[MOST / 2..]),
    ];
    for (what, bytes) in [
        ("one more byte", frame(Kind::Text, ping(MOST + 1))),
        ("in parts", halves.concat()),
        ("only said to come", head(Kind::Text, true, 1 << 40)),
    ] {
        let mut wire = opened(&app).await;
        wire.write(bytes).await;
        let (code, reason) = wire.closed().await;
        assert_eq!(
            (code, &*reason),
            (1009, "A message has at most 1024 bytes"),
            "{what}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_may_be_used_again_once_its_operation_is_over_and_unknown_ids_may_be_completed() {
    let app = spawn_app().await;
    let complete = |id: &str| json!({ "id": id, "type": "complete" });
    let mut wire = opened(&app).await;
    wire.send(complete("nobody's")).await;
    for _ in 0..3 {
        wire.send(subscribe("1", TOP)).await;
        wire.data("1").await;
        wire.send(complete("1")).await;
    }
    wire.send_together(&[subscribe("1", TOP), complete("1"), subscribe("1", READ)])
        .await;
    // Whatever the first may have said before it was completed, the second is answered and completed.
    loop {
        let message = wire.answer().await;
        if message["type"] == "complete" {
            break;
        }
        assert_eq!(
            (&message["id"], &message["type"]),
            (&json!("1"), &json!("next")),
            "{message}"
        );
    }
    for _ in 0..20 {
        wire.send(subscribe("1", READ)).await;
        wire.data("1").await;
        assert_eq!(wire.answer().await, complete("1"));
    }
    wire.send(complete("1")).await;
    wire.send(subscribe("1", "{ nothing }")).await;
    assert_eq!(wire.answer().await["type"], "error");
    wire.send(subscribe("1", READ)).await;
    wire.data("1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_is_answered_with_what_it_brought_also_before_anything_else() {
    let app = spawn_app().await;
    let mut wire = connected(&app).await;
    for init in [false, true] {
        if init {
            wire.init(json!({})).await;
        }
        wire.send(json!({ "type": "ping" })).await;
        assert_eq!(wire.answer().await, json!({ "type": "pong" }));
        let payload = json!({ "at": 1.5, "deep": [{ "ü": "\u{1F3C6} \"" }, null] });
        wire.send(json!({ "type": "ping", "payload": payload })).await;
        assert_eq!(wire.answer().await, json!({ "type": "pong", "payload": payload }));
        wire.send(json!({ "type": "pong", "payload": payload })).await;
        wire.write(frame(Kind::Ping, "anybody?")).await;
        assert_eq!(wire.next().await, Came::Pong("anybody?".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_no_ping_is_dropped_and_either_answer_will_do() {
    const ROUNDS: usize = 4;
    let app = spawn_app().with(|settings| settings.live.ping_seconds = 1).await;
    let began = Instant::now();
    let silent = async {
        let came = opened(&app).await.until_end().await;
        let round = [Came::Ping(vec![]), Came::Message(json!({ "type": "ping" }))];
        assert_eq!(came, round, "one round of pings, then the end");
        began.elapsed()
    };
    let by_frame = async {
        let mut wire = opened(&app).await;
        for _ in 0..ROUNDS {
            assert_eq!(wire.next().await, Came::Ping(vec![]));
            wire.write(frame(Kind::Pong, "")).await;
            assert_eq!(wire.next().await, Came::Message(json!({ "type": "ping" })));
        }
        began.elapsed()
    };
    let by_message = async {
        let mut wire = opened(&app).await;
        for _ in 0..ROUNDS {
            assert_eq!(wire.next().await, Came::Ping(vec![]));
            assert_eq!(wire.next().await, Came::Message(json!({ "type": "ping" })));
            wire.send(json!({ "type": "pong" })).await;
        }
        wire.send(subscribe("1", READ)).await;
        wire.data("1").await;
    };
    let (dropped, stayed, ()) = tokio::join!(silent, by_frame, by_message);
    assert!(
        dropped >= Duration::from_secs(2) && dropped < stayed,
        "{dropped:?} {stayed:?}"
    );
    assert!(stayed >= Duration::from_secs(ROUNDS as u64), "{stayed:?}");
    assert_eq!(live_figure(&app.address(), "dropped_total").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_is_answered_and_nothing_is_left_of_it() {
    let app = spawn_app().await;
    let mut wire = opened(&app).await;
    wire.send(subscribe("1", TOP)).await;
    wire.data("1").await;
    wire.write(frame(Kind::Close, 1000_u16.to_be_bytes())).await;
    assert_eq!(wire.until_end().await, [Came::Close(1000, String::new())]);
    crowd_becomes(&app.address(), [0, 0, 0]).await;
    assert_eq!(live_figure(&app.address(), "dropped_total").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_may_come_in_parts_with_pings_between_and_byte_by_byte() {
    let app = spawn_app().await;
    let mut wire = opened(&app).await;
    let text = subscribe("ü", READ).to_string();
    let (first, rest) = text.as_bytes().split_at(8);
    let (second, third) = rest.split_at(1); // in the middle of a letter
    let frames = [
        part(Kind::Text, false, first),
        frame(Kind::Ping, "between"),
        part(Kind::Continuation, false, second),
        part(Kind::Continuation, true, third),
    ];
    for byte in frames.concat() {
        wire.write([byte]).await;
    }
    assert_eq!(wire.next().await, Came::Pong("between".into()));
    assert_eq!(wire.data("ü").await["leaderboard"]["participants"], 0);
}
