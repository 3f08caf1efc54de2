//! Many at once: how many there may be, who stalls, who is cut off, and how everybody is sent away.

use std::time::Duration;

use futures::future::{join_all, try_join_all};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::harness::*;

const CONFIG: &str = "[[board]]\nid = \"points\"\ntitle = \"Points\"\n";

const TOP: &str = "subscription { leaderboardChanged(board: \"points\") { cause top { points } } }";

/// How many are a crowd: `TALLYBOARD_CROWD`, or as many as two busy cores can serve without optimisation.
fn crowd_size(usual: usize) -> usize {
    std::env::var("TALLYBOARD_CROWD").map_or(usual, |size| size.parse().unwrap())
}

/// So many sockets that have subscribed to `query` and got the full state.
async fn subscribers(address: &str, size: usize, query: &'static str) -> Vec<Wire> {
    let mut joining = JoinSet::new();
    let mut wires = Vec::new();
    for _ in 0..size {
        let address = address.to_owned();
        joining.spawn(async move {
            let mut wire = Wire::open(&address, json!({})).await;
            wire.send(subscribe("1", query)).await;
            wire.data("1").await;
            wire
        });
        if joining.len() == 50 {
            wires.push(joining.join_next().await.unwrap().unwrap());
        }
    }
    wires.extend(joining.join_all().await);
    wires
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_reading_is_dropped_and_costs_neither_the_others_nor_memory() {
    const TABLE: &str = "subscription { leaderboardChanged(board: \"points\", first: 500) {
        top { rank points user { id name } } } }";
    const TABLES: u64 = 20;
    const SEND_TIMEOUT: Duration = Duration::from_secs(5);
    let place = Place::new(&format!(
        "[live]\nping_seconds = 25\nsend_timeout_seconds = 5\n{CONFIG}"
    ));
    let server = Server::start(place.serve());
    let address = server.address().to_owned();
    fill(&server, 500).await;
    // Most follow the best ten, two the whole table; of those one stalls, whose socket shall fill up soon.
    let everybody = crowd_size(200) as u64;
    let mut others = subscribers(&address, crowd_size(200) - 2, TOP).await;
    others.extend(subscribers(&address, 1, TABLE).await);
    let mut points = 1_000_000;
    let mut round = async || {
        points += 1;
        let began = Instant::now();
        server
            .score("points", "leader", if points == 1_000_001 { points } else { 1 })
            .await;
        join_all(others.iter_mut().map(|wire| async move {
            while wire.data("1").await["leaderboardChanged"]["top"][0]["points"] != points {}
        }))
        .await;
        began.elapsed()
    };
    for _ in 0..5 {
        round().await;
    }
    let before = resident_kib(server.pid());

    let mut stalled = Wire::connect_narrowly(&address).await;
    stalled.init(json!({})).await;
    for id in 0..TABLES {
        stalled.send(subscribe(&id.to_string(), TABLE)).await;
    }
    crowd_becomes(&address, [everybody, everybody - 1 + TABLES, 2]).await;
    let (mut slowest, mut most, mut rounds) = (Duration::ZERO, before, 0);
    while live_figure(&address, "dropped_total").await == 0 {
        slowest = slowest.max(round().await);
        most = most.max(resident_kib(server.pid()));
        rounds += 1;
        assert!(rounds < 1000, "it is not dropped");
    }
    assert!(slowest < SEND_TIMEOUT, "the others waited {slowest:?}");
    assert!(rounds >= 5, "{rounds} rounds beside it");
    crowd_becomes(&address, [everybody - 1, everybody - 1, 2]).await;
    slowest = round().await;
    assert!(slowest < SEND_TIMEOUT, "the others waited {slowest:?}");
    // One socket's buffers are in there, and the allocator's own ways; not what the client did not take.
    assert!(
        most < before + 4 * 1024,
        "{before} KiB before, {most} KiB at most"
    );
    assert_eq!(live_figure(&address, "dropped_total").await, 1);
    drop(stalled);
    assert_eq!(server.end("TERM").code, Some(0));
}

/// Members with names, so that the board makes large messages.
async fn fill(server: &Server, members: usize) {
    let ids: Vec<usize> = (0..members).collect();
    for chunk in ids.chunks(50) {
        let profiles = chunk.iter().map(|n| {
            let name = format!("Number {n} of five hundred");
            format!("p{n}: setProfile(input: {{ userId: \"member-{n}\", name: \"{name}\" }}) {{ id }} ")
        });
        let scores = chunk.iter().map(|n| {
            format!("s{n}: submitScore(input: {{ board: \"points\", userId: \"member-{n}\", points: {n} }}) {{ outcome }} ")
        });
        let query: String = profiles.chain(scores).collect();
        let answer = server
            .ask(("X-Dev-Role", "SERVICE"), &format!("mutation {{ {query} }}"))
            .await;
        assert_eq!(answer.get("errors"), None, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_is_cut_off_at_once_leaves_nothing_also_when_nothing_happens() {
    let size = crowd_size(1000);
    // Nobody answers pings here; a slow machine needs the time.
    let app = spawn_app().with(|settings| settings.live.ping_seconds = 25).await;
    let address = app.address();
    let mut wires = subscribers(&address, size - 300, TOP).await;
    let other = "subscription { rankChanged(board: \"points\", userId: \"amy\") { cause } }";
    wires.extend(subscribers(&address, 300, other).await);
    assert_eq!(crowd(&address).await, [size as u64, size as u64, 2]);
    wires.into_iter().for_each(Wire::reset);
    crowd_becomes(&address, [0, 0, 0]).await;
    assert_eq!(
        live_figure(&address, "dropped_total").await,
        0,
        "they were not dropped, they left"
    );

    // Half a handshake, an acknowledged socket and the old protocol leave as little.
    let wire = Wire::connect(&address, Some("graphql-transport-ws")).await;
    let acknowledged = Wire::open(&address, json!({})).await;
    let mut old = Wire::connect(&address, Some("graphql-ws")).await;
    old.init(json!({})).await;
    old.send(json!({ "id": "1", "type": "start", "payload": { "query": TOP } }))
        .await;
    assert_eq!(old.answer().await["type"], "data");
    assert_eq!(crowd(&address).await, [3, 1, 0]);
    [wire, acknowledged, old].into_iter().for_each(Wire::reset);
    crowd_becomes(&address, [0, 0, 0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_sent_away_with_1001_one_after_another_and_the_process_ends_well() {
    let place = Place::new(&format!(
        "[server]\nshutdown_seconds = 8\n[live]\nping_seconds = 25\n{CONFIG}"
    ));
    let server = Server::start(place.serve());
    let address = server.address().to_owned();
    let mut wires = subscribers(&address, crowd_size(1000), TOP).await;
    let mut old = Wire::connect(&address, Some("graphql-ws")).await;
    old.init(json!({})).await;
    old.send(json!({ "id": "1", "type": "start", "payload": { "query": TOP } }))
        .await;
    assert_eq!(old.answer().await["type"], "data");
    wires.push(old);
    // Who has not said yet who asks is sent away like everybody.
    wires.push(Wire::connect(&address, Some("graphql-transport-ws")).await);
    let request = reqwest::Client::new().post(format!("http://{address}/graphql"));
    let request = request
        .header("Accept", "text/event-stream")
        .json(&json!({ "query": TOP }));
    let mut events = request.send().await.unwrap();
    let everybody = wires.len() as u64 + 1;
    crowd_becomes(&address, [everybody, everybody - 1, 1]).await;

    let began = Instant::now();
    let mut leaving = JoinSet::new();
    for mut wire in wires {
        leaving.spawn(async move {
            let (code, _) = wire.closed().await;
            (code, began.elapsed())
        });
    }
    let streamed = tokio::spawn(async move {
        let mut text = String::new();
        while let Some(chunk) = events.chunk().await.unwrap() {
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        text
    });
    let outcome = tokio::task::spawn_blocking(|| server.end("TERM")).await.unwrap();
    let ended = began.elapsed();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!outcome.stderr.contains("not done in time"), "{outcome:?}");
    assert!(ended < Duration::from_secs(8), "{ended:?}");

    let gone = leaving.join_all().await;
    assert!(gone.iter().all(|(code, _)| *code == 1001), "{gone:?}");
    let mut times: Vec<Duration> = gone.into_iter().map(|(_, at)| at).collect();
    times.sort();
    let (first, last) = (times[0], times[times.len() - 1]);
    assert!(
        last - first >= Duration::from_secs(2),
        "from {first:?} to {last:?}"
    );
    let crowded = times
        .windows(times.len() / 4)
        .map(|some| some[some.len() - 1] - some[0])
        .min();
    assert!(
        crowded > Some(Duration::from_millis(300)),
        "a quarter left within {crowded:?}"
    );
    let text = streamed.await.unwrap();
    assert!(
        text.contains("SNAPSHOT") && !text.contains("event: complete"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_socket_too_many_closes_with_1013_until_another_has_left() {
    let app = spawn_app().with(|settings| settings.live.max_sockets = 2).await;
    let first = Wire::open(&app.address(), json!({})).await;
    let _old = Wire::connect(&app.address(), Some("graphql-ws")).await;
    crowd_becomes(&app.address(), [2, 0, 0]).await;
    for protocol in ["graphql-transport-ws", "graphql-ws"] {
        let (code, reason) = Wire::connect(&app.address(), Some(protocol)).await.closed().await;
        assert_eq!(code, 1013, "{protocol}");
        assert!(reason.starts_with("Try again later: "), "{reason}");
    }
    drop(first);
    crowd_becomes(&app.address(), [1, 0, 0]).await;
    Wire::open(&app.address(), json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_subscription_too_many_on_a_socket_closes_it_with_1013() {
    let app = spawn_app()
        .with(|settings| settings.live.max_subscriptions = 2)
        .await;
    let mut wire = Wire::open(&app.address(), json!({})).await;
    for id in ["1", "2"] {
        wire.send(subscribe(id, TOP)).await;
        wire.data(id).await;
    }
    wire.send_together(&[json!({ "type": "complete", "id": "1" }), subscribe("3", TOP)])
        .await;
    wire.data("3").await;
    wire.send(subscribe("4", TOP)).await;
    let (code, reason) = wire.closed().await;
    assert_eq!(
        (code, &*reason),
        (1013, "Try again later: too many subscriptions on this socket")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_keeps_up_gets_every_state_as_a_change_while_others_come_and_go() {
    const STATES: &str = "subscription { leaderboardChanged(board: \"points\") {
        cause sinceVersion leaderboard { version } moves { to } } }";
    let place = Place::new(CONFIG);
    let server = Server::start(place.serve());
    let address = server.address().to_owned();
    server.score("points", "amy", 1).await;
    // More than a shard's worth, so that there are several.
    let wires = subscribers(&address, crowd_size(300), STATES).await;
    let last = watch::channel(None).0;
    let staying = wires.into_iter().map(|mut wire| {
        let mut last = last.subscribe();
        tokio::spawn(async move {
            let (mut seen, mut states) = (None, [0, 0]);
            while seen.is_none() || seen != *last.borrow() {
                let update = tokio::select! {
                    mut data = wire.data("1") => data["leaderboardChanged"].take(),
                    Ok(()) = last.changed() => continue,
                };
                let version = update["leaderboard"]["version"].as_i64();
                if update["cause"] == "CHANGED" {
                    assert!(
                        seen.is_none() || seen == update["sinceVersion"].as_i64(),
                        "{seen:?} {update}"
                    );
                } else {
                    assert_eq!(update["cause"], "RESYNCED", "{update}");
                    assert!(seen < version, "{seen:?} {update}");
                }
                states[usize::from(update["cause"] == "RESYNCED")] += 1;
                seen = version;
            }
            states
        })
    });
    let staying: Vec<_> = staying.collect();
    for round in 0..12 {
        let mut guests = subscribers(&address, 20, STATES).await;
        server.score("points", "bob", 10 + round).await;
        guests.split_off(10).into_iter().for_each(Wire::reset);
        for mut wire in guests {
            wire.send(json!({ "id": "1", "type": "complete" })).await;
        }
    }
    let mut guest = Wire::open(&address, json!({})).await;
    guest.send(subscribe("1", STATES)).await;
    guest.data("1").await;
    server.score("points", "cat", 1).await;
    let update = guest.data("1").await["leaderboardChanged"].take();
    assert_eq!(update["cause"], "CHANGED");
    last.send_replace(update["leaderboard"]["version"].as_i64());
    let states = try_join_all(staying).await.unwrap();
    let [changed, resynced] = states
        .iter()
        .fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]]);
    // Whoever a starved machine serves late has skipped a state and is told so; nobody here is slow by itself.
    assert!(changed > 10 * resynced, "{changed} changes, {resynced} resyncs");
    crowd_becomes(&address, [1, 1, 1]).await;
    assert_eq!(server.end("TERM").code, Some(0));
}
