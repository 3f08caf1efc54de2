//! Presence where it is easily got wrong: at once, at the turn of a day, beyond a million rows, without the right.

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use serde_json::{Value, json};
use tallyboard::config::PresenceMode;
use tallyboard::figures::{Activity, DayMatch};

use crate::figures::roster;
use crate::harness::*;

const BEAT: &str = "mutation { heartbeat(room: \"lobby\") { nextWithinSeconds } }";

async fn stats(app: &TestApp, on: &str) -> (u64, u64) {
    let query = "query ($on: Date) { dayStats(on: $on) { active checkIns } }";
    let stats: Value = app.analyst().field(query, json!({ "on": on })).await;
    let of = |what: &str| stats[what].as_u64().unwrap();
    (of("active"), of("checkIns"))
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_first_heartbeats_at_once_are_one_user_of_the_day() {
    for (partitions, mode) in [
        (1, PresenceMode::Exact),
        (8, PresenceMode::Exact),
        (1, PresenceMode::Count),
    ] {
        let app = spawn_app()
            .partitions(partitions)
            .with(|settings| settings.presence.mode = mode)
            .await;
        let amy = app.user("amy");
        let beat = "mutation { heartbeat { nextWithinSeconds } }";
        join_all((0..50).map(|_| amy.data(beat, json!({})))).await;
        assert_eq!(stats(&app, "2027-03-01").await, (1, 0));
        assert_eq!(app.anonymous().online(None).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_in_and_a_heartbeat_at_once_are_one_user_of_the_day() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        for user in 0..20 {
            let caller = app.user(&format!("user-{user}"));
            let checked_in = "mutation { checkIn { outcome } }";
            tokio::join!(caller.data(checked_in, json!({})), caller.data(BEAT, json!({})));
        }
        assert_eq!(stats(&app, "2027-03-01").await, (20, 20));
        let today = date("2027-03-01");
        let users = roster(&app, today, today, DayMatch::Any, Activity::Online).await;
        assert_eq!(users.len(), 20);
    }
}

/// Gives the app's partitions a million rows that nobody has.
async fn with_a_million_rows(app: &TestApp) {
    let mut redis = app.redis().await;
    for p in app.running().app.keyspace.partitions() {
        let mut set = redis::cmd("HSET");
        set.arg(app.running().app.keyspace.keys().generation(p));
        set.arg("rows").arg(1 << 20);
        set.exec_async(&mut redis).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_beyond_the_first_million_count_like_the_others() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        with_a_million_rows(&app).await;
        assert_eq!(app.user("amy").beat(Some("lobby"), None).await, 1);
        assert_eq!(app.user("bob").check_in().await.outcome, "CHECKED_IN");
        assert_eq!(app.user("bob").check_in().await.outcome, "ALREADY_CHECKED_IN");
        app.user("bob").beat(None, None).await;
        assert_eq!(stats(&app, "2027-03-01").await, (2, 1));
        assert!(!app.ttls("tb:*:active:2027-03-01:1").await.is_empty());
        assert_eq!(app.ttls("tb:*:active:2027-03-01:0").await, []);

        let (analyst, today) = (app.analyst(), "2027-03-01");
        for (activity, kind, wanted) in [
            ("ONLINE", Activity::Online, vec!["amy", "bob"]),
            ("CHECK_IN", Activity::CheckIn, vec!["bob"]),
        ] {
            let count = wanted.len() as u64;
            assert_eq!(analyst.active(today, today, activity, false, None).await, count);
            let among = Some(&["amy", "bob", "zoe"][..]);
            assert_eq!(analyst.active(today, today, activity, true, among).await, count);
            let users = roster(&app, date(today), date(today), DayMatch::Every, kind).await;
            assert_eq!(Vec::from_iter(&users), wanted);
        }
        app.set("2027-03-01T08:05:00.001Z");
        let all: Vec<_> = app.running().app.keyspace.partitions().collect();
        let presence = &app.running().app.presence;
        presence.look_after(&all, app.clock.now()).await.unwrap();
        assert_eq!(app.ttls("tb:*sessions*").await, [], "of these rows too");

        let counting = spawn_app()
            .partitions(partitions)
            .with(|settings| settings.presence.mode = PresenceMode::Count)
            .await;
        with_a_million_rows(&counting).await;
        for user in ["amy", "bob"] {
            counting
                .user(user)
                .data("mutation { heartbeat { nextWithinSeconds } }", json!({}))
                .await;
        }
        assert_eq!(counting.anonymous().online(None).await, 2);
        assert_eq!(stats(&counting, "2027-03-01").await, (2, 0));
        let bits = counting.ttls("tb:*:minute:*:1").await.len();
        assert_eq!(
            bits,
            counting.ttls("tb:*:minute:*").await.len(),
            "in the second segment"
        );
        assert!(counting.user("amy").leave(None, None).await.0, "a bit stays");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beat_counts_for_the_business_day_up_to_its_last_millisecond() {
    for (zone, starts_at, turn) in [
        ("UTC", "00:00", "2027-03-02T00:00:00Z"),
        ("UTC", "04:00", "2027-03-02T04:00:00Z"),
        ("Asia/Kolkata", "04:30", "2027-03-01T23:00:00Z"),
        ("Europe/Berlin", "02:30", "2027-03-28T01:30:00Z"), // 02:30 is skipped that night
    ] {
        for mode in [PresenceMode::Exact, PresenceMode::Count] {
            let app = spawn_app()
                .zone(zone)
                .with(|settings| {
                    settings.day.starts_at = starts_at.into();
                    settings.presence.mode = mode;
                })
                .await;
            let zone = app.running().app.zone;
            let before = at(turn) - TimeDelta::hours(1);
            let turn: DateTime<Utc> = zone.end_of(zone.date_of(before));
            let (last, next) = (zone.date_of(before), zone.date_of(turn));
            assert_ne!(last, next);
            let beat = "mutation { heartbeat { nextWithinSeconds } }";
            app.clock.set(turn - TimeDelta::milliseconds(1));
            app.user("amy").data(beat, json!({})).await;
            app.clock.set(turn);
            app.user("bob").data(beat, json!({})).await;
            app.user("amy").data(beat, json!({})).await;
            app.user("zoe").data(beat, json!({})).await;
            assert_eq!(stats(&app, &last.to_string()).await, (1, 0), "{last}");
            assert_eq!(stats(&app, &next.to_string()).await, (3, 0), "{next}");
            assert_eq!(app.anonymous().online(None).await, 3, "the turn takes nobody off");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_and_figures_are_for_those_who_may() {
    let app = spawn_app()
        .with(|settings| settings.auth.public_reads = false)
        .await;
    let (amy, anonymous) = (app.user("amy"), app.anonymous());
    let beat = "mutation { heartbeat(userId: \"bob\") { nextWithinSeconds } }";
    let leave = "mutation { leave(userId: \"bob\") { online } }";
    for query in [beat, leave] {
        assert_eq!(amy.refusal(query, json!({})).await.0, "FORBIDDEN", "{query}");
        app.service().data(query, json!({})).await;
    }
    for query in [
        beat,
        leave,
        "mutation { heartbeat { nextWithinSeconds } }",
        "mutation { leave { online } }",
        "{ presence(userIds: [\"bob\"]) { online } }",
        "{ online { totalCount } }",
        "{ onlineCount }",
    ] {
        assert_eq!(
            anonymous.refusal(query, json!({})).await.0,
            "UNAUTHENTICATED",
            "{query}"
        );
    }
    amy.data(
        "{ presence(userIds: [\"bob\"]) { online } online { totalCount } }",
        json!({}),
    )
    .await;
    let days = "from: \"2027-03-01\", to: \"2027-03-01\"";
    for field in [
        "retention(cohort: \"2027-03-01\", days: [1]) { size }".into(),
        format!("retentionTable({days}, days: [1]) {{ size }}"),
        format!("dayStatsRange({days}) {{ active }}"),
    ] {
        let query = format!("{{ {field} }}");
        assert_eq!(amy.refusal(&query, json!({})).await.0, "FORBIDDEN", "{query}");
        assert_eq!(
            anonymous.refusal(&query, json!({})).await.0,
            "UNAUTHENTICATED",
            "{query}"
        );
        app.analyst().data(&query, json!({})).await;
    }
    let watch = "subscription { onlineCountChanged { count } }";
    let mut socket = Socket::open(&anonymous).await;
    socket.subscribe(watch, json!({})).await;
    let refused = socket.receive().await.to_string();
    assert!(refused.contains("UNAUTHENTICATED"), "{refused}");
    let mut socket = Socket::open(&amy).await;
    socket.subscribe(watch, json!({})).await;
    assert_eq!(socket.update().await["count"], 0);
}

/// Makes Redis hold another generation than the server has seen, with amy still in the lobby, long gone.
async fn of_another_generation(partitions: u32) -> TestApp {
    let app = spawn_app().partitions(partitions).await;
    let _keeper = app.only_keeper().await; // the server's own must not find it out first
    app.user("amy").data(BEAT, json!({})).await;
    app.user("amy").check_in().await;
    app.set("2027-03-01T08:06:00Z");
    let mut redis = app.redis().await;
    for p in app.running().app.keyspace.partitions() {
        let mut set = redis::cmd("HSET");
        set.arg(app.running().app.keyspace.keys().generation(p));
        set.arg("id").arg("another");
        set.exec_async(&mut redis).await.unwrap();
    }
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_refuse_data_of_another_generation_and_change_nothing() {
    let left = async |app: &TestApp| {
        let mut keys = app.ttls("tb:*se[es]*").await;
        keys.extend(app.ttls("tb:*rooms").await);
        keys.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    for partitions in both_partitions() {
        for query in [
            "mutation { leave(userId: \"amy\", room: \"lobby\") { online } }",
            "{ activeUsers(from: \"2027-03-01\", to: \"2027-03-01\") }",
        ] {
            let app = of_another_generation(partitions).await;
            let before = left(&app).await;
            let (code, _) = app.service().refusal(query, json!({})).await;
            assert_eq!(code, "UNAVAILABLE", "{query}");
            assert_eq!(left(&app).await, before, "{query}");
            assert!(!app.running().app.troubles().is_empty());
        }
        for sites_too in [true, false] {
            let app = of_another_generation(partitions).await;
            let inner = &app.running().app;
            let all: Vec<_> = inner.keyspace.partitions().collect();
            if !sites_too {
                // Without a list of the site the keeper comes to the rooms' at once.
                for (key, _) in app.ttls("tb:*seen-on-site").await {
                    let mut redis = app.redis().await;
                    redis::cmd("DEL").arg(key).exec_async(&mut redis).await.unwrap();
                }
            }
            let before = left(&app).await;
            assert!(inner.presence.look_after(&all, app.clock.now()).await.is_err());
            assert_eq!(left(&app).await, before);
        }
    }
}
