//! What happens to callers and their data when Redis is killed, frozen, emptied, or loses an answer.
//!
//! Nothing acknowledged may be lost and nothing done twice; what was answered UNAVAILABLE was done once or not at all.

#![allow(clippy::print_stdout)] // the figures that a run is asked for

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tallyboard::keyspace::Operation;
use tallyboard::leaderboard::ScoreOperator;
use tallyboard::leaderboard::submit::{Score, Submitted};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

use crate::harness::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_killed_in_the_middle_of_writes_loses_nothing_and_doubles_nothing() {
    const KILLS: u32 = 5;
    const TIMEOUT: Duration = Duration::from_millis(1_000);
    /// The timeout is of one call to Redis, and a newcomer's write makes up to three: an earlier one may have waited too.
    const MARGIN: Duration = Duration::from_millis(2_000);
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).with(|settings| {
            settings.redis.timeout_ms = TIMEOUT.as_millis() as u64;
            settings.checkin.points_board = "earned".into();
            settings.checkin.count_board = "visits".into();
            for id in ["earned", "visits"] {
                let board = tallyboard::config::Board {
                    id: id.into(),
                    ..Default::default()
                };
                settings.board.push(board);
            }
        });
        let app = app.await;
        let mut socket = Socket::open(&app.anonymous()).await;
        socket.subscribe(WATCHED, json!({})).await;
        let (latest, seen) = watch::channel(Value::Null);
        let watching = async move {
            loop {
                latest.send_replace(socket.update().await);
            }
        };

        let writes = Writes::default();
        let killing = async {
            for kill in 1..=KILLS {
                writes.more_acknowledged(60).await;
                let killed = app.running().redis_pid().unwrap();
                signal("KILL", killed);
                let successor = || app.running().redis_pid().filter(|&pid| pid != killed);
                eventually("another Redis", async || successor().is_some()).await;
                if kill == KILLS {
                    // One that takes its time, so that the outage is there to be seen.
                    let slow = successor().unwrap();
                    signal("STOP", slow);
                    eventually("503 at readyz", async || ready(&app).await == 503).await;
                    writes.more_unanswered(20).await;
                    signal("CONT", slow);
                }
                writes.more_acknowledged(20).await;
                eventually("200 at readyz", async || ready(&app).await == 200).await;
            }
            writes.enough.store(true, Ordering::SeqCst);
        };
        // Until all is written, the watcher runs beside it; it must not end.
        let writers = async {
            let counting = join_all((0..4).map(|i| writes.count_up(&app, format!("counter-{i}"))));
            let scoring = join_all((0..4).map(|i| writes.score_once_each(&app, i)));
            let checking_in = join_all((0..4).map(|i| writes.check_in_once_each(&app, i)));
            tokio::join!(killing, counting, scoring, checking_in)
        };
        let checks = async {
            let ((), counted, scored, checked_in) = writers.await;
            for (user, history) in counted {
                points_fit(&user, &history, points(&app, "points", &user).await.unwrap_or(0));
            }
            let scored: Vec<_> = scored.into_iter().flatten().collect();
            let found = all_points(&app, "points", &scored).await;
            for ((user, acknowledged), points) in scored.iter().zip(found) {
                let fits = points == Some(1) || (points.is_none() && !acknowledged);
                assert!(
                    fits,
                    "{user} scored 1, acknowledged: {acknowledged}, and has {points:?}"
                );
            }
            let checked_in: Vec<_> = checked_in.into_iter().flatten().collect();
            let earned = all_points(&app, "earned", &checked_in).await;
            let visits = all_points(&app, "visits", &checked_in).await;
            for (i, (user, acknowledged)) in checked_in.iter().enumerate() {
                let streak = app.user(user).streak().await;
                let all = (streak.total, streak.current, earned[i], visits[i]);
                let fits = all == (1, 1, Some(10), Some(1)) || (all == (0, 0, None, None) && !acknowledged);
                assert!(fits, "{user} checked in, acknowledged: {acknowledged}: {all:?}");
            }
            let last = app.anonymous().data(BOARD, json!({})).await["leaderboard"].take();
            eventually("the final state at the subscriber", async || {
                let seen = seen.borrow();
                seen["leaderboard"]["version"] == last["version"] && seen["top"] == last["top"]
            })
            .await;
            (
                scored.len() + checked_in.len(),
                writes.unanswered.load(Ordering::SeqCst),
            )
        };
        let (users, unanswered) = tokio::select! {
            checked = checks => checked,
            () = watching => unreachable!("a socket that ends panics"),
        };
        let slowest = Duration::from_micros(writes.slowest.load(Ordering::SeqCst));
        println!(
            "P = {partitions}: {KILLS} kills, {} acknowledged, {unanswered} unanswered, {users} users of one write, \
             slowest request {slowest:?}",
            writes.acknowledged.load(Ordering::SeqCst)
        );
        assert!(unanswered >= 20);
        assert!(slowest <= TIMEOUT + MARGIN, "{slowest:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_redis_is_noticed_within_the_timeout_and_forgiven_at_once() {
    const TIMEOUT: Duration = Duration::from_millis(600);
    let app = spawn_app()
        .with(|settings| settings.redis.timeout_ms = TIMEOUT.as_millis() as u64)
        .await;
    let mut history = vec![one_more(&app, "amy").await];
    let pid = app.running().redis_pid().unwrap();
    signal("STOP", pid);
    let frozen = Instant::now();
    history.push(one_more(&app, "amy").await);
    let first = frozen.elapsed();
    assert_eq!(history[1], None);
    assert!(first <= TIMEOUT + Duration::from_millis(500), "{first:?}");

    eventually("503 at readyz", async || ready(&app).await == 503).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let asked = Instant::now();
        history.push(one_more(&app, "amy").await);
        slowest = slowest.max(asked.elapsed());
    }
    assert!(
        slowest < TIMEOUT / 2,
        "known to be away, and yet {slowest:?} to say so"
    );
    assert!(history[1..].iter().all(Option::is_none));

    // Real time: a freeze that outlasts every timeout on the way.
    sleep((TIMEOUT * 5).saturating_sub(frozen.elapsed())).await;
    signal("CONT", pid);
    let thawed = Instant::now();
    eventually("200 at readyz", async || ready(&app).await == 200).await;
    println!(
        "frozen: first answer after {first:?}, then {slowest:?} at most; back after {:?}",
        thawed.elapsed()
    );
    history.push(one_more(&app, "amy").await);
    assert!(history.last().unwrap().is_some());
    points_fit("amy", &history, points(&app, "points", "amy").await.unwrap());
    assert_eq!(
        app.running().redis_pid(),
        Some(pid),
        "it was the same Redis all along"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_redis_forgets_are_not_missed() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let flush = async || {
            let flush = redis::cmd("SCRIPT").arg("FLUSH").to_owned();
            flush.exec_async(&mut app.redis().await).await.unwrap();
        };
        for round in 1..=3 {
            flush().await;
            assert_eq!(app.service().score("points", "amy", 1).await.outcome, "APPLIED");
            flush().await;
            assert_eq!(
                app.service().top("points", "ALL_TIME", 10).await.order(),
                [("amy", round)]
            );
        }

        // In the middle of batches: as often as Redis has run a number of scripts more.
        const USERS: usize = 4_000;
        let file = app.dir.path().join("history.csv");
        let lines = (0..USERS).map(|i| format!("user-{i},2027-02-{:02}\n", 1 + i % 28));
        std::fs::write(&file, "user,date\n".to_owned() + &lines.collect::<String>()).unwrap();
        let done = AtomicBool::new(false);
        let importing = async {
            let summary = tallyboard::import::check_ins::import(&app.running().app, &file).await;
            done.store(true, Ordering::SeqCst);
            summary.unwrap()
        };
        let flushing = async {
            let (mut flushes, mut at) = (0, scripts_run(&app).await);
            while !done.load(Ordering::SeqCst) {
                let run = scripts_run(&app).await;
                if run > at + 300 && flushes < 12 {
                    flush().await;
                    (flushes, at) = (flushes + 1, run);
                }
                tokio::task::yield_now().await;
            }
            flushes
        };
        let (summary, flushes) = tokio::join!(importing, flushing);
        assert!(flushes >= 5, "only {flushes} flushes hit the import");
        // What was run before the flush in the middle of its batch counts as known when the batch goes again.
        let written = summary.applied + summary.known;
        assert_eq!((written, summary.rejected), (USERS as u64, 0));
        for user in [0, 1_999, USERS - 1] {
            assert_eq!(app.user(&format!("user-{user}")).streak().await.total, 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_redis_takes_no_write_until_a_restart_begins_anew() {
    // Whoever comes first after the flush must notice it: somebody new or somebody known.
    for (partitions, first) in [(1, "amy"), (1, "newcomer"), (8, "amy"), (8, "newcomer")] {
        let app = spawn_app().partitions(partitions).await;
        app.service().score("points", "amy", 5).await;
        app.user("amy").check_in().await;
        assert_eq!(ready(&app).await, 200);
        let flush = redis::cmd("FLUSHALL");
        flush.exec_async(&mut app.redis().await).await.unwrap();

        let (code, message) = app.service().refusal(SCORE, score_of(first)).await;
        assert_eq!(
            (code.as_str(), message.contains("try again")),
            ("UNAVAILABLE", true)
        );
        assert_eq!(ready(&app).await, 503, "P = {partitions}, {first}");
        for user in ["amy", "newcomer"] {
            assert_eq!(
                app.service().refusal(SCORE, score_of(user)).await.0,
                "UNAVAILABLE"
            );
            let check_in = "mutation { checkIn { outcome } }";
            assert_eq!(app.user(user).refusal(check_in, json!({})).await.0, "UNAVAILABLE");
            let heartbeat = "mutation { heartbeat { onlineCount } }";
            assert_eq!(
                app.user(user).refusal(heartbeat, json!({})).await.0,
                "UNAVAILABLE"
            );
        }
        let keys: Vec<String> = redis::cmd("KEYS")
            .arg("*")
            .query_async(&mut app.redis().await)
            .await
            .unwrap();
        assert_eq!(keys, Vec::<String>::new(), "something was written");

        let app = app.restarted(|_| {}).await;
        assert_eq!(ready(&app).await, 200);
        assert_eq!(points(&app, "points", "amy").await, None);
        assert_eq!(one_more(&app, "amy").await, Some((0, 1)));
        assert_eq!(app.user("amy").check_in().await.outcome, "CHECKED_IN");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_sent_twice_is_done_once_and_answers_the_same() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let (parts, now) = (&app.running().app, app.clock.now());
        let user = tallyboard::ids::UserId::parse("amy").unwrap();
        let board = parts.boards.boards().get("points").unwrap();
        let (mut before, mut after) = (None, 0);
        for _ in 0..3 {
            let operation = Operation::unique(now);
            let score = Score {
                board,
                user: user.clone(),
                operator: ScoreOperator::Increment,
                points: 5,
            };
            let submit = async || match parts.boards.submit(&score, now, &operation).await.unwrap() {
                Submitted::Counted { changed, periods, .. } => (changed, format!("{periods:?}"), periods),
                refused => panic!("{refused:?}"),
            };
            let first = submit().await;
            // At once, and all together.
            for again in join_all((0..5).map(|_| submit())).await {
                assert_eq!((again.0, &again.1), (first.0, &first.1));
            }
            after += 5;
            assert!(first.2.iter().all(|period| period.previous_points == before));
            assert_eq!(points(&app, "points", "amy").await, Some(after));
            before = Some(after);
        }

        let operation = Operation::unique(now);
        let first = parts.checkins.check_in(&user, now, &operation).await.unwrap();
        let again = parts.checkins.check_in(&user, now, &operation).await.unwrap();
        assert!(first.fresh && again.fresh, "the first answer is the answer");
        assert_eq!(format!("{first:?}"), format!("{again:?}"));
        assert_eq!(app.user("amy").check_in().await.wallet.points, 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_comes_too_late_is_sent_again_and_done_once() {
    let app = spawn_app()
        .with(|settings| settings.redis.timeout_ms = 2_000)
        .await;
    one_more(&app, "amy").await;
    app.user("amy").check_in().await;
    app.set("2027-03-02T08:00:00Z");
    let run = operations_run(&app).await;
    let pid = app.running().redis_pid().unwrap();
    signal("STOP", pid);
    let thawing = async {
        // Real time: longer than the first try waits, shorter than both.
        sleep(Duration::from_millis(1_300)).await;
        signal("CONT", pid);
    };
    let amy = app.user("amy");
    let (scored, checked_in, ()) = tokio::join!(one_more(&app, "amy"), amy.check_in(), thawing);
    assert_eq!(scored, Some((1, 2)));
    assert_eq!(
        (checked_in.outcome.as_str(), checked_in.wallet.points),
        ("CHECKED_IN", 20)
    );
    assert_eq!(operations_run(&app).await, run + 4, "each was not sent twice");
    assert_eq!(points(&app, "points", "amy").await, Some(2));
    assert_eq!(amy.check_in().await.wallet.points, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_gets_lost_is_sent_again_and_done_once() {
    let redis = PrivateRedis::start().await;
    let line = Line::to(&redis).await;
    let url = line.url();
    let app = spawn_app().with(|settings| settings.redis.url = url).await;
    one_more(&app, "amy").await;
    app.user("amy").check_in().await;
    for (day, total) in [("2027-03-02", 2), ("2027-03-03", 3)] {
        app.set(&format!("{day}T08:00:00Z"));
        let run = operations_run(&app).await;
        line.cut_the_answer_to("operation");
        assert_eq!(one_more(&app, "amy").await, Some((total - 1, total)));
        assert_eq!(operations_run(&app).await, run + 2, "no answer was lost");
        line.cut_the_answer_to("operation");
        let checked_in = app.user("amy").check_in().await;
        assert_eq!(
            (checked_in.outcome.as_str(), checked_in.wallet.points),
            ("CHECKED_IN", 10 * total)
        );
        assert_eq!(operations_run(&app).await, run + 4, "no answer was lost");
        // Somebody new, whose row is given away by a script too.
        line.cut_the_answer_to("row-of");
        assert_eq!(one_more(&app, day).await, Some((0, 1)));
        assert_eq!(points(&app, "points", "amy").await, Some(total));
    }
    assert_eq!(rows(&redis).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_wallet_and_a_make_up_whose_answer_gets_lost_are_done_once() {
    let redis = PrivateRedis::start().await;
    let line = Line::to(&redis).await;
    let url = line.url();
    let app = spawn_app().with(|settings| settings.redis.url = url).await;
    let (amy, service) = (app.user("amy"), app.service());
    for user in ["amy", "zed"] {
        app.user(user).check_in().await;
        service.grant(user, 2, None).await;
    }
    app.set("2027-03-03T08:00:00Z");
    app.user("zed").make_up("2027-03-02").await; // from here on Redis knows the script
    let mut run = operations_run(&app).await;
    let mut sent_twice = async |what: &str| {
        let now = operations_run(&app).await;
        assert_eq!(now, run + 2, "no answer to {what} was lost");
        run = now;
    };
    for points in [11, 21] {
        line.cut_the_answer_to("operation");
        let changed = service.adjust("amy", 1, None).await;
        sent_twice("adjustWallet").await;
        assert_eq!(
            (changed.outcome.as_str(), changed.wallet.points),
            ("APPLIED", points)
        );
        line.cut_the_answer_to("operation");
        let changed = service.adjust("amy", 9, Some(&points.to_string())).await;
        sent_twice("adjustWallet with a key").await;
        assert_eq!(
            (changed.outcome.as_str(), changed.wallet.points),
            ("APPLIED", points + 9)
        );
    }
    line.cut_the_answer_to("operation");
    let made_up = amy.make_up("2027-03-02").await;
    sent_twice("makeUpCheckIn").await;
    assert_eq!(
        (made_up.outcome.as_str(), made_up.wallet.make_up_cards),
        ("MADE_UP", 1)
    );
    line.cut_the_answer_to("operation");
    let granted = service.grant("amy", 5, None).await;
    sent_twice("grantMakeUpCards").await;
    assert_eq!(granted.wallet.make_up_cards, 6);
    assert_eq!(amy.streak().await.total, 2);
}

/// What changed nothing the first time must change nothing when it is sent again: it would undo what came after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_answer_gets_lost_keeps_its_order_when_it_is_sent_again() {
    let redis = PrivateRedis::start().await;
    let line = Line::to(&redis).await;
    let url = line.url();
    let app = spawn_app().with(|settings| settings.redis.url = url).await;
    let set =
        |points: i64| json!({ "board": "points", "userId": "amy", "points": points, "operator": "SET" });
    let add = |points: i64| json!({ "board": "points", "userId": "zed", "points": points });
    app.service().submit_all(&[set(5), add(10_000_000)]).await;
    let run = operations_run(&app).await;
    line.cut_the_answer_to("operation");
    let scored = app
        .service()
        .submit_all(&[set(5), set(7), add(10), add(-100)])
        .await;
    assert_eq!(operations_run(&app).await, run + 8, "no answer was lost");
    let outcomes: Vec<&str> = scored.iter().map(|scored| scored.outcome.as_str()).collect();
    assert_eq!(outcomes, ["UNCHANGED", "APPLIED", "REJECTED", "APPLIED"]);
    assert_eq!(points(&app, "points", "amy").await, Some(7));
    assert_eq!(points(&app, "points", "zed").await, Some(9_999_900));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_whose_row_is_gone_gets_another_and_the_old_one_stays_untouched() {
    for taken in [true, false] {
        let app = spawn_app().await;
        for user in ["zed", "amy", "bob"] {
            app.user(user).check_in().await;
        }
        let mut redis = app.redis().await;
        // As if amy had been erased by another node: this one still remembers her row, which is 1.
        let row_of = keys(&mut redis, "tb:{0}:row-of:*").await;
        for bucket in row_of {
            let forget = redis::cmd("HDEL").arg(&bucket).arg("amy").to_owned();
            forget.exec_async(&mut redis).await.unwrap();
        }
        let mut unname = redis::cmd(if taken { "HSET" } else { "HDEL" });
        unname.arg("tb:{0}:user-of:0").arg(1);
        if taken {
            unname.arg("~erased");
        }
        unname.exec_async(&mut redis).await.unwrap();
        let record = async |redis: &mut _| -> Option<String> {
            let get = redis::cmd("HGET").arg("tb:{0}:record:0").arg(1).to_owned();
            get.query_async(redis).await.unwrap()
        };
        let old = record(&mut redis).await.unwrap();

        app.set("2027-03-02T08:00:00Z");
        let again = app.user("amy").check_in().await;
        assert_eq!((again.outcome.as_str(), again.streak.total), ("CHECKED_IN", 1));
        assert_eq!(app.user("amy").streak().await.total, 1);
        assert_eq!(app.user("bob").streak().await.total, 1);
        assert_eq!(record(&mut redis).await.unwrap(), old, "the old row was written");
        let bit = async |redis: &mut _, row: u32| -> u8 {
            let get = redis::cmd("GETBIT")
                .arg("tb:{0}:day:2027-03-02:0")
                .arg(row)
                .to_owned();
            get.query_async(redis).await.unwrap()
        };
        assert_eq!(bit(&mut redis, 1).await, 0, "the old row was marked");
        assert_eq!(bit(&mut redis, 3).await, 1, "the new row is the next one");
        assert_eq!(one_more(&app, "amy").await, Some((0, 1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_give_a_crowd_of_newcomers_dense_rows_of_their_own() {
    const USERS: usize = 2_000;
    /// Open connections to a server at once: test runners often allow 1,024 files.
    const AT_ONCE: usize = 400;
    let redis = PrivateRedis::start().await;
    let places = [(); 2].map(|()| Place::new("[[board]]\nid = \"points\"\nperiods = [\"ALL_TIME\"]\n"));
    let servers: Vec<_> = places
        .iter()
        .map(|place| {
            let mut command = place.serve();
            command.env("TALLYBOARD_REDIS__URL", redis.url());
            command.env("TALLYBOARD_REDIS__TIMEOUT_MS", "10000");
            Server::start(command)
        })
        .collect();
    // Every user comes to both servers at once.
    let http = reqwest::Client::new();
    let open = Arc::new(Semaphore::new(2 * AT_ONCE));
    let mut writes = tokio::task::JoinSet::new();
    for user in 0..USERS {
        for server in &servers {
            let query = format!(
                "mutation {{ submitScore(input: {{ board: \"points\", userId: \"user-{user}\", points: 1 }}) {{ outcome }} }}"
            );
            let request = http
                .post(format!("http://{}/graphql", server.address()))
                .header("X-Dev-Role", "SERVICE")
                .json(&json!({ "query": query }));
            let open = open.clone();
            writes.spawn(async move {
                let _turn = open.acquire().await.unwrap();
                let answer: Value = request.send().await.unwrap().json().await.unwrap();
                assert_eq!(answer["data"]["submitScore"]["outcome"], "APPLIED", "{answer}");
            });
        }
    }
    while let Some(written) = writes.join_next().await {
        written.unwrap();
    }

    let rows = rows(&redis).await;
    assert_eq!(rows.len(), USERS);
    assert!(rows.keys().copied().eq(0..USERS as u32), "rows are dense");
    let mut users: Vec<_> = rows.values().collect();
    users.sort();
    users.dedup();
    assert_eq!(users.len(), USERS, "one row each");
    for server in &servers {
        assert_eq!(server.points("points", "user-0").await, 2);
        assert_eq!(server.points("points", "user-1999").await, 2);
        let query = "{ leaderboard(board: \"points\") { participants top(first: 500) { points } } }";
        let board = server.ask(("X-Dev-Role", "SERVICE"), query).await;
        assert_eq!(board["data"]["leaderboard"]["participants"], USERS, "{board}");
        let top = board["data"]["leaderboard"]["top"].as_array().unwrap();
        assert!(top.iter().all(|standing| standing["points"] == 2));
    }
}

const WATCHED: &str =
    "subscription { leaderboardChanged(board: \"points\", span: { period: ALL_TIME }, first: 10) {
    leaderboard { version } top { points user { id } } } }";

const BOARD: &str = "{ leaderboard(board: \"points\", span: { period: ALL_TIME }) {
    version top(first: 10) { points user { id } } } }";

const SCORE: &str =
    "mutation ($user: ID!) { submitScore(input: { board: \"points\", userId: $user, points: 1 }) {
    outcome standings { period previousPoints standing { points } } } }";

fn score_of(user: &str) -> Value {
    json!({ "user": user })
}

async fn ready(app: &TestApp) -> u16 {
    let url = app.url().replace("/graphql", "/readyz");
    app.http().get(url).send().await.unwrap().status().as_u16()
}

/// Asks for a change; `None`: UNAVAILABLE. Any other failure is one of the test.
async fn change(caller: &Caller<'_>, query: &str, variables: Value) -> Option<Value> {
    let mut answer = caller.ask(query, variables).await;
    match answer.get("errors") {
        None => Some(answer["data"].take()),
        Some(errors) => {
            assert_eq!(errors[0]["extensions"]["code"], "UNAVAILABLE", "{answer}");
            None
        }
    }
}

/// Scores +1; answers the ALL_TIME points before and after, or `None` for UNAVAILABLE.
async fn one_more(app: &TestApp, user: &str) -> Option<(i64, i64)> {
    let scored = change(&app.service(), SCORE, score_of(user)).await?;
    let standings = scored["submitScore"]["standings"].as_array().unwrap();
    let all_time = standings.iter().find(|s| s["period"] == "ALL_TIME").unwrap();
    let points = all_time["standing"]["points"].as_i64().unwrap();
    Some((all_time["previousPoints"].as_i64().unwrap_or(0), points))
}

/// Whether one user's answers, in order, and the points at the end can be: each acknowledged +1 was done once, each
/// unanswered one once at most.
fn points_fit(user: &str, history: &[Option<(i64, i64)>], points: i64) {
    let (mut least, mut most) = (0, 0);
    for (i, answer) in history.iter().enumerate() {
        match *answer {
            None => most += 1,
            Some((before, after)) => {
                assert!(
                    (least..=most).contains(&before),
                    "{user}: write {i} found {before}, not {least} to {most}"
                );
                assert_eq!(after, before + 1, "{user}: write {i}");
                (least, most) = (after, after);
            }
        }
    }
    assert!(
        (least..=most).contains(&points),
        "{user} has {points}, not {least} to {most}"
    );
}

async fn points(app: &TestApp, board: &str, user: &str) -> Option<i64> {
    let standing = app.service().rank(board, "ALL_TIME", user).await;
    standing.map(|standing| standing.points)
}

/// The ALL_TIME points of many users, many a request.
async fn all_points(app: &TestApp, board: &str, users: &[(String, bool)]) -> Vec<Option<i64>> {
    let mut found = Vec::with_capacity(users.len());
    for chunk in users.chunks(50) {
        let fields = chunk.iter().enumerate().map(|(i, (user, _))| {
            format!("u{i}: rank(board: \"{board}\", userId: \"{user}\", span: {{ period: ALL_TIME }}) {{ points }} ")
        });
        let data = app
            .anonymous()
            .data(&format!("{{ {} }}", fields.collect::<String>()), json!({}))
            .await;
        found.extend((0..chunk.len()).map(|i| data[format!("u{i}")]["points"].as_i64()));
    }
    found
}

/// What the writers of a test share.
#[derive(Default)]
struct Writes {
    enough: AtomicBool,
    acknowledged: AtomicU64,
    unanswered: AtomicU64,
    /// In microseconds.
    slowest: AtomicU64,
}

impl Writes {
    /// Keeps an eye on one request.
    async fn watched<T>(&self, request: impl Future<Output = Option<T>>) -> Option<T> {
        let begun = Instant::now();
        let answer = request.await;
        self.slowest
            .fetch_max(begun.elapsed().as_micros() as u64, Ordering::SeqCst);
        let count = match answer {
            Some(_) => &self.acknowledged,
            None => &self.unanswered,
        };
        count.fetch_add(1, Ordering::SeqCst);
        if answer.is_none() {
            // So that an outage is no race of refusals; it takes nothing from the writes that meet it.
            sleep(Duration::from_millis(5)).await;
        }
        answer
    }

    async fn more_acknowledged(&self, count: u64) {
        more("acknowledged writes", &self.acknowledged, count).await;
    }

    async fn more_unanswered(&self, count: u64) {
        more("unanswered writes", &self.unanswered, count).await;
    }

    fn going_on(&self) -> bool {
        !self.enough.load(Ordering::SeqCst)
    }

    /// One user, +1 after +1.
    async fn count_up(&self, app: &TestApp, user: String) -> (String, Vec<Option<(i64, i64)>>) {
        let mut history = Vec::new();
        while self.going_on() {
            history.push(self.watched(one_more(app, &user)).await);
        }
        (user, history)
    }

    /// A new user for each +1; answers whether it was acknowledged.
    async fn score_once_each(&self, app: &TestApp, writer: usize) -> Vec<(String, bool)> {
        let mut users = Vec::new();
        while self.going_on() {
            let user = format!("scorer-{writer}-{}", users.len());
            let answer = self.watched(one_more(app, &user)).await;
            assert!(answer.is_none_or(|answer| answer == (0, 1)), "{user}: {answer:?}");
            users.push((user, answer.is_some()));
        }
        users
    }

    /// A new user for each check-in.
    async fn check_in_once_each(&self, app: &TestApp, writer: usize) -> Vec<(String, bool)> {
        let query = "mutation { checkIn { outcome reward { points } streak { total } wallet { points } } }";
        let wanted = json!({ "checkIn": { "outcome": "CHECKED_IN", "reward": { "points": 10 },
            "streak": { "total": 1 }, "wallet": { "points": 10 } } });
        let mut users = Vec::new();
        while self.going_on() {
            let user = format!("visitor-{writer}-{}", users.len());
            let answer = self.watched(change(&app.user(&user), query, json!({}))).await;
            assert!(
                answer.as_ref().is_none_or(|answer| *answer == wanted),
                "{user}: {answer:?}"
            );
            users.push((user, answer.is_some()));
        }
        users
    }
}

async fn more(what: &str, counter: &AtomicU64, count: u64) {
    let goal = counter.load(Ordering::SeqCst) + count;
    eventually(what, async || counter.load(Ordering::SeqCst) >= goal).await;
}

/// How many times a write with an operation id has been run, from the first call of this on.
async fn operations_run(app: &TestApp) -> usize {
    let mut redis = app.redis().await;
    for (name, value) in [("slowlog-log-slower-than", "0"), ("slowlog-max-len", "100000")] {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET")
            .arg(name)
            .arg(value)
            .exec_async(&mut redis)
            .await
            .unwrap();
    }
    let entries: Vec<Vec<redis::Value>> = redis::cmd("SLOWLOG")
        .arg("GET")
        .arg(-1)
        .query_async(&mut redis)
        .await
        .unwrap();
    let told = |word: &redis::Value| matches!(word, redis::Value::BulkString(word) if word == b"operation");
    let of_an_operation = |entry: &&Vec<redis::Value>| match entry.get(3) {
        Some(redis::Value::Array(words)) => words.iter().any(told),
        _ => false,
    };
    entries.iter().filter(of_an_operation).count()
}

/// How many scripts Redis has been told to run by their digest.
async fn scripts_run(app: &TestApp) -> u64 {
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query_async(&mut app.redis().await)
        .await
        .unwrap();
    stats
        .lines()
        .find_map(|line| {
            line.strip_prefix("cmdstat_evalsha:calls=")?
                .split(',')
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

async fn keys(redis: &mut redis::aio::MultiplexedConnection, pattern: &str) -> Vec<String> {
    let ask = redis::cmd("KEYS").arg(pattern).to_owned();
    ask.query_async(redis).await.unwrap()
}

/// Every row of partition 0 with its user, both maps agreeing.
async fn rows(redis: &PrivateRedis) -> BTreeMap<u32, String> {
    let mut redis = redis.connect().await;
    let mut rows = BTreeMap::new();
    for bucket in keys(&mut redis, "tb:{0}:user-of:*").await {
        let number: u32 = bucket.rsplit(':').next().unwrap().parse().unwrap();
        let ask = redis::cmd("HGETALL").arg(&bucket).to_owned();
        let users: BTreeMap<u32, String> = ask.query_async(&mut redis).await.unwrap();
        rows.extend(
            users
                .into_iter()
                .map(|(field, user)| (number * 128 + field, user)),
        );
    }
    let mut users = BTreeMap::new();
    for bucket in keys(&mut redis, "tb:{0}:row-of:*").await {
        let ask = redis::cmd("HGETALL").arg(&bucket).to_owned();
        let found: BTreeMap<String, u32> = ask.query_async(&mut redis).await.unwrap();
        users.extend(found.into_iter().map(|(user, row)| (row, user)));
    }
    assert_eq!(rows, users, "the maps do not agree");
    rows
}

/// A redis-server of the test's own, such as an operator would name by redis.url.
struct PrivateRedis {
    dir: TempDir,
    _process: Child,
}

impl PrivateRedis {
    async fn start() -> PrivateRedis {
        let dir = TempDir::new().unwrap();
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(dir.path().join("redis.sock"))
            .arg("--dir")
            .arg(dir.path())
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let redis = PrivateRedis {
            dir,
            _process: process,
        };
        eventually("the test's Redis", async || {
            UnixStream::connect(redis.socket()).await.is_ok()
        })
        .await;
        redis
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("redis.sock")
    }

    fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    async fn connect(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }
}

/// A line between a server and its Redis that can be cut between a script and its answer.
struct Line {
    dir: TempDir,
    cut: Arc<Mutex<Option<&'static str>>>,
}

impl Line {
    async fn to(redis: &PrivateRedis) -> Line {
        let dir = TempDir::new().unwrap();
        let listener = UnixListener::bind(dir.path().join("line.sock")).unwrap();
        let (cut, target) = (Arc::new(Mutex::new(None)), redis.socket());
        let line = Line {
            dir,
            cut: cut.clone(),
        };
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = UnixStream::connect(&target).await else {
                    continue;
                };
                tokio::spawn(carry(near, far, cut.clone()));
            }
        });
        line
    }

    fn url(&self) -> String {
        format!("unix://{}", self.dir.path().join("line.sock").display())
    }

    /// The next script that is told `word` is run, and its answer does not come back: the connection breaks instead.
    fn cut_the_answer_to(&self, word: &'static str) {
        *self.cut.lock().unwrap() = Some(word);
    }
}

async fn carry(mut near: UnixStream, mut far: UnixStream, cut: Arc<Mutex<Option<&'static str>>>) {
    let (mut request, mut reply) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut doomed = false;
    loop {
        tokio::select! {
            Ok(length) = near.read(&mut request) => {
                let part = &request[..length];
                let has = |word: &str| part.windows(word.len()).any(|here| here == word.as_bytes());
                let hit = has("EVALSHA") && cut.lock().unwrap().take_if(|word| has(word)).is_some();
                doomed |= hit;
                if length == 0 || far.write_all(part).await.is_err() {
                    return;
                }
            }
            Ok(length) = far.read(&mut reply) => {
                if length == 0 || doomed || near.write_all(&reply[..length]).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}
