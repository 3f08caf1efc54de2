//! What subscribers see when Redis is killed, frozen, cut off or loses a message: never a false state for long, and
//! never one that is older than what they had.
//!
//! Two servers share a Redis of the test's own, the watched one over a line that can be disturbed. What the other one
//! writes while the watched one hears nothing is what must not be missed. Every [`Watcher`] checks each update it gets:
//! versions, `sinceVersion`, and that `moves` lead from the top before to this one.

use std::time::Duration;

use redis::AsyncTypedCommands;
use serde_json::{Value, json};
use tallyboard::config::{Board, Settings};
use tallyboard::ids::UserId;
use tallyboard::leaderboard::BoardOrder;
use tallyboard::live::audit;
use tokio::time::{sleep, timeout};

use crate::harness::*;

const DEAF: &str = "changes in Redis are not heard";

#[tokio::test(flavor = "multi_thread")]
async fn after_a_redis_that_was_away_for_a_second_everybody_has_the_true_state() {
    away_for(Duration::from_secs(1), 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_redis_that_was_away_for_forty_seconds_everybody_has_the_true_state() {
    away_for(Duration::from_secs(40), 1).await;
}

async fn away_for(outage: Duration, partitions: u32) {
    let mut scene = Scene::set(partitions).await;
    scene.redis.kill();
    let before = scene.is_deaf().await;
    let troubles = scene.troubles().await;
    assert!(troubles.contains(&DEAF.to_owned()), "{troubles:?}");
    sleep(outage).await; // real time: what outlasts every patience on the way
    assert_eq!(scene.deaf_gauge().await, 1);
    scene.line.refuse(true); // the watched server comes after the change
    scene.redis.start_again().await;
    scene.change_unheard().await;
    scene.line.refuse(false);
    scene.comes_to_itself(&before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_redis_that_was_frozen_for_fifteen_seconds_everybody_has_the_true_state() {
    let scene = Scene::set(8).await;
    signal("STOP", scene.redis.pid());
    let frozen = std::time::Instant::now();
    let before = scene.is_deaf().await;
    let noticed = frozen.elapsed();
    assert!(noticed < Duration::from_secs(10), "noticed after {noticed:?}");
    // The change waits at the frozen Redis, and the watched server comes after it.
    let thaw = async {
        sleep(Duration::from_secs(15).saturating_sub(frozen.elapsed())).await; // real time: the freeze
        scene.line.refuse(true);
        scene.line.cut();
        signal("CONT", scene.redis.pid());
    };
    tokio::join!(scene.change(&scene.other, &["cat"]), thaw);
    assert_eq!(scene.counts(), before, "heard by the deaf");
    scene.line.refuse(false);
    scene.comes_to_itself(&before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_redis_drops_for_a_full_output_buffer_listens_again() {
    let scene = Scene::set(1).await;
    let mut redis = scene.redis.connect().await;
    redis::cmd("CONFIG")
        .arg(&["SET", "client-output-buffer-limit", "pubsub 65536 0 0"])
        .exec_async(&mut redis)
        .await
        .unwrap();
    scene.line.refuse(true); // so that there is time to see it deaf: what it has open stays
    let channel = scene.app.running().app.keyspace.keys().changes();
    redis.publish(channel, "x".repeat(1 << 20)).await.unwrap();
    let before = scene.is_deaf().await;
    assert_eq!(scene.troubles().await, [DEAF]);
    scene.change_unheard().await;
    scene.line.refuse(false);
    scene.comes_to_itself(&before).await;
}

/// Heat is read again by itself: what nobody heard of is in it, and who went past is not known.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_while_nothing_is_heard_is_told_as_a_full_state() {
    let scene = Scene::set(8).await;
    let hot = Watched::Rank("points", heat(), "amy");
    let hot = Watcher::open(&scene.app.anonymous(), hot).await;
    scene.line.refuse(true);
    let mut redis = scene.redis.connect().await;
    redis::cmd("CLIENT")
        .arg(&["KILL", "TYPE", "pubsub"])
        .exec_async(&mut redis)
        .await
        .unwrap();
    let before = scene.is_deaf().await;
    let count = hot.count();
    scene.change_unheard().await;
    hot.until_true(&scene.app.anonymous()).await;
    for got in hot.since(count) {
        assert_eq!(got.update["cause"], "RESYNCED");
    }
    scene.line.refuse(false);
    scene.comes_to_itself(&before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_first_redials_are_refused_dials_on() {
    let scene = Scene::set(8).await;
    scene.line.refuse(true);
    scene.line.cut();
    let before = scene.is_deaf().await;
    // Commands and messages have a connection each: so many are not of one alone.
    eventually("refused redials", async || scene.line.refused() >= 6).await;
    scene.change_unheard().await;
    assert_eq!(scene.deaf_gauge().await, 1);
    scene.line.refuse(false);
    scene.comes_to_itself(&before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_got_lost_is_found_by_the_audit() {
    for partitions in both_partitions() {
        let scene = Scene::set(partitions).await;
        let before = scene.counts();
        scene.change_and_lose_the_messages().await;
        assert_eq!(scene.counts(), before, "somebody was told, and by whom?");
        assert_eq!(scene.troubles().await, [""; 0]);

        audit::look(&scene.app.running().app).await.unwrap();
        scene.all_are_resynced(&before).await;
        scene.all_hear_changes(&scene.app).await;
        // When all is well it finds nothing.
        let resyncs = scene.figure("resyncs_total").await;
        audit::look(&scene.app.running().app).await.unwrap();
        assert_eq!(scene.figure("resyncs_total").await, resyncs);
    }
}

/// One topic's reading tells nothing to the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_got_lost_is_found_also_after_somebody_new_has_read_the_change() {
    let mut scene = Scene::set(1).await;
    let before = scene.counts();
    scene.change_and_lose_the_messages().await;
    for board in ["points", "low"] {
        let newcomer = Watched::Top(board, period("ALL_TIME"), 7);
        scene
            .newcomers
            .push(Watcher::open(&scene.app.anonymous(), newcomer).await);
    }
    assert_eq!(scene.counts(), before);
    audit::look(&scene.app.running().app).await.unwrap();
    scene.all_are_resynced(&before).await;
    scene.all_hear_changes(&scene.app).await;
}

/// Redis itself was changed, as by hand or by a program that publishes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_nobody_published_is_found_by_the_audit() {
    let scene = Scene::set(8).await;
    let before = scene.counts();
    let keyspace = &scene.app.running().app.keyspace;
    let p = keyspace.partition_of(&UserId::parse("cat").unwrap());
    let mut redis = scene.redis.connect().await;
    for (board, key) in [("points", "-500"), ("low", "-500")] {
        let board = tallyboard::ids::BoardId::parse(board).unwrap();
        let keys = keyspace.keys();
        for span in ["all", "2027-03-01", "last-7@2027-03-01"] {
            redis.zadd(keys.board(p, &board, span), "cat", key).await.unwrap();
        }
        redis.incr(keys.board_version(p, &board), 1).await.unwrap();
    }
    audit::look(&scene.app.running().app).await.unwrap();
    scene.all_are_resynced(&before).await;
    scene.all_hear_changes(&scene.app).await;
}

/// Two servers on one Redis, and who watches the first.
struct Scene {
    audience: Vec<Watcher>,
    newcomers: Vec<Watcher>,
    app: TestApp,
    other: TestApp,
    line: Line,
    redis: OwnRedis,
}

impl Scene {
    async fn set(partitions: u32) -> Scene {
        let redis = OwnRedis::start().await;
        let line = Line::to(&redis);
        let app = server(partitions, line.url(), 2_000).await;
        // Patient, so that what it writes into a freeze is done at its end.
        let other = server(partitions, redis.url(), 60_000).await;
        let mut scene = Scene {
            audience: Vec::new(),
            newcomers: Vec::new(),
            app,
            other,
            line,
            redis,
        };
        for (user, points) in [("amy", 50), ("bob", 40), ("cat", 30), ("dan", 20)] {
            for board in ["points", "low"] {
                scene.app.service().score(board, user, points).await;
            }
        }
        let audience = [
            Watched::Top("points", period("DAY"), 3),
            Watched::Top("points", period("DAY"), 3),
            Watched::Top("points", period("ALL_TIME"), 10),
            Watched::Top("points", last_days(7), 2),
            Watched::Top("low", period("ALL_TIME"), 10),
            Watched::Rank("points", period("ALL_TIME"), "amy"),
            Watched::Rank("low", period("DAY"), "dan"),
        ];
        for watched in audience {
            let watcher = Watcher::open(&scene.app.anonymous(), watched).await;
            scene.audience.push(watcher);
        }
        for watched in [
            Watched::Top("points", period("DAY"), 3),
            Watched::Rank("low", period("DAY"), "dan"),
        ] {
            let anybody = scene.app.anonymous();
            scene
                .audience
                .push(Watcher::open_stream(&anybody, watched.clone()).await);
            scene.audience.push(Watcher::open_old(&anybody, watched).await);
        }
        for by in [&scene.app, &scene.other] {
            scene.all_hear_changes(by).await;
        }
        // What was heard a moment after it had been read is told with this.
        let before = scene.counts();
        for board in scene.app.running().app.boards.boards().iter() {
            scene.app.running().app.changes.missed(&board.id);
        }
        scene.all_are_resynced(&before).await;
        scene
    }

    /// Changes that everybody in the audience has to hear of, in one go; `leaders` get more points than anybody has.
    async fn change(&self, by: &TestApp, leaders: &[&str]) {
        let scores = ["points", "low"].into_iter().flat_map(|board| {
            let one = |points| move |user: &str| json!({ "board": board, "userId": user, "points": points });
            let leading = leaders.iter().copied().map(one(1_000));
            ["new", "bob", "dan", "amy"]
                .into_iter()
                .map(one(1))
                .chain(leading)
        });
        by.service().apply_all(&scores.collect::<Vec<_>>()).await;
    }

    /// The same by the other server while the watched one is deaf; somebody goes past.
    async fn change_unheard(&self) {
        let ready = async || status(&self.other).await.0 == 200;
        eventually("the other server", ready).await;
        assert_eq!(self.deaf_gauge().await, 1);
        let counts = self.counts();
        self.change(&self.other, &["cat"]).await;
        assert_eq!(self.counts(), counts, "heard by the deaf");
    }

    async fn change_and_lose_the_messages(&self) {
        self.line.lose_messages(true);
        self.change(&self.app, &[]).await;
        eventually("lost messages", async || self.line.lost() == 8).await;
        self.line.lose_messages(false);
    }

    /// Waits until the watched server says that it is deaf; answers with how many updates each has had by then.
    async fn is_deaf(&self) -> Vec<usize> {
        eventually("the deaf server's 503", async || {
            let (status, troubles) = status(&self.app).await;
            status == 503 && troubles.contains(&DEAF.to_owned())
        })
        .await;
        assert_eq!(self.deaf_gauge().await, 1);
        self.counts()
    }

    /// Waits until all is as if nothing had been.
    async fn comes_to_itself(&self, before: &[usize]) {
        eventually("200 at readyz", async || status(&self.app).await.0 == 200).await;
        assert_eq!(self.deaf_gauge().await, 0);
        // At once: the audit would find it too, some time.
        let resynced = timeout(Duration::from_secs(10), self.all_are_resynced(before)).await;
        resynced.expect("nobody was told that there was a gap");
        self.all_hear_changes(&self.app).await;
    }

    /// Everybody gets the true state, and by nothing else than a resync.
    async fn all_are_resynced(&self, before: &[usize]) {
        for (watcher, &count) in self.audience.iter().zip(before) {
            let truth = watcher.until_true(&self.app.anonymous()).await;
            watcher.until("an update", |got| got.len() > count).await;
            for got in watcher.since(count) {
                assert_eq!(got.update["cause"], "RESYNCED", "{:?}", watcher.watched);
                assert_eq!(watcher.watched.shown(&got.update), truth);
            }
        }
    }

    /// What changes from now on comes as a change to all, and is true.
    async fn all_hear_changes(&self, by: &TestApp) {
        let before = self.counts();
        self.change(by, &[]).await;
        for (watcher, count) in self.audience.iter().zip(before) {
            watcher.until("a change", |got| got.len() > count).await;
            watcher.until_true(&self.app.anonymous()).await;
            for got in watcher.since(count) {
                assert_eq!(got.update["cause"], "CHANGED", "{:?}", watcher.watched);
            }
        }
    }

    fn counts(&self) -> Vec<usize> {
        self.audience.iter().map(Watcher::count).collect()
    }

    async fn troubles(&self) -> Vec<String> {
        status(&self.app).await.1
    }

    async fn deaf_gauge(&self) -> u64 {
        self.figure("deaf").await
    }

    async fn figure(&self, name: &str) -> u64 {
        let url = self.app.url().replace("/graphql", "/metrics");
        let page = self
            .app
            .http()
            .get(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let line = format!("tallyboard_live_{name} ");
        let value = page.lines().find_map(|shown| shown.strip_prefix(&line));
        value
            .unwrap_or_else(|| panic!("no {line} in {page}"))
            .parse()
            .unwrap()
    }
}

async fn server(partitions: u32, url: String, timeout_ms: u64) -> TestApp {
    let board = |id: &str, order| Board {
        id: id.into(),
        order,
        windows: vec![7],
        half_life_hours: 6.0,
        ..Default::default()
    };
    let settings = |settings: &mut Settings| {
        settings.redis.url = url;
        settings.redis.timeout_ms = timeout_ms;
        settings.live.ping_seconds = 5; // a test's socket takes a long silence for a fault
        settings.board = vec![
            board("points", BoardOrder::HighestFirst),
            board("low", BoardOrder::LowestFirst),
        ];
    };
    spawn_app().partitions(partitions).with(settings).await
}

/// What `/readyz` says.
async fn status(app: &TestApp) -> (u16, Vec<String>) {
    let url = app.url().replace("/graphql", "/readyz");
    let answer = app.http().get(url).send().await.unwrap();
    let status = answer.status().as_u16();
    let mut said: Value = answer.json().await.unwrap();
    (status, serde_json::from_value(said["troubles"].take()).unwrap())
}
