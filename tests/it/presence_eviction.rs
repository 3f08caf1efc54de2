//! A crowd that goes at once is cleared away a batch at a time, and by no upkeep but its own.

use redis::{AsyncConnectionConfig, cmd};
use serde_json::json;
use tallyboard::config::Settings;
use tallyboard::ids::{RoomId, UserId};
use tallyboard::presence::upkeep::BATCH;
use tallyboard::presence::{Place, batches::Sighting};

use crate::figures_at_scale::{overheard, words};
use crate::harness::*;

/// `users` in one room, each by one session.
fn crowd(users: u32) -> Vec<Sighting> {
    let place = Place {
        room: Some(RoomId::parse("hall").unwrap()),
        ..Default::default()
    };
    (0..users)
        .map(|i| (UserId::parse(&format!("user-{i}")).unwrap(), place.clone()))
        .collect()
}

/// One script that took users off: of which partition, with how many keys, how many users.
#[derive(Debug)]
struct Batch {
    partition: String,
    keys: usize,
    users: usize,
}

/// The scripts whose second key ends with `key`, with the users that each took off the sets named by `set`.
fn batches(lines: &[String], key: &str, set: &str) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut ours = false;
    for line in lines {
        let words = words(line);
        match words.first().map(String::as_str) {
            Some("EVALSHA") => {
                ours = words[4].ends_with(key);
                if ours {
                    batches.push(Batch {
                        partition: words[4].clone(),
                        keys: words[2].parse().unwrap(),
                        users: 0,
                    });
                }
            }
            Some("ZREM") if ours && line.contains(" lua]") && words[1].contains(set) => {
                batches.last_mut().unwrap().users += words.len() - 2;
            }
            _ => {}
        }
    }
    batches
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_goes_at_once_is_taken_off_a_batch_at_a_time() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).with(off_disk).await;
        let _keeper = app.only_keeper().await;
        let users = 1_000 * partitions;
        let presence = &app.running().app.presence;
        let refused = presence.heartbeat_all(&crowd(users), app.clock.now()).await;
        assert_eq!(refused.unwrap(), []);
        assert_eq!(app.anonymous().online(Some("hall")).await, u64::from(users));

        let mut redis = app.redis().await;
        for (key, value) in [("slowlog-log-slower-than", 0), ("slowlog-max-len", 100_000)] {
            let mut set = cmd("CONFIG");
            set.arg("SET").arg(key).arg(value);
            set.exec_async(&mut redis).await.unwrap();
        }
        cmd("SLOWLOG").arg("RESET").exec_async(&mut redis).await.unwrap();
        app.set("2027-03-01T08:05:00.001Z");
        let all: Vec<_> = app.running().app.keyspace.partitions().collect();
        let (gone, lines) = overheard(&app, presence.look_after(&all, app.clock.now())).await;
        assert_eq!(gone.unwrap(), u64::from(users));

        let mut left = app.ttls("tb:*seen*").await;
        left.extend(app.ttls("tb:*sessions*").await);
        left.extend(app.ttls("tb:*rooms").await);
        assert_eq!(left, []);
        for (key, set) in [(":seen-on-site", ":seen-on-site"), (":rooms", ":seen-in:")] {
            let batches = batches(&lines, key, set);
            for p in 0..partitions {
                let here = batches
                    .iter()
                    .filter(|one| one.partition.contains(&format!("{{{p}}}")));
                assert!(here.count() >= 2, "P = {partitions}: {batches:?}");
            }
            assert!(batches.len() >= 3 * partitions as usize - 1, "{batches:?}");
            let users: usize = batches.iter().map(|batch| batch.users).sum();
            assert_eq!(users, 1_000 * partitions as usize);
            for batch in &batches {
                assert!(batch.users <= BATCH && batch.keys <= BATCH + 2, "{batch:?}");
            }
        }
        longest_is_one_of_them(&app, partitions).await;
    }
}

/// What Redis says took longest. How long, depends on who else uses this machine: it is printed.
async fn longest_is_one_of_them(app: &TestApp, partitions: u32) {
    let client = redis::Client::open(app.running().redis_address().clone()).unwrap();
    let patient = AsyncConnectionConfig::new().set_response_timeout(None); // the log is long
    let redis = client.get_multiplexed_async_connection_with_config(&patient);
    let mut redis = redis.await.unwrap();
    let log: Vec<(i64, i64, i64, Vec<String>, String, String)> = cmd("SLOWLOG")
        .arg("GET")
        .arg(-1)
        .query_async(&mut redis)
        .await
        .unwrap();
    let evictions = log.iter().filter(|entry| entry.3[0] == "EVALSHA");
    for entry in evictions.clone() {
        assert!(entry.3[2].parse::<usize>().unwrap() <= BATCH + 2, "{entry:?}");
    }
    assert!(evictions.clone().count() >= 5 * partitions as usize);
    let longest = evictions.map(|entry| entry.2).max().unwrap();
    #[allow(clippy::print_stderr)] // the figure itself
    {
        eprintln!("P = {partitions}: the longest eviction took {longest} us");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_and_the_other_upkeep_fail_each_by_itself() {
    for broken in ["swept", "rooms"] {
        let app = spawn_app().with(days_kept).await;
        let keeper = app.only_keeper().await;
        app.service().score("points", "amy", 1).await;
        app.user("amy").beat(None, None).await;
        app.set("2027-03-20T08:00:00Z");
        let mut redis = app.redis().await;
        for (command, rest) in [("DEL", None), ("SET", Some("no such thing"))] {
            let mut spoil = cmd(command);
            spoil.arg(format!("tb:{{0}}:{broken}")).arg(rest);
            spoil.exec_async(&mut redis).await.unwrap();
        }
        app.running().app.look_after(&keeper).await.unwrap();
        let (seen, day) = (
            app.ttls("tb:*seen-on-site").await.len(),
            app.ttls("tb:*board:points:2027-03-01").await.len(),
        );
        // Boards note there, too, how far they have come.
        let wanted = if broken == "swept" { (0, 1) } else { (0, 0) };
        assert_eq!((seen, day), wanted, "{broken} is broken");
        let answer = app.anonymous().ask("{ onlineCount }", json!({})).await;
        assert_eq!(answer["data"]["onlineCount"], 0, "{answer}");
    }
}

fn days_kept(settings: &mut Settings) {
    settings.retention.day_boards_days = 3;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_beats_between_the_keepers_look_and_its_script_stays() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let _keeper = app.only_keeper().await;
        let keyspace = app.running().app.keyspace.clone();
        app.user("amy").beat(Some("hall"), None).await;
        app.user("bob").beat(Some("hall"), None).await;
        app.set("2027-03-01T08:10:00Z");
        app.user("amy").beat(Some("hall"), None).await;
        // The script as the keeper sends it, that has looked before amy's beat.
        let mut redis = app.redis().await;
        let mut gone = 0;
        for user in ["amy", "bob"] {
            let id = UserId::parse(user).unwrap();
            let (p, row) = (keyspace.partition_of(&id), keyspace.row(&id).await.unwrap());
            let keys = keyspace.keys();
            let names = [keys.generation(p), keys.last_seen(p, None)];
            let script = redis::Script::new(include_str!("../../src/presence/evict.lua"));
            let mut call = script.prepare_invoke();
            names.iter().for_each(|key| {
                call.key(key);
            });
            call.key(keys.sessions(p, row.unwrap()));
            call.arg(keyspace.generation());
            call.arg(at("2027-03-01T08:05:00Z").timestamp_millis()).arg(user);
            gone += call.invoke_async::<u32>(&mut redis).await.unwrap();
        }
        assert_eq!(gone, 1, "bob");
        assert_eq!(app.anonymous().online(None).await, 1);
        assert_eq!(app.ttls("tb:*sessions*").await.len(), 1, "amy's");
    }
}
