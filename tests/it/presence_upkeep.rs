//! Presence over time: who has gone is cleared away, and whole days are counted by the zone.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, TimeDelta, Timelike, Utc};
use redis::aio::MultiplexedConnection;
use redis::cmd;
use serde_json::{Value, json};
use tallyboard::config::Durability;
use tallyboard::ids::{RoomId, UserId};
use tallyboard::presence;
use tallyboard::presence::upkeep::BATCH;

use crate::harness::*;
use crate::imports::real_data;

#[tokio::test(flavor = "multi_thread")]
async fn who_went_without_a_word_is_cleared_away_and_an_abandoned_room_vanishes() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        for i in 0..40 {
            app.user(&format!("user-{i}")).beat(Some("lobby"), None).await;
        }
        app.set("2027-03-01T08:04:00Z");
        for i in 0..10 {
            app.user(&format!("late-{i}")).beat(Some("bar"), None).await;
        }
        app.set("2027-03-01T08:06:00Z");
        let mut redis = app.redis().await;
        eventually("the keeper to clear the lobby", async || {
            let left: Vec<String> = cmd("KEYS")
                .arg("tb:*seen-in:lobby")
                .query_async(&mut redis)
                .await
                .unwrap();
            left.is_empty()
        })
        .await;
        eventually("the keeper to clear the site", async || {
            let mut members = 0;
            for p in 0..partitions {
                let site = format!("tb:{{{p}}}:seen-on-site");
                members += cmd("ZCARD")
                    .arg(site)
                    .query_async::<u64>(&mut redis)
                    .await
                    .unwrap();
            }
            members == 10
        })
        .await;
        let sessions: Vec<String> = cmd("KEYS")
            .arg("tb:*sessions:*")
            .query_async(&mut redis)
            .await
            .unwrap();
        assert_eq!(sessions.len(), 10, "sessions go with their users");
        for key in cmd("KEYS")
            .arg("tb:*se[es]*")
            .query_async::<Vec<String>>(&mut redis)
            .await
            .unwrap()
        {
            let ttl: i64 = cmd("TTL").arg(&key).query_async(&mut redis).await.unwrap();
            assert!((1..=600).contains(&ttl), "{key}: {ttl}");
        }
        assert_eq!(app.anonymous().online(None).await, 10);
    }
}

/// Nothing is kept of anybody but the `held` who are on the site, each in one room by one session.
async fn rooms_and_sessions_are_those_of(redis: &mut MultiplexedConnection, held: u64) {
    let count = async |redis: &mut MultiplexedConnection, command: &str, key: &str| -> u64 {
        cmd(command).arg(key).query_async(redis).await.unwrap()
    };
    let keys = async |redis: &mut MultiplexedConnection, pattern: &str| -> Vec<String> {
        cmd("KEYS").arg(pattern).query_async(redis).await.unwrap()
    };
    assert_eq!(keys(redis, "tb:{0}:sessions:*").await.len() as u64, held);
    let (rooms, mut members) = (keys(redis, "tb:{0}:seen-in:*").await, 0);
    for room in &rooms {
        members += count(redis, "ZCARD", room).await;
    }
    assert_eq!(members, held);
    assert_eq!(count(redis, "ZCARD", "tb:{0}:rooms").await, rooms.len() as u64);
}

/// How many one-off heartbeats; `TALLYBOARD_BEATS=1000000` for the whole measure.
fn beats() -> u64 {
    std::env::var("TALLYBOARD_BEATS").map_or(20_000, |beats| beats.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_off_heartbeats_over_a_day_leave_no_more_behind_than_the_window_holds() {
    let beats = beats();
    let app = spawn_app()
        .at("2027-03-01T00:00:00Z")
        .with(|settings| settings.redis.durability = Durability::EverySec)
        .await;
    let mut redis = app.redis().await;
    for (key, value) in [("slowlog-log-slower-than", 3_000), ("slowlog-max-len", 1_000)] {
        cmd("CONFIG")
            .arg("SET")
            .arg(key)
            .arg(value)
            .exec_async(&mut redis)
            .await
            .unwrap();
    }
    let presence = &app.running().app.presence;
    let partitions: Vec<_> = app.running().app.keyspace.partitions().collect();
    let minutes = 24 * 60;
    let in_window = (beats / minutes) * 6;
    let mut highest = 0;
    for minute in 0..minutes {
        let now = at("2027-03-01T00:00:00Z") + TimeDelta::minutes(minute as i64);
        app.clock.set(now);
        let sighting = |i: u64| {
            let room = RoomId::parse(&format!("room-{}", i / 1_000)).unwrap();
            let place = presence::Place {
                room: Some(room),
                ..Default::default()
            };
            (UserId::parse(&format!("once-{i}")).unwrap(), place)
        };
        let users: Vec<_> = (minute * beats / minutes..(minute + 1) * beats / minutes)
            .map(sighting)
            .collect();
        assert_eq!(presence.heartbeat_all(&users, now).await.unwrap(), []);
        // Once a minute here; the keeper's own turns come every two seconds.
        presence.look_after(&partitions, now).await.unwrap();
        let held: u64 = cmd("ZCARD")
            .arg("tb:{0}:seen-on-site")
            .query_async(&mut redis)
            .await
            .unwrap();
        highest = highest.max(held);
        assert!(held <= in_window + 12, "{held} at minute {minute}");
        if minute % 60 == 59 {
            assert_eq!(presence.count_online(None, now).await.unwrap(), held);
            rooms_and_sessions_are_those_of(&mut redis, held).await;
        }
    }
    app.set("2027-03-02T00:10:00Z");
    presence.look_after(&partitions, app.clock.now()).await.unwrap();
    for what in ["seen", "sessions", "rooms"] {
        let left: Vec<String> = cmd("KEYS")
            .arg(format!("tb:*{what}*"))
            .query_async(&mut redis)
            .await
            .unwrap();
        assert_eq!(left, [""; 0]);
    }
    let log: Vec<(i64, i64, i64, Vec<String>, String, String)> = cmd("SLOWLOG")
        .arg("GET")
        .arg(-1)
        .query_async(&mut redis)
        .await
        .unwrap();
    for entry in log.iter().filter(|entry| entry.3[0] == "EVALSHA") {
        let keys: usize = entry.3[2].parse().unwrap();
        assert!(keys <= BATCH + 2, "{entry:?}");
    }
    // Evictions are the scripts with many keys. What others take on this machine shows in either kind.
    let longest = |evicts: bool| {
        let scripts = log.iter().filter(|entry| entry.3[0] == "EVALSHA");
        let kind = scripts.filter(|entry| (entry.3[2].parse::<u32>().unwrap() > 12) == evicts);
        kind.map(|entry| entry.2).max().unwrap_or(0)
    };
    let percentiles: String = cmd("INFO")
        .arg("latencystats")
        .query_async(&mut redis)
        .await
        .unwrap();
    let percentiles = percentiles.lines().find(|line| line.contains("usec_evalsha"));
    #[allow(clippy::print_stderr)] // the figures themselves
    {
        eprintln!(
            "{beats} heartbeats: at most {highest} held at a time; the longest eviction took {} us, the longest other \
             script {} us (0: below 3,000); all scripts: {percentiles:?}",
            longest(true),
            longest(false),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_outright_leaves_nobody_online_beyond_the_window() {
    let redis = OwnRedis::start().await;
    let place = Place::new(&format!("[redis]\nurl = \"{}\"\n", redis.url()));
    let mut command = place.serve();
    command.args(["--now", "2027-03-01T08:00:00Z"]);
    let server = Server::start(command);
    let beat = "mutation { heartbeat(room: \"lobby\", session: \"tab\") { onlineCount } }";
    let answer = server.ask(("X-Dev-User", "amy"), beat).await;
    assert_eq!(answer["data"]["heartbeat"]["onlineCount"], 1, "{answer}");
    server.end("KILL");

    let url = redis.url();
    let app = spawn_app()
        .at("2027-03-01T08:00:00Z")
        .with(|settings| {
            settings.redis.url = url;
            settings.board.clear();
        })
        .await;
    assert_eq!(
        app.anonymous().online(Some("lobby")).await,
        1,
        "nobody has said goodbye"
    );
    let seen: Vec<Value> = app
        .user("amy")
        .field("{ presence(userIds: [\"amy\"]) { lastSeen } }", json!({}))
        .await;
    let seen = at(seen[0]["lastSeen"].as_str().unwrap());
    app.clock.set(seen + TimeDelta::seconds(300));
    assert_eq!(app.anonymous().online(None).await, 1);
    app.clock.set(seen + TimeDelta::milliseconds(300_001));
    assert_eq!(app.anonymous().online(None).await, 0);
    assert_eq!(app.anonymous().online(Some("lobby")).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_lived_through_as_heartbeats_make_the_days_of_the_zone() {
    let Some(text) = real_data("visits.csv") else {
        return;
    };
    let mut visits: Vec<(DateTime<Utc>, &str)> = text
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(user, instant)| (at(instant), user))
        .collect();
    visits.sort();
    for (zone, partitions) in [
        (chrono_tz::Asia::Kolkata, 8),
        (chrono_tz::America::Los_Angeles, 1),
    ] {
        let app = spawn_app()
            .zone(zone.name())
            .at("2015-05-17T00:00:00Z")
            .partitions(partitions)
            .await;
        let mut days: BTreeMap<NaiveDate, BTreeSet<&str>> = BTreeMap::new();
        // Days turn at a quarter of an hour in every zone, so what lies within one is of the same day.
        let quarter = |at: &DateTime<Utc>| (at.date_naive(), at.hour(), at.minute() / 15);
        for visits in visits.chunk_by(|one, other| quarter(&one.0) == quarter(&other.0)) {
            app.clock.set(visits[0].0);
            let mut document = String::from("mutation {");
            for (i, (instant, user)) in visits.iter().enumerate() {
                let local = instant.with_timezone(&zone).date_naive();
                days.entry(local).or_default().insert(user);
                document += &format!(" v{i}: heartbeat(userId: \"{user}\") {{ nextWithinSeconds }}");
            }
            app.service().data(&(document + " }"), json!({})).await;
        }
        let analyst = app.analyst();
        for (day, users) in &days {
            let day = day.to_string();
            let shown = analyst.active(&day, &day, "ONLINE", false, None).await;
            assert_eq!(shown, users.len() as u64, "{day} in {zone}");
            let query = "query ($on: Date) { dayStats(on: $on) { active checkIns } }";
            let counted: Value = analyst.field(query, json!({ "on": day })).await;
            assert_eq!(counted, json!({ "active": users.len(), "checkIns": 0 }));
        }
        let (first, second) = (*days.keys().next().unwrap(), *days.keys().nth(1).unwrap());
        let query = "query ($cohort: Date!) { retention(cohort: $cohort, days: [1], activity: ONLINE) {
            size days { returned } } }";
        let back: Value = analyst.field(query, json!({ "cohort": first.to_string() })).await;
        let both = days[&first].intersection(&days[&second]).count();
        assert_eq!(
            back,
            json!({ "size": days[&first].len(), "days": [{ "returned": both }] }),
            "{zone}"
        );
    }
}
