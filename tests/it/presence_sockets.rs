//! Sockets that count as sessions: on two nodes, refused, silent, reset, and when their server ends.

use serde_json::{Value, json};
use tallyboard::config::Settings;

use crate::harness::*;

async fn until_online(app: &TestApp, room: Option<&str>, wanted: u64) {
    eventually("the online count", async || {
        app.anonymous().online(room).await == wanted
    })
    .await;
}

/// How many sessions are known of all users.
async fn sessions(app: &TestApp) -> u32 {
    let mut redis = app.redis().await;
    let mut sessions = 0;
    for (key, _) in app.ttls("tb:*sessions:*").await {
        let mut count = redis::cmd("HLEN");
        count.arg(key);
        sessions += count.query_async::<u32>(&mut redis).await.unwrap();
    }
    sessions
}

async fn until_sessions(app: &TestApp, wanted: u32) {
    eventually("the sessions", async || sessions(app).await == wanted).await;
}

/// A client that answers nothing by itself, as amy in the lobby.
async fn silent(app: &TestApp, user: &str, place: Value) -> Wire {
    let mut claims = app.user(user).claims();
    claims["presence"] = place;
    Wire::open(&app.address(), claims).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_named_session_on_two_nodes_stays_until_both_sockets_have_gone() {
    let redis = OwnRedis::start().await;
    let over = |settings: &mut Settings| settings.redis.url = redis.url();
    let (one, other) = (spawn_app().with(over).await, spawn_app().with(over).await);
    let place = json!({ "room": "lobby", "session": "tab" });
    // The client has moved to another node, and the first one learns only later that its connection is dead.
    let amy = one.user("amy");
    let here = Socket::present(&amy, place.clone()).await;
    until_sessions(&one, 1).await;
    let amy = other.user("amy");
    let there = Socket::present(&amy, place).await;
    until_sessions(&one, 2).await;
    here.close().await;
    until_sessions(&one, 1).await;
    assert_eq!(one.anonymous().online(Some("lobby")).await, 1);
    assert_eq!(one.anonymous().online(None).await, 1);
    there.close().await;
    until_online(&one, Some("lobby"), 0).await;
    until_online(&one, None, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_was_refused_gets_the_place_that_another_leaves() {
    for (rooms, sessions) in [(1, 16), (16, 1)] {
        let app = spawn_app()
            .with(|settings| {
                settings.presence.max_rooms_per_user = rooms;
                settings.presence.max_sessions_per_user = sessions;
            })
            .await;
        let amy = app.user("amy");
        let first = Socket::present(&amy, json!({ "room": "a" })).await;
        until_online(&app, Some("a"), 1).await;
        let _second = Socket::present(&amy, json!({ "room": "b" })).await;
        let bob = app.user("bob"); // who comes later is told of later
        let _bob = Socket::present(&bob, json!({ "room": "c" })).await;
        until_online(&app, Some("c"), 1).await;
        assert_eq!(app.anonymous().online(Some("b")).await, 0, "refused");
        first.close().await; // the clock stands still: no other beat is due
        until_online(&app, Some("b"), 1).await;
        assert_eq!(app.anonymous().online(Some("a")).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_settling_tells_of_leaves_first() {
    let app = spawn_app()
        .with(|settings| settings.presence.max_rooms_per_user = 1)
        .await;
    let inner = &app.running().app;
    let amy = tallyboard::ids::UserId::parse("amy").unwrap();
    let place = |room: &str| {
        let asked = inner.attendance.asked(&json!({ "presence": { "room": room } }));
        asked.unwrap().unwrap()
    };
    for _ in 0..20 {
        let first = inner.attendance.take(amy.clone(), place("a"));
        inner.attendance.settle(inner).await.unwrap();
        let second = inner.attendance.take(amy.clone(), place("b"));
        drop(first);
        inner.attendance.settle(inner).await.unwrap();
        assert_eq!(app.anonymous().online(Some("b")).await, 1);
        drop(second);
        inner.attendance.settle(inner).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sockets_leave_makes_nobody_known_and_its_beat_marks_the_day() {
    let app = spawn_app().await;
    let inner = &app.running().app;
    let place = inner
        .attendance
        .asked(&json!({ "presence": { "room": "lobby" } }));
    let stranger = (
        tallyboard::ids::UserId::parse("zoe").unwrap(),
        place.unwrap().unwrap(),
    );
    inner
        .presence
        .leave_all(&[stranger], app.clock.now())
        .await
        .unwrap();
    let stats = "{ dayStats { active checkIns knownUsers } }";
    let known: Value = app.analyst().field(stats, json!({})).await;
    assert_eq!(known, json!({ "active": 0, "checkIns": 0, "knownUsers": 0 }));

    let amy = app.user("amy");
    let _socket = Socket::present(&amy, json!({})).await;
    until_online(&app, None, 1).await;
    let known: Value = app.analyst().field(stats, json!({})).await;
    assert_eq!(known, json!({ "active": 1, "checkIns": 0, "knownUsers": 1 }));
    // A day turns while the socket stays.
    app.set("2027-03-02T00:00:00Z");
    eventually("the next day's beat", async || {
        let stats: Value = app.analyst().field(stats, json!({})).await;
        stats["active"] == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_told_while_redis_was_away_is_told_later() {
    let redis = OwnRedis::start().await;
    let line = Line::to(&redis);
    let url = line.url();
    let app = spawn_app()
        .with(|settings| {
            settings.redis.url = url;
            settings.redis.timeout_ms = 2_000;
        })
        .await;
    let (amy, bob) = (app.user("amy"), app.user("bob"));
    let gone = Socket::present(&amy, json!({ "room": "lobby" })).await;
    until_online(&app, Some("lobby"), 1).await;
    line.refuse(true);
    line.cut();
    eventually("Redis to be missed", async || {
        !app.running().app.troubles().is_empty()
    })
    .await;
    gone.close().await;
    let _come = Socket::present(&bob, json!({ "room": "lobby", "session": "tab" })).await;
    assert!(
        app.running()
            .app
            .attendance
            .settle(&app.running().app)
            .await
            .is_err()
    );
    line.refuse(false);
    let seen = "{ presence(userIds: [\"amy\", \"bob\"], room: \"lobby\") { online } }";
    eventually("both to be told", async || {
        let answer = bob.try_ask(seen, json!({})).await.unwrap();
        answer["data"]["presence"] == json!([{ "online": false }, { "online": true }])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_reset_leaves_at_once_and_one_that_falls_silent_within_the_window() {
    let app = spawn_app()
        .with(|settings| settings.presence.window_seconds = 3)
        .await;
    let reset = silent(&app, "amy", json!({ "room": "lobby" })).await;
    until_online(&app, Some("lobby"), 1).await;
    reset.reset();
    until_online(&app, Some("lobby"), 0).await;

    // The clock stands still, so only the pings can tell; live.ping_seconds alone would take 40 s.
    let _silent = silent(&app, "amy", json!({ "room": "lobby" })).await;
    let mut lively = silent(&app, "bob", json!({ "room": "lobby" })).await;
    let answering = tokio::spawn(async move {
        lively
            .send(subscribe(
                "1",
                "subscription { onlineCountChanged(room: \"lobby\") { count } }",
            ))
            .await;
        loop {
            let counted = lively.data("1").await; // answers pings meanwhile
            if counted["onlineCountChanged"]["count"] == 2 {
                break;
            }
        }
        let counted = lively.data("1").await;
        assert_eq!(counted["onlineCountChanged"]["count"], 1);
        lively
    });
    let _lively = answering.await.unwrap();
    let seen: Vec<Value> = app
        .user("looker")
        .field("{ presence(userIds: [\"amy\", \"bob\"]) { online } }", json!({}))
        .await;
    assert_eq!(json!(seen), json!([{ "online": false }, { "online": true }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_without_its_sockets_leaves_for_them_all_the_same() {
    let redis = OwnRedis::start().await;
    let over = |settings: &mut Settings| {
        settings.redis.url = redis.url();
        settings.server.shutdown_seconds = 0;
    };
    let (one, other) = (spawn_app().with(over).await, spawn_app().with(over).await);
    let mut wires = Vec::new();
    for user in 0..20 {
        wires.push(silent(&one, &format!("user-{user}"), json!({ "room": "lobby" })).await);
    }
    until_online(&other, Some("lobby"), 20).await;
    one.stopped().await;
    assert_eq!(other.anonymous().online(Some("lobby")).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_outright_leaves_its_sockets_users_online_for_the_window() {
    let redis = OwnRedis::start().await;
    let place = Place::new(&format!("[redis]\nurl = \"{}\"\n", redis.url()));
    let mut command = place.serve();
    command.args(["--now", "2027-03-01T08:00:00Z"]);
    let server = Server::start(command);
    let claims = json!({ "devUser": "amy", "presence": { "room": "lobby", "session": "tab" } });
    let _wire = Wire::open(server.address(), claims).await;
    let count = "{ onlineCount(room: \"lobby\") }";
    eventually("the socket's beat", async || {
        server.ask(("X-Dev-User", "bob"), count).await["data"]["onlineCount"] == 1
    })
    .await;
    server.end("KILL");

    let url = redis.url();
    let app = spawn_app()
        .with(|settings| {
            settings.redis.url = url;
            settings.board.clear();
        })
        .await;
    let seen: Vec<Value> = app
        .user("bob")
        .field(
            "{ presence(userIds: [\"amy\"], room: \"lobby\") { lastSeen } }",
            json!({}),
        )
        .await;
    let seen = at(seen[0]["lastSeen"].as_str().unwrap());
    app.clock.set(seen + chrono::TimeDelta::seconds(300));
    assert_eq!(app.anonymous().online(Some("lobby")).await, 1);
    app.clock.set(seen + chrono::TimeDelta::milliseconds(300_001));
    assert_eq!(app.anonymous().online(Some("lobby")).await, 0);
    assert_eq!(app.anonymous().online(None).await, 0);
}
