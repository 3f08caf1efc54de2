//! What an operator sees: metrics, readiness by name, logs that programs read.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::failures::spoil;
use crate::harness::*;

async fn get(app: &TestApp, path: &str) -> (StatusCode, String) {
    let response = reqwest::get(format!("http://{}{path}", app.address()))
        .await
        .unwrap();
    (response.status(), response.text().await.unwrap())
}

/// The value of a metric that is written exactly so, labels included.
async fn metric(app: &TestApp, name: &str) -> Option<f64> {
    let (_, page) = get(app, "/metrics").await;
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(|value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_what_they_are_and_what_came_of_them() {
    let app = spawn_app()
        .with(|settings| settings.rate.user_mutations = 2)
        .await;
    let amy = app.user("amy");
    amy.check_in().await;
    amy.check_in().await;
    amy.try_ask("mutation { checkIn { outcome } }", json!({}))
        .await
        .unwrap();
    amy.data("{ businessDay { date } }", json!({})).await;
    amy.refusal("{ nothing }", json!({})).await;
    amy.refusal("{ dayStats { active } }", json!({})).await;
    amy.try_ask("{", json!({})).await.unwrap();
    let mut wire = Wire::open(&app.address(), amy.claims()).await;
    wire.send(subscribe(
        "1",
        "subscription { leaderboardChanged(board: \"points\") { cause } }",
    ))
    .await;
    wire.data("1").await;
    wire.send(subscribe("2", "{ businessDay { date } }")).await;
    wire.data("2").await;
    for (operation, outcome, count) in [
        ("query", "OK", 2.0),
        ("query", "BAD_USER_INPUT", 1.0),
        ("query", "FORBIDDEN", 1.0),
        ("mutation", "OK", 2.0),
        ("mutation", "RATE_LIMITED", 1.0),
        ("subscription", "OK", 1.0),
        ("none", "BAD_USER_INPUT", 1.0),
    ] {
        let name =
            format!("tallyboard_requests_answered_total{{operation=\"{operation}\",outcome=\"{outcome}\"}}");
        assert_eq!(metric(&app, &name).await, Some(count), "{name}");
    }
    let duration = "tallyboard_requests_duration_seconds_count{operation=\"mutation\"}";
    assert_eq!(metric(&app, duration).await, Some(3.0));
    assert_eq!(metric(&app, "tallyboard_rate_limited_total").await, Some(1.0));
    let calls = metric(&app, "tallyboard_redis_call_seconds_count{script=\"check_in\"}").await;
    assert!(calls.is_some_and(|calls| calls >= 2.0), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_data_weighs_and_who_is_there_can_be_watched() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        for user in ["amy", "bob", "eve"] {
            app.service().score("points", user, 5).await;
        }
        app.user("amy").check_in().await;
        app.user("amy")
            .data("mutation { heartbeat { onlineCount } }", json!({}))
            .await;
        app.user("bob")
            .data("mutation { heartbeat { onlineCount } }", json!({}))
            .await;
        // Looked up some seconds after the start, and then seldom; by whoever has the lease.
        let mut release = redis::cmd("DEL");
        release.arg(
            (0..partitions)
                .map(|p| format!("tb:{{{p}}}:lease"))
                .collect::<Vec<_>>(),
        );
        release.exec_async(&mut app.redis().await).await.unwrap();
        let app = app.restarted(|_| {}).await;
        eventually("figures", async || {
            metric(&app, "tallyboard_known_users").await == Some(3.0)
        })
        .await;
        for (name, value) in [
            ("tallyboard_online", 2.0),
            ("tallyboard_check_ins_today", 1.0),
            ("tallyboard_active_today", 2.0),
            (
                "tallyboard_board_members{board=\"points\",span=\"ALL_TIME\"}",
                3.0,
            ),
            ("tallyboard_board_members{board=\"points\",span=\"DAY\"}", 3.0),
        ] {
            assert_eq!(metric(&app, name).await, Some(value), "{name}");
        }
        for name in [
            "tallyboard_board_size_bytes{board=\"points\",span=\"WEEK\"}",
            "tallyboard_bitmap_size_bytes{kind=\"day\"}",
            "tallyboard_bitmap_size_bytes{kind=\"active\"}",
            "tallyboard_bitmap_size_bytes{kind=\"year\"}",
            "tallyboard_keeper_turns_total",
        ] {
            let value = metric(&app, name).await;
            assert!(value.is_some_and(|value| value > 0.0), "{name}: {value:?}");
        }
        let last = metric(&app, "tallyboard_keeper_last_turn_seconds").await;
        assert_eq!(last, Some(app.clock.now().timestamp() as f64));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_names_what_is_needed_and_what_is_wrong_with_it() {
    let mut redis = OwnRedis::start().await;
    let url = redis.url();
    let app = spawn_app().with(|settings| settings.redis.url = url).await;
    let ready = async || {
        let (status, body) = get(&app, "/readyz").await;
        (status.as_u16(), serde_json::from_str::<Value>(&body).unwrap())
    };
    let good = json!({ "ready": true, "checks": { "redis": "ok", "subscriber": "ok" }, "troubles": [] });
    assert_eq!(ready().await, (200, good));
    redis.kill();
    eventually("the trouble to be known", async || {
        let (status, body) = ready().await;
        status == 503
            && body["checks"]["redis"] == "Redis cannot be reached"
            && body["checks"]["subscriber"] == "changes in Redis are not heard"
    })
    .await;
    // The process lives all the same.
    assert_eq!(get(&app, "/healthz").await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_may_be_json_and_say_which_request_a_line_belongs_to() {
    let place =
        Place::new("[log]\nformat = \"json\"\n[[board]]\nid = \"points\"\nperiods = [\"ALL_TIME\"]\n");
    let server = Server::start(place.serve());
    server.score("points", "amy", 5).await;
    spoil(&place).await;
    let request = reqwest::Client::new().post(format!("http://{}/graphql", server.address()));
    let request = request.header("X-Request-Id", "report-3");
    let query = "{ leaderboard(board: \"points\") { top(first: 3) { points } } }";
    request.json(&json!({ "query": query })).send().await.unwrap();
    let ended = server.end("TERM");
    let lines: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let fault = lines.iter().find(|line| line["level"] == "ERROR").unwrap();
    assert_eq!(fault["span"]["id"], "report-3", "{fault}");
    assert_eq!(fault["span"]["client"], "127.0.0.1");
    assert!(fault["cause"].as_str().unwrap().contains("WRONGTYPE"), "{fault}");

    place.configure("[log]\nlevel = \"error\"\n");
    let quiet = Server::start(place.serve());
    assert_eq!(quiet.end("TERM").stderr, "");
    place.configure("[log]\nlevel = \"a=b=c\"\n");
    let refused = run(&mut place.serve());
    assert!(
        refused.refusal().starts_with("log.level: \"a=b=c\" is no filter"),
        "{refused:?}"
    );
}

/// A collector of traces: what it was sent, as it came.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let got: Arc<Mutex<Vec<u8>>> = Arc::default();
    let keeps = got.clone();
    let take = post(async move |sent: Bytes| {
        keeps.lock().unwrap().extend_from_slice(&sent);
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/traces", take);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (format!("http://{address}"), got)
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_go_to_a_collector_and_join_those_of_who_asks() {
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let place = Place::new("");
    for variable in ["TALLYBOARD_LOG__OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] {
        let (url, got) = collector().await;
        let mut command = place.serve();
        let server = Server::start({
            command.env(variable, url);
            command
        });
        let request = reqwest::Client::new().post(format!("http://{}/graphql", server.address()));
        let request = request
            .header("X-Dev-User", "amy")
            .header("X-Request-Id", "report-4");
        let request = request.header("traceparent", format!("00-{trace}-b7ad6b7169203331-01"));
        let query = json!({ "query": "mutation { checkIn { outcome } }" });
        request.json(&query).send().await.unwrap();
        let ended = tokio::task::spawn_blocking(move || server.end("TERM"))
            .await
            .unwrap();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        // What was not sent yet is sent at the end.
        let sent = got.lock().unwrap().clone();
        let has = |part: &[u8]| sent.windows(part.len()).any(|here| here == part);
        for part in [
            "tallyboard",
            "request",
            "report-4",
            "operation",
            "mutation",
            "redis",
            "check_in",
        ] {
            assert!(
                has(part.as_bytes()),
                "{variable}: no {part} in {}",
                String::from_utf8_lossy(&sent)
            );
        }
        let id: Vec<u8> = (0..16)
            .map(|i| u8::from_str_radix(&trace[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        assert!(has(&id), "{variable}: another trace");
    }
}
