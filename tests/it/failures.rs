//! What callers see of failures that are not theirs: a code and an id, nothing of our insides, and no waiting.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tallyboard::keyspace::managed;

use crate::harness::*;

const INSIDES: [&str; 8] = [
    "WRONGTYPE",
    "redis",
    "Redis",
    "lua",
    "script",
    "EVALSHA",
    "tb:",
    "src/",
];

/// Puts something else where the board `points` should be.
pub async fn spoil(place: &Place) {
    let socket = managed::running_socket(&place.data()).unwrap();
    let redis = redis::Client::open(format!("unix://{}", socket.display())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let mut keys = redis::cmd("KEYS");
    keys.arg("tb:*:board:points:*");
    let keys: Vec<String> = keys.query_async(&mut redis).await.unwrap();
    for key in &keys {
        let mut set = redis::cmd("SET");
        set.arg(key).arg("no board");
        set.exec_async(&mut redis).await.unwrap();
    }
    assert!(!keys.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_ours_shows_an_id_and_the_log_has_that_id_and_the_cause() {
    let place = Place::new("[[board]]\nid = \"points\"\nperiods = [\"ALL_TIME\"]\n");
    let server = Server::start(place.serve());
    server.score("points", "amy", 5).await;
    spoil(&place).await;
    let url = format!("http://{}/graphql", server.address());
    let read = "{ leaderboard(board: \"points\") { top(first: 3) { points } } businessDay { date } }";
    let write =
        "mutation { submitScore(input: { board: \"points\", userId: \"amy\", points: 1 }) { outcome } }";
    for (id, query) in [("report-1", read), ("report-2", write)] {
        let request = reqwest::Client::new().post(&url).header("X-Dev-Role", "SERVICE");
        let request = request
            .header("X-Request-Id", id)
            .json(&json!({ "query": query }));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let error = &answer["errors"][0];
        assert_eq!(error["extensions"], json!({ "code": "INTERNAL" }), "{answer}");
        assert_eq!(error["message"], format!("internal error {id}"));
        for inside in INSIDES {
            assert!(!answer.to_string().contains(inside), "{inside}: {answer}");
        }
    }
    let mut wire = Wire::open(server.address(), json!({ "devRole": "SERVICE" })).await;
    wire.send(subscribe("1", write)).await;
    let answer = wire.answer().await;
    let message = answer["payload"]["errors"][0]["message"].as_str().unwrap();
    let of_socket = message.strip_prefix("internal error ").unwrap().to_owned();
    let handshake = wire.handshake.to_ascii_lowercase();
    assert!(
        handshake.contains(&format!("x-request-id: {of_socket}")),
        "{of_socket}: {handshake}"
    );
    drop(wire);

    let ended = server.end("TERM");
    for id in ["report-1", "report-2", &of_socket] {
        let mut lines = ended.stderr.lines().filter(|line| line.contains(id));
        assert!(
            lines.any(|line| line.contains("ERROR") && line.contains("WRONGTYPE")),
            "{id}: {ended:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_what_does_not_need_it_is_answered_and_the_rest_refused_at_once() {
    let mut redis = OwnRedis::start().await;
    let url = redis.url();
    let app = spawn_app().with(|settings| {
        settings.redis.url = url;
        settings.redis.timeout_ms = 1_000;
    });
    let app = app.await;
    let amy = app.user("amy");
    amy.check_in().await;
    redis.kill();
    let needless =
        "{ __typename businessDay { date } boards { id title periods } viewer { role user { id } } }";
    let needing = [
        ("{ onlineCount }", json!({})),
        ("{ streak { current } }", json!({})),
        ("{ rank(board: \"points\") { rank } }", json!({})),
        ("{ leaderboard(board: \"points\") { participants } }", json!({})),
        ("mutation { checkIn { outcome } }", json!({})),
        ("mutation { heartbeat { onlineCount } }", json!({})),
    ];
    for (query, variables) in needing {
        let begun = Instant::now();
        let (code, message) = amy.refusal(query, variables).await;
        assert!(
            begun.elapsed() < Duration::from_secs(1),
            "{query}: {:?}",
            begun.elapsed()
        );
        assert_eq!(code, "UNAVAILABLE", "{query}");
        assert!(
            INSIDES.iter().all(|inside| !message.contains(inside)),
            "{message}"
        );
        assert_eq!(amy.data(needless, json!({})).await["boards"][0]["id"], "points");
    }
    // Beside one that fails, what does not need it is answered too.
    let both = amy
        .ask("{ businessDay { date } streak { current } }", json!({}))
        .await;
    assert_eq!(
        both["data"],
        json!({ "businessDay": { "date": "2027-03-01" }, "streak": null })
    );
    redis.start_again().await;
    eventually("Redis to be back", async || {
        let answer = amy.ask("{ streak { total } }", json!({})).await;
        answer["data"]["streak"]["total"] == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_redis_holds_up_nobody_for_longer_than_its_time() {
    let redis = OwnRedis::start().await;
    let url = redis.url();
    let app = spawn_app().with(|settings| {
        settings.redis.url = url;
        settings.redis.timeout_ms = 500;
    });
    let app = app.await;
    let amy = app.user("amy");
    amy.check_in().await;
    signal("STOP", redis.pid());
    for _ in 0..5 {
        let begun = Instant::now();
        let (code, _) = amy.refusal("{ streak { current } }", json!({})).await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        assert_eq!(code, "UNAVAILABLE");
        amy.data("{ businessDay { date } boards { id } }", json!({}))
            .await;
    }
    signal("CONT", redis.pid());
}
