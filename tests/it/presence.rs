//! Who is online: sessions, rooms, the window and the list.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::harness::*;

impl Caller<'_> {
    pub async fn beat(&self, room: Option<&str>, session: Option<&str>) -> u64 {
        let query = "mutation ($room: ID, $session: ID) {
            heartbeat(room: $room, session: $session) { onlineCount nextWithinSeconds } }";
        let data = self
            .data(query, json!({ "room": room, "session": session }))
            .await;
        assert_eq!(data["heartbeat"]["nextWithinSeconds"], 100);
        data["heartbeat"]["onlineCount"].as_u64().unwrap()
    }

    /// Whether the user is still online there, and how many are.
    pub async fn leave(&self, room: Option<&str>, session: Option<&str>) -> (bool, u64) {
        let query = "mutation ($room: ID, $session: ID) {
            leave(room: $room, session: $session) { online onlineCount } }";
        let data = self
            .data(query, json!({ "room": room, "session": session }))
            .await;
        let left = &data["leave"];
        (
            left["online"].as_bool().unwrap(),
            left["onlineCount"].as_u64().unwrap(),
        )
    }

    pub async fn online(&self, room: Option<&str>) -> u64 {
        self.field(
            "query ($room: ID) { onlineCount(room: $room) }",
            json!({ "room": room }),
        )
        .await
    }

    /// Who is online, walked through in pages.
    async fn list(&self, room: Option<&str>, page: usize) -> Vec<(String, String)> {
        let query = "query ($room: ID, $first: Int!, $after: String) { online(room: $room, first: $first, after: $after) {
            edges { cursor node { user { id } online lastSeen } } nodes { user { id } } totalCount
            pageInfo { hasPreviousPage hasNextPage startCursor endCursor } } }";
        let (mut rows, mut after): (Vec<(String, String)>, Option<String>) = (Vec::new(), None);
        loop {
            let variables = json!({ "room": room, "first": page, "after": after });
            let shown: Value = self.field(query, variables).await;
            let edges = shown["edges"].as_array().unwrap();
            assert_eq!(shown["pageInfo"]["hasPreviousPage"], json!(!rows.is_empty()));
            for edge in edges {
                assert_eq!(edge["node"]["online"], true);
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                rows.push((text(&edge["node"]["user"]["id"]), text(&edge["node"]["lastSeen"])));
            }
            if shown["pageInfo"]["hasNextPage"] == false {
                assert_eq!(shown["totalCount"], json!(rows.len()));
                return rows;
            }
            assert_eq!(edges.len(), page);
            after = Some(shown["pageInfo"]["endCursor"].as_str().unwrap().to_owned());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_counts_once_until_the_window_has_passed() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        for _ in 0..3 {
            app.user("amy").beat(Some("lobby"), None).await;
        }
        assert_eq!(app.user("bob").beat(None, None).await, 2, "the site counts all");
        assert_eq!(app.anonymous().online(Some("lobby")).await, 1);
        assert_eq!(app.anonymous().online(Some("bar")).await, 0, "rooms are apart");

        app.set("2027-03-01T08:05:00Z");
        assert_eq!(
            app.anonymous().online(None).await,
            2,
            "seen within 300 s, both ends included"
        );
        app.set("2027-03-01T08:05:00.001Z");
        assert_eq!(app.anonymous().online(None).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_stays_online_as_long_as_one_tab_or_device_is() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        let amy = app.user("amy");
        let sessions = ["tab-1", "tab-2", "tab-3", "phone", "tablet"];
        for session in sessions {
            assert_eq!(amy.beat(Some("lobby"), Some(session)).await, 1, "{session}");
        }
        for session in &sessions[..4] {
            assert_eq!(
                amy.leave(Some("lobby"), Some(session)).await,
                (true, 1),
                "{session}"
            );
        }
        assert_eq!(
            amy.leave(Some("bar"), Some("tablet")).await,
            (false, 0),
            "she is not there"
        );
        assert_eq!(
            amy.leave(Some("lobby"), Some("tablet")).await,
            (false, 0),
            "at once"
        );
        assert_eq!(app.anonymous().online(None).await, 0);

        // In two rooms, and on the site in none.
        amy.beat(Some("lobby"), Some("tab")).await;
        app.set("2027-03-01T08:01:00Z");
        amy.beat(Some("bar"), Some("tab")).await;
        app.set("2027-03-01T08:02:00Z");
        assert_eq!(amy.leave(Some("bar"), Some("tab")).await, (false, 0));
        assert_eq!(app.anonymous().online(None).await, 1, "she is in the lobby still");
        assert_eq!(app.anonymous().online(Some("lobby")).await, 1);
        assert_eq!(
            amy.list(None, 5).await[0].1,
            "2027-03-01T08:00:00+00:00",
            "seen there last"
        );
        app.set("2027-03-01T08:05:00.001Z");
        assert_eq!(
            app.anonymous().online(None).await,
            0,
            "the lobby's tab went without a word"
        );
        assert_eq!(amy.leave(Some("lobby"), Some("tab")).await, (false, 0));
        assert_eq!(app.user("never-seen").leave(None, None).await, (false, 0));
        assert_eq!(
            app.analyst()
                .field::<Value>("{ dayStats { knownUsers } }", json!({}))
                .await["knownUsers"],
            1
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_beats_of_two_users_are_two_until_one_leaves_and_no_clients_clock_matters() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        for _ in 0..10 {
            for user in ["amy", "bob"] {
                app.user(user).beat(Some("lobby"), None).await;
            }
        }
        assert_eq!(app.anonymous().online(Some("lobby")).await, 2);
        assert_eq!(app.user("amy").leave(Some("lobby"), None).await, (false, 1));

        // No argument takes a time, and a date in the head of a request is not looked at.
        let (code, _) = app
            .user("amy")
            .refusal(
                "mutation { heartbeat(at: \"2031-01-01T00:00:00Z\") { onlineCount } }",
                json!({}),
            )
            .await;
        assert_eq!(code, "BAD_USER_INPUT");
        let late = app.http().post(app.url()).header("X-Dev-User", "amy");
        let late = late.header("Date", "Wed, 01 Jan 2031 00:00:00 GMT");
        let body = json!({ "query": "mutation { heartbeat { onlineCount } }" });
        late.json(&body).send().await.unwrap();
        let seen = app.user("bob").list(None, 10).await;
        assert!(
            seen.iter().all(|(_, at)| at == "2027-03-01T08:00:00+00:00"),
            "{seen:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_and_sessions_of_a_user_are_bounded_and_the_most_silent_session_makes_room() {
    let app = spawn_app()
        .with(|settings| {
            settings.presence.max_rooms_per_user = 3;
            settings.presence.max_sessions_per_user = 4;
        })
        .await;
    let amy = app.user("amy");
    for (second, room) in ["a", "b", "c"].into_iter().enumerate() {
        app.set(&format!("2027-03-01T08:00:0{second}Z"));
        amy.beat(Some(room), Some("1")).await;
    }
    let beat = |room: &'static str| {
        format!("mutation {{ heartbeat(room: \"{room}\", session: \"1\") {{ onlineCount }} }}")
    };
    let (code, said) = amy.refusal(&beat("d"), json!({})).await;
    assert_eq!(
        (code.as_str(), said.contains("at most 3 rooms")),
        ("BAD_USER_INPUT", true),
        "{said}"
    );
    assert_eq!(app.anonymous().online(Some("d")).await, 0);

    amy.beat(Some("c"), Some("2")).await;
    app.set("2027-03-01T08:00:03Z");
    amy.beat(Some("c"), Some("3")).await; // the fifth: c's first makes room
    assert_eq!(amy.leave(Some("c"), Some("2")).await, (true, 1));
    assert_eq!(
        amy.leave(Some("c"), Some("3")).await,
        (false, 0),
        "no fifth was left"
    );
    amy.beat(Some("b"), Some("2")).await;
    amy.beat(Some("c"), Some("1")).await;
    amy.leave(Some("b"), Some("2")).await;
    let _ = amy.beat(None, Some("1")).await;
    let refused = "mutation { heartbeat(session: \"2\") { onlineCount } }";
    amy.data(refused, json!({})).await; // in the same place as the one that makes room
    assert_eq!(app.anonymous().online(Some("a")).await, 1);

    // Those of whom nothing was heard within the window bind nobody.
    app.set("2027-03-01T08:10:00Z");
    for room in ["d", "e", "f"] {
        assert_eq!(amy.beat(Some(room), None).await, 1);
    }
    assert_eq!(amy.refusal(&beat("a"), json!({})).await.0, "BAD_USER_INPUT");
    amy.leave(Some("d"), None).await;
    assert_eq!(amy.beat(Some("a"), None).await, 1);
}

/// A session: user, room and name.
type Session = (String, Option<String>, String);

/// Sessions and when each was heard of, in seconds.
#[derive(Default)]
struct Plain(BTreeMap<Session, u64>);

impl Plain {
    /// Who is in `room` (none: on the site) at `now`, and when they were seen.
    fn online(&self, room: Option<&str>, now: u64) -> BTreeMap<&str, u64> {
        let mut seen = BTreeMap::new();
        for ((user, place, _), at) in &self.0 {
            if now - at <= 300 && (room.is_none() || place.as_deref() == room) {
                let newest = seen.entry(user.as_str()).or_insert(*at);
                *newest = (*newest).max(*at);
            }
        }
        seen
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_beats_and_leaves_are_what_a_plain_list_of_sessions_says() {
    let seed = Seed::draw();
    let mut random = StdRng::seed_from_u64(seed.0);
    let rooms = [None, Some("lobby"), Some("bar"), Some("den")];
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        let (mut plain, mut now) = (Plain::default(), 0);
        for step in 0..250 {
            now += *[0, 0, 0, 20, 100, 301].choose(&mut random).unwrap();
            app.clock
                .set(at("2027-03-01T08:00:00Z") + chrono::TimeDelta::seconds(now as i64));
            let (user, room) = (
                format!("user-{}", random.random_range(0..12)),
                *rooms.choose(&mut random).unwrap(),
            );
            let session = ["1", "2", "3"].choose(&mut random).unwrap();
            let key = (user.clone(), room.map(str::to_owned), (*session).to_owned());
            if random.random_bool(0.7) {
                plain.0.insert(key, now);
                let count = app.user(&user).beat(room, Some(session)).await;
                assert_eq!(count, plain.online(room, now).len() as u64, "step {step}");
            } else {
                plain.0.remove(&key);
                let wanted = plain.online(room, now);
                let wanted = (wanted.contains_key(user.as_str()), wanted.len() as u64);
                assert_eq!(
                    app.user(&user).leave(room, Some(session)).await,
                    wanted,
                    "step {step}"
                );
            }
            if step % 10 == 0 {
                let partitions: Vec<_> = app.running().app.keyspace.partitions().collect();
                app.running()
                    .app
                    .presence
                    .look_after(&partitions, app.clock.now())
                    .await
                    .unwrap();
            }
            if step % 5 == 0 {
                for room in rooms {
                    let wanted = plain.online(room, now);
                    assert_eq!(
                        app.anonymous().online(room).await,
                        wanted.len() as u64,
                        "step {step}: {room:?}"
                    );
                    check_list(&app, room, &wanted, random.random_range(1..5)).await;
                }
            }
        }
    }
}

async fn check_list(app: &TestApp, room: Option<&str>, wanted: &BTreeMap<&str, u64>, page: usize) {
    let instant = |at: &u64| (at_start() + chrono::TimeDelta::seconds(*at as i64)).to_rfc3339();
    let mut order: Vec<(u64, &str)> = wanted.iter().map(|(user, at)| (*at, *user)).collect();
    order.sort_by(|one, other| other.cmp(one));
    let order: Vec<(String, String)> = order
        .iter()
        .map(|(at, user)| ((*user).to_owned(), instant(at)))
        .collect();
    let caller = app.user("looker");
    assert_eq!(caller.list(room, page).await, order);
    let users: Vec<String> = (0..13).map(|i| format!("user-{i}")).collect();
    let query = "query ($users: [ID!]!, $room: ID) { presence(userIds: $users, room: $room) {
        user { id } online lastSeen } }";
    let shown: Vec<Value> = caller.field(query, json!({ "users": users, "room": room })).await;
    for (user, shown) in users.iter().zip(shown) {
        let seen = wanted.get(user.as_str());
        let wanted =
            json!({ "user": { "id": user }, "online": seen.is_some(), "lastSeen": seen.map(instant) });
        assert_eq!(shown, wanted);
    }
}

fn at_start() -> chrono::DateTime<chrono::Utc> {
    at("2027-03-01T08:00:00Z")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_seen_in_the_same_millisecond_is_walked_without_gap_or_repeat() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let mut document = String::from("mutation {");
        for user in 0..100 {
            document +=
                &format!(" u{user}: heartbeat(room: \"hall\", userId: \"user-{user}\") {{ onlineCount }}");
        }
        app.service().data(&(document + " }"), json!({})).await;
        for page in [7, 50, 100, 200] {
            let rows = app.user("looker").list(Some("hall"), page).await;
            let users: BTreeSet<&str> = rows.iter().map(|(user, _)| user.as_str()).collect();
            assert_eq!((rows.len(), users.len()), (100, 100), "pages of {page}");
        }
    }
    let app = spawn_app().await;
    let caller = app.user("looker");
    assert_eq!(
        app.anonymous()
            .refusal("{ online { totalCount } }", json!({}))
            .await
            .0,
        "UNAUTHENTICATED"
    );
    for (field, said) in [
        ("online(first: 501) { totalCount }", "0 to 500 rows"),
        ("online(after: \"x\") { totalCount }", "no cursor"),
        ("online(room: \"a b\") { totalCount }", "no spaces"),
        ("presence(userIds: [\"a b\"]) { online }", "no spaces"),
    ] {
        let (code, message) = caller.refusal(&format!("{{ {field} }}"), json!({})).await;
        assert_eq!(
            (code.as_str(), message.contains(said)),
            ("BAD_USER_INPUT", true),
            "{field}: {message}"
        );
    }
}
