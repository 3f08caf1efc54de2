//! `presence.mode = "count"`: the same numbers at a bit a minute and user.

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use redis::cmd;
use serde_json::{Value, json};
use tallyboard::config::{PresenceMode, Settings};

use crate::figures_at_scale::overheard;
use crate::harness::*;

fn counting(settings: &mut Settings) {
    settings.presence.mode = PresenceMode::Count;
}

/// Moves the clocks of both to `to`; at each minute that begins on the way both must count the same.
async fn pass(apps: [&TestApp; 2], from: DateTime<Utc>, to: DateTime<Utc>, seed: u64) -> u64 {
    let mut compared = 0;
    let mut minute = from + TimeDelta::milliseconds(60_000 - from.timestamp_millis() % 60_000);
    while minute <= to {
        apps.iter().for_each(|app| app.clock.set(minute));
        let counts = [
            apps[0].anonymous().online(None).await,
            apps[1].anonymous().online(None).await,
        ];
        assert_eq!(counts[0], counts[1], "{minute}, seed {seed}");
        compared += counts[0];
        minute += TimeDelta::minutes(1);
    }
    apps.iter().for_each(|app| app.clock.set(to));
    compared
}

#[tokio::test(flavor = "multi_thread")]
async fn it_counts_what_the_list_counts_whenever_a_minute_begins() {
    let seed = Seed::draw();
    let mut random = StdRng::seed_from_u64(seed.0);
    for partitions in both_partitions() {
        let exact = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        let count = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .with(counting)
            .await;
        let (mut now, mut compared) = (at("2027-03-01T08:00:00Z"), 0);
        for _ in 0..150 {
            let pause = match random.random_range(0..10) {
                0 => 60_000 - now.timestamp_millis() % 60_000, // right when a minute begins
                1 => random.random_range(0..400_000),
                _ => random.random_range(0..20_000),
            };
            let next = now + TimeDelta::milliseconds(pause);
            compared += pass([&exact, &count], now, next, seed.0).await;
            now = next;
            let user = format!("user-{}", random.random_range(0..40));
            for app in [&exact, &count] {
                app.user(&user).beat(None, None).await;
            }
        }
        assert!(compared > 100, "{compared}");
        assert!(pass([&exact, &count], now, now + TimeDelta::minutes(7), seed.0).await > 0);
        assert_eq!(count.anonymous().online(None).await, 0);
        for app in [&exact, &count] {
            let stats: Value = app
                .analyst()
                .field("{ dayStats { active knownUsers } }", json!({}))
                .await;
            assert_eq!(stats["active"], stats["knownUsers"], "seen today, in either mode");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_a_bit_a_minute_and_user_and_forgets_the_minutes() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:30Z")
            .with(counting)
            .with(|settings| settings.graphql.max_aliases = 1_000)
            .await;
        let beat = |users: std::ops::Range<u32>| {
            let beats = users.map(|i| format!(" u{i}: heartbeat(userId: \"user-{i}\") {{ onlineCount }}"));
            format!("mutation {{ {} }}", beats.collect::<String>())
        };
        for from in (0..1_600).step_by(200) {
            app.service().data(&beat(from..from + 200), json!({})).await;
        }
        assert_eq!(app.anonymous().online(None).await, 1_600);
        let mut redis = app.redis().await;
        let mut bytes = 0;
        let keys: Vec<String> = cmd("KEYS")
            .arg("tb:*minute*")
            .query_async(&mut redis)
            .await
            .unwrap();
        for key in &keys {
            bytes += cmd("STRLEN")
                .arg(key)
                .query_async::<u64>(&mut redis)
                .await
                .unwrap();
            let ttl: i64 = cmd("TTL").arg(key).query_async(&mut redis).await.unwrap();
            assert!((1..=720).contains(&ttl), "{ttl}");
        }
        assert!(
            bytes <= 200 + u64::from(partitions),
            "{bytes} bytes for 1,600 users"
        );
        let lists: Vec<String> = cmd("KEYS")
            .arg("tb:*se[es]*")
            .query_async(&mut redis)
            .await
            .unwrap();
        assert_eq!(lists, [""; 0], "no lists, no sessions");

        app.set("2027-03-01T08:05:59Z");
        assert_eq!(
            app.anonymous().online(None).await,
            1_600,
            "the whole minute counts"
        );
        app.set("2027-03-01T08:06:00Z");
        assert_eq!(app.anonymous().online(None).await, 0);
        eventually("the keeper to take the minute away", async || {
            let keys: Vec<String> = cmd("KEYS")
                .arg("tb:*minute*")
                .query_async(&mut redis)
                .await
                .unwrap();
            keys.is_empty()
        })
        .await;
    }
}

async fn set_rows(app: &TestApp, rows: u32) {
    let mut redis = app.redis().await;
    for p in app.running().app.keyspace.partitions() {
        let mut set = cmd("HSET");
        set.arg(app.running().app.keyspace.keys().generation(p));
        set.arg("rows").arg(rows);
        set.exec_async(&mut redis).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bitmap_is_sized_once_and_does_not_double_as_users_come() {
    let app = spawn_app().with(counting).await;
    set_rows(&app, 130_600).await; // 16,325 bytes; the allocator gives up to 16,384
    for from in (0..750).step_by(150) {
        let beats = (from..from + 150)
            .map(|i| format!(" u{i}: heartbeat(userId: \"user-{i}\") {{ nextWithinSeconds }}"));
        let document = format!("mutation {{ {} }}", beats.collect::<String>());
        app.service().data(&document, json!({})).await;
    }
    assert_eq!(app.anonymous().online(None).await, 750);
    let mut redis = app.redis().await;
    let keys = [app.ttls("tb:*:minute:*").await, app.ttls("tb:*:active:*").await].concat();
    assert_eq!(keys.len(), 2);
    for (key, _) in keys {
        let mut usage = cmd("MEMORY");
        usage.arg("USAGE").arg(&key);
        let bytes: u64 = usage.query_async(&mut redis).await.unwrap();
        assert!(
            bytes < 131_350 / 8 * 3 / 2,
            "{key}: {bytes} bytes for 131,350 rows"
        );
    }
}

/// How often the site is counted while `work` goes on.
async fn counts(app: &TestApp, work: impl Future<Output = ()>) -> usize {
    let ((), lines) = overheard(app, work).await;
    let combined = |line: &&String| line.contains("\"EVALSHA\"") && line.contains("\"COUNT\"");
    let counted = |line: &&String| line.contains("\"ZCOUNT\"");
    lines
        .iter()
        .filter(|line| combined(line) || counted(line))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_costs_only_those_who_ask_and_a_large_one_is_made_by_one_of_them() {
    let silent = "mutation { heartbeat { nextWithinSeconds } leave { online } }";
    let asking = "mutation { heartbeat { onlineCount } leave { onlineCount } }";
    for partitions in both_partitions() {
        let exact = spawn_app().partitions(partitions).await;
        let count = spawn_app().partitions(partitions).with(counting).await;
        set_rows(&count, 9_000_000 / partitions).await;
        for app in [&exact, &count] {
            let amy = app.user("amy");
            let work = async {
                amy.data(silent, json!({})).await;
            };
            let counts = counts(app, work).await;
            // In the mode that only counts, `online` of a leave looks at the user's own bit, which is no count.
            assert_eq!(counts, 0, "P = {partitions}");
        }
        let (amy, started) = (count.user("amy"), std::time::Instant::now());
        let work = async {
            amy.data(asking, json!({})).await; // now it is known to be much work
            for _ in 0..5 {
                join_all((0..20).map(|_| amy.data(asking, json!({})))).await;
            }
        };
        let scripts = counts(&count, work).await;
        let segments = (9_000_000 / partitions as usize).div_ceil(1 << 20) * partitions as usize;
        let most = segments * (1 + started.elapsed().as_secs() as usize);
        assert!(
            (segments..=most).contains(&scripts),
            "{scripts} scripts, {most} at most"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_has_no_rooms_and_no_list_and_leaving_changes_nothing() {
    let app = spawn_app().at("2027-03-01T08:00:00Z").with(counting).await;
    let amy = app.user("amy");
    assert_eq!(amy.beat(None, Some("tab")).await, 1);
    assert_eq!(app.user("bob").beat(None, None).await, 2);
    assert_eq!(amy.leave(None, Some("tab")).await, (true, 2));
    assert_eq!(app.user("zoe").leave(None, None).await, (false, 2));
    for query in [
        "{ online { totalCount } }",
        "{ presence(userIds: [\"amy\"]) { online } }",
        "{ onlineCount(room: \"lobby\") }",
        "mutation { heartbeat(room: \"lobby\") { onlineCount } }",
        "mutation { leave(room: \"lobby\") { onlineCount } }",
    ] {
        let (code, said) = amy.refusal(query, json!({})).await;
        assert_eq!(
            (code.as_str(), said.contains("only counts")),
            ("BAD_USER_INPUT", true),
            "{query}: {said}"
        );
    }
    let mut socket = Socket::open(&amy).await;
    socket
        .subscribe("subscription { onlineCountChanged { count } }", json!({}))
        .await;
    assert_eq!(socket.update().await["count"], 2);
    app.set("2027-03-01T08:06:00Z");
    assert_eq!(socket.update().await["count"], 0);
}
