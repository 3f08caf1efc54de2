//! Online counts and today's figures pushed, and sockets that count as sessions.

use serde_json::{Value, json};
use tallyboard::config::Settings;

use crate::figures::reads;
use crate::harness::*;

const COUNT: &str = "subscription ($room: ID) { onlineCountChanged(room: $room) { room count at } }";
const DAY: &str = "subscription { dayStatsChanged { date checkIns active knownUsers checkInRate } }";

#[tokio::test(flavor = "multi_thread")]
async fn an_online_count_comes_in_full_first_and_then_as_it_changes() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        app.user("amy").beat(Some("lobby"), None).await;
        let anonymous = app.anonymous();
        let mut lobby = Socket::open(&anonymous).await;
        lobby.subscribe(COUNT, json!({ "room": "lobby" })).await;
        let shown = |room: Value, count: u64, at: &str| json!({ "room": room, "count": count, "at": at });
        assert_eq!(
            lobby.update().await,
            shown(json!("lobby"), 1, "2027-03-01T08:00:00+00:00")
        );
        let mut site = Socket::open(&anonymous).await;
        site.subscribe(COUNT, json!({})).await;
        assert_eq!(
            site.update().await,
            shown(Value::Null, 1, "2027-03-01T08:00:00+00:00")
        );

        // A hundred come at once: few updates tell of them, and the last is right.
        let mut document = String::from("mutation {");
        for user in 0..100 {
            document +=
                &format!(" u{user}: heartbeat(room: \"lobby\", userId: \"user-{user}\") {{ onlineCount }}");
        }
        app.service().data(&(document + " }"), json!({})).await;
        let mut updates = 0;
        while lobby.update().await["count"] != 101 {
            updates += 1;
        }
        assert!(updates < 20, "{updates}");
        while site.update().await["count"] != 101 {}

        // Time alone takes them away.
        app.set("2027-03-01T08:05:00.001Z");
        for socket in [&mut lobby, &mut site] {
            let update = socket.update().await;
            assert_eq!(
                (&update["count"], &update["at"]),
                (&json!(0), &json!("2027-03-01T08:05:00.001+00:00"))
            );
        }

        // All who ask for the same room share one execution.
        let mut other = Socket::open(&app.user("bob")).await;
        other.subscribe(COUNT, json!({ "room": "lobby" })).await;
        assert_eq!(other.update().await["count"], 0);
        assert_eq!(app.running().app.gauges.topics.get(), 2);

        // Whoever joins later is told since when it has been so; two changes on the site are at least a look apart.
        app.set("2027-03-01T08:06:00Z");
        app.user("bob").beat(None, None).await;
        while site.update().await["count"] != 1 {}
        app.user("bob").leave(None, None).await;
        while site.update().await["count"] != 0 {}
        let mut later = Socket::open(&app.user("zoe")).await;
        later.subscribe(COUNT, json!({ "room": "lobby" })).await;
        assert_eq!(
            later.update().await,
            shown(json!("lobby"), 0, "2027-03-01T08:05:00.001+00:00")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn todays_figures_are_pushed_to_analysts_and_go_on_with_the_next_day() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T23:59:00Z")
            .await;
        let analyst = app.analyst();
        let mut socket = Socket::open(&analyst).await;
        socket.subscribe(DAY, json!({})).await;
        let day = |date: &str, check_ins: u64, active: u64, known: u64, rate: Option<f64>| json!({ "date": date, "checkIns": check_ins, "active": active, "knownUsers": known, "checkInRate": rate });
        assert_eq!(socket.update().await, day("2027-03-01", 0, 0, 0, None));
        app.service()
            .data(
                "mutation { a: checkIn(userId: \"amy\") { outcome } b: heartbeat(userId: \"bob\") { onlineCount } }",
                json!({}),
            )
            .await;
        let wanted = day("2027-03-01", 1, 2, 2, Some(0.5));
        while socket.update().await != wanted {}
        app.set("2027-03-02T00:00:00Z");
        assert_eq!(socket.update().await, day("2027-03-02", 0, 0, 2, None));

        let (amy, anonymous) = (app.user("amy"), app.anonymous());
        for caller in [&amy, &anonymous] {
            let mut socket = Socket::open(caller).await;
            socket.subscribe(DAY, json!({})).await;
            let refused = socket.receive().await.to_string();
            assert!(
                refused.contains("FORBIDDEN") || refused.contains("UNAUTHENTICATED"),
                "{refused}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_rooms_are_looked_at_together_and_each_subscriber_hears_of_its_own() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let _keeper = app.only_keeper().await; // the server's own asks for nothing meanwhile
        let anonymous = app.anonymous();
        let mut socket = Socket::open(&anonymous).await;
        for room in 0..100 {
            let payload = json!({ "query": COUNT, "variables": { "room": format!("room-{room}") } });
            let id = room.to_string();
            socket
                .send(json!({ "id": id, "type": "subscribe", "payload": payload }))
                .await;
        }
        for _ in 0..100 {
            let first = socket.receive().await;
            assert_eq!(
                first["payload"]["data"]["onlineCountChanged"]["count"], 0,
                "{first}"
            );
        }
        let (before, started) = (reads(&app).await, std::time::Instant::now());
        for room in [7, 42, 99] {
            let room = format!("room-{room}");
            app.user("amy").beat(Some(&room), None).await;
            let update = socket.receive().await;
            let counted = &update["payload"]["data"]["onlineCountChanged"];
            assert_eq!((&counted["room"], &counted["count"]), (&json!(room), &json!(1)));
        }
        let (trips, seconds) = (reads(&app).await - before, started.elapsed().as_secs());
        // A long pipeline is read piece by piece, so only a short one tells how many there were.
        assert!(
            partitions > 1 || trips < 50 * (seconds + 1),
            "{trips} reads in {seconds} s"
        );
    }
}

async fn until_online(app: &TestApp, room: Option<&str>, wanted: u64) {
    eventually("the online count", async || {
        app.anonymous().online(room).await == wanted
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_asks_for_it_counts_as_a_session_until_it_ends_in_whatever_way() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        let (amy, bob) = (app.user("amy"), app.user("bob"));
        let unasked = Socket::open(&bob).await;
        let first = Socket::present(&amy, json!({ "room": "lobby", "session": "tab" })).await;
        let second = Socket::present(&amy, json!({ "room": "lobby", "session": "tab" })).await;
        let third = Socket::present(&amy, json!({})).await;
        until_online(&app, Some("lobby"), 1).await;
        until_online(&app, None, 1).await;

        // The node beats by the clock, so they outlive the window.
        for minute in ["08:04", "08:08", "08:12"] {
            app.set(&format!("2027-03-01T{minute}:00Z"));
            let seen = format!("2027-03-01T{minute}:00+00:00");
            eventually("a beat", async || {
                let shown: Vec<Value> = bob
                    .field(
                        "{ presence(userIds: [\"amy\"], room: \"lobby\") { lastSeen } }",
                        json!({}),
                    )
                    .await;
                shown[0]["lastSeen"] == json!(seen)
            })
            .await;
        }
        first.close().await;
        drop(second); // without a word: the connection is just gone
        until_online(&app, Some("lobby"), 0).await;
        assert_eq!(
            app.anonymous().online(None).await,
            1,
            "the third socket is in no room"
        );
        third.close().await;
        until_online(&app, None, 0).await;
        drop(unasked);

        for (caller, place, code) in [
            (app.anonymous(), json!({}), 4403),
            (app.service(), json!({ "room": "lobby" }), 4403),
            (app.user("amy"), json!({ "room": "a b" }), 4400),
            (app.user("amy"), json!({ "rooms": "a" }), 4400),
            (app.user("amy"), json!(true), 4400),
        ] {
            let mut payload = caller.claims();
            payload["presence"] = place;
            let mut socket = Socket::connect(&caller).await;
            socket
                .send(json!({ "type": "connection_init", "payload": payload }))
                .await;
            assert_eq!(socket.closed().await, code, "{payload}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_of_two_nodes_count_their_user_once_and_a_node_that_stops_leaves_for_its_own() {
    let redis = OwnRedis::start().await;
    let over = |settings: &mut Settings| settings.redis.url = redis.url();
    let (one, other) = (spawn_app().with(over).await, spawn_app().with(over).await);
    let (here, there) = (one.user("amy"), other.user("amy"));
    let _here = Socket::present(&here, json!({ "room": "lobby" })).await;
    let _there = Socket::present(&there, json!({ "room": "lobby" })).await;
    let bob = one.user("bob");
    let _bob = Socket::present(&bob, json!({ "room": "lobby" })).await;
    until_online(&other, Some("lobby"), 2).await;
    eventually("both nodes to have told of amy", async || {
        let mut line = redis.connect().await;
        let row: u32 = redis::cmd("KEYS")
            .arg("tb:{0}:sessions:*")
            .query_async::<Vec<String>>(&mut line)
            .await
            .unwrap()
            .len() as u32;
        let mut sessions = 0;
        for row in 0..row {
            let key = format!("tb:{{0}}:sessions:{row}");
            sessions += redis::cmd("HLEN")
                .arg(key)
                .query_async::<u32>(&mut line)
                .await
                .unwrap();
        }
        sessions == 3
    })
    .await;
    drop((here, bob));
    one.stopped().await;
    assert_eq!(
        other.anonymous().online(Some("lobby")).await,
        1,
        "amy is here still, bob is not"
    );
}
