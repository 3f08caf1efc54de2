//! What is pushed is right, however many writes lie between two updates: random boards against a plain client that keeps
//! its top by `moves` alone, and a board that is written as fast as it can be.
//!
//! The plain client is in every [`Watcher`]: it compares its top with the pushed one at each update.

#![allow(clippy::print_stdout)] // the figures that a run is asked for

use std::time::{Duration, Instant};

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tallyboard::config::Board;
use tallyboard::day::Period;
use tallyboard::ids::{BoardId, UserId};
use tallyboard::keyspace::Operation;
use tallyboard::leaderboard::submit::{Score, Submitted};
use tallyboard::leaderboard::{BoardOrder, RankMethod, ScoreOperator, TieBreak};
use tokio::time::sleep;

use crate::harness::*;

const USERS: [&str; 14] = [
    "amy", "Zed", "a", "B", "user-10", "user-2", "auth0|5f", "~", "!", "amy2", "0", "00", "zz", "mid",
];

const BOARDS: [(&str, BoardOrder, ScoreOperator); 6] = [
    ("sum", BoardOrder::HighestFirst, ScoreOperator::Increment),
    ("last", BoardOrder::HighestFirst, ScoreOperator::Set),
    ("best", BoardOrder::HighestFirst, ScoreOperator::Best),
    ("low-sum", BoardOrder::LowestFirst, ScoreOperator::Increment),
    ("low-last", BoardOrder::LowestFirst, ScoreOperator::Set),
    ("low-best", BoardOrder::LowestFirst, ScoreOperator::Best),
];

#[tokio::test(flavor = "multi_thread")]
async fn moves_lead_from_each_top_to_the_next_whatever_happens() {
    any_history(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_lead_from_each_top_to_the_next_whatever_happens_with_eight_partitions() {
    any_history(8).await;
}

async fn any_history(partitions: u32) {
    const ROUNDS: usize = 30;
    let seed = Seed::draw();
    let mut rng = StdRng::seed_from_u64(seed.0);
    let board = |(id, order, operator): (&str, BoardOrder, ScoreOperator)| Board {
        id: id.into(),
        order,
        operator,
        tie_break: if id.len() % 2 == 0 {
            TieBreak::FirstToReach
        } else {
            TieBreak::None
        },
        rank_method: RankMethod::Competition,
        windows: if operator == ScoreOperator::Set {
            vec![]
        } else {
            vec![2]
        },
        ..Default::default()
    };
    let app = spawn_app().partitions(partitions).with(off_disk);
    let app = app
        .with(|settings| {
            settings.live.interval_ms = 30;
            settings.board = BOARDS.map(board).into();
        })
        .await;
    let mut watchers = Vec::new();
    for (id, _, operator) in BOARDS {
        let more = if operator == ScoreOperator::Set {
            period("MONTH")
        } else {
            last_days(2)
        };
        for watched in [
            Watched::Top(id, period("ALL_TIME"), 3),
            Watched::Top(id, period("ALL_TIME"), 3),
            Watched::Top(id, period("ALL_TIME"), 20),
            Watched::Top(id, period("DAY"), 1),
            Watched::Top(id, more, 5),
        ] {
            watchers.push(Watcher::open(&app.anonymous(), watched).await);
        }
    }
    for round in 0..ROUNDS {
        match rng.random_range(0..20) {
            0 => {
                let board = BoardId::parse(BOARDS.choose(&mut rng).unwrap().0).unwrap();
                app.running().app.changes.missed(&board);
            }
            1 => app.set(&format!("2027-03-{:02}T08:00:00Z", 1 + round.div_ceil(2))),
            2..7 => {
                let (board, user) = (
                    BOARDS.choose(&mut rng).unwrap().0,
                    USERS.choose(&mut rng).unwrap(),
                );
                app.service().remove(board, user).await;
            }
            7..10 => {
                name(
                    &app,
                    USERS.choose(&mut rng).unwrap(),
                    &format!("In round {round}"),
                )
                .await
            }
            _ => {}
        }
        // Several requests at once, so that pulses fall anywhere between them.
        let requests: Vec<Vec<Value>> = (0..rng.random_range(1..4))
            .map(|_| {
                (0..rng.random_range(1..20))
                    .map(|_| any_score(&mut rng))
                    .collect()
            })
            .collect();
        let service = app.service();
        join_all(requests.iter().map(|inputs| service.submit_all(inputs))).await;
        if round % 10 == 9 {
            for watcher in &watchers {
                watcher.until_true(&app.anonymous()).await;
            }
        }
    }
    let got: Vec<Got> = watchers.iter().flat_map(|watcher| watcher.since(0)).collect();
    let of = |cause: &str| got.iter().filter(|got| got.update["cause"] == cause).count();
    let moved = got.iter().filter(|got| got.update["moves"] != json!([])).count();
    println!(
        "P = {partitions}: {} updates, {} CHANGED ({moved} with moves), {} RESYNCED, {} PERIOD_STARTED",
        got.len(),
        of("CHANGED"),
        of("RESYNCED"),
        of("PERIOD_STARTED")
    );
    assert!(moved > 200, "{moved} updates with moves are few");
}

fn any_score(rng: &mut StdRng) -> Value {
    let (board, user) = (BOARDS.choose(rng).unwrap().0, USERS.choose(rng).unwrap());
    json!({ "board": board, "userId": user, "points": rng.random_range(-3..9) })
}

async fn name(app: &TestApp, user: &str, name: &str) {
    let query = "mutation ($input: ProfileInput!) { setProfile(input: $input) { name } }";
    let input = json!({ "userId": user, "name": name });
    app.service().data(query, json!({ "input": input })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_is_told_where_the_user_stands_and_nowhere_else() {
    for partitions in both_partitions() {
        let board = |id: &str| Board {
            id: id.into(),
            ..Default::default()
        };
        let app = spawn_app().partitions(partitions).with(off_disk);
        let app = app
            .with(|settings| settings.board = ["here", "there"].map(board).into())
            .await;
        app.service().score("here", "amy", 5).await;
        app.service().score("there", "bob", 5).await;
        let open = async |id| Watcher::open(&app.anonymous(), Watched::Top(id, period("DAY"), 10)).await;
        let (here, there) = (open("here").await, open("there").await);

        name(&app, "amy", "Amélie 签到").await;
        here.until("the name", |got| got.len() > 1).await;
        let update = here.last();
        assert_eq!(
            (&update["cause"], &update["moves"]),
            (&json!("CHANGED"), &json!([]))
        );
        assert_eq!(
            update["top"][0]["user"],
            json!({ "id": "amy", "name": "Amélie 签到" })
        );
        here.until_true(&app.anonymous()).await;

        // Elsewhere the first that is told is a score.
        app.service().score("there", "bob", 1).await;
        there.until("the score", |got| got.len() > 1).await;
        let (only, sum) = (there.since(1), there.last()["top"][0]["points"].clone());
        assert_eq!((only.len(), sum), (1, json!(6)));
        assert_eq!(here.count(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_written_without_pause_pushes_ten_updates_a_second_and_the_last_is_the_final_state() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).with(off_disk).await;
        let (parts, now) = (&app.running().app, app.clock.now());
        let board = parts.boards.boards().get("points").unwrap();
        let write = async |batch: usize| {
            let score = |i: usize| {
                let score = Score {
                    board,
                    user: UserId::parse(&format!("user-{}", (batch * 7 + i * 31) % 1_000)).unwrap(),
                    operator: ScoreOperator::Increment,
                    points: 1 + (i % 9) as i64,
                };
                (score, Operation::unique(now))
            };
            let scores: Vec<_> = (0..500).map(score).collect();
            for outcome in parts.boards.submit_many(&scores, now).await {
                assert!(matches!(outcome, Ok(Submitted::Counted { changed: true, .. })));
            }
            scores.len()
        };
        written_without_pause(&app, write).await;
    }
}

/// Written by a script that does no more than has to be done, since an unoptimised server is what limits the other test.
#[tokio::test(flavor = "multi_thread")]
async fn a_board_that_changes_five_thousand_times_a_second_pushes_ten_updates_a_second_too() {
    const CHANGE: &str = "for i = 1, 200 do
        local user, points = 'user-' .. i, -(ARGV[1] * 200 + (i * 37) % 200)
        local before = redis.call('ZSCORE', KEYS[1], user) or '-'
        redis.call('ZADD', KEYS[1], points, user)
        redis.call('INCR', KEYS[2])
        redis.call('PUBLISH', ARGV[2], 'board points ' .. user .. ' 2027-03-01 ' .. before .. ' ' .. points)
    end";
    let app = spawn_app().with(off_disk).with(|settings| {
        settings.board[0].tie_break = TieBreak::None;
        settings.board[0].periods = vec![Period::Day];
    });
    let app = app.await;
    let (keyspace, board) = (&app.running().app.keyspace, BoardId::parse("points").unwrap());
    let home = keyspace.partition_of(&UserId::parse("user-1").unwrap());
    let (keys, redis) = (keyspace.keys(), app.redis().await);
    let begun = Instant::now();
    let write = async |batch: usize| {
        let mut eval = redis::cmd("EVAL");
        eval.arg(CHANGE)
            .arg(2)
            .arg(keys.board(home, &board, "2027-03-01"));
        eval.arg(keys.board_version(home, &board))
            .arg(batch + 1)
            .arg(keys.changes());
        eval.exec_async(&mut redis.clone()).await.unwrap();
        let due = Duration::from_secs(batch as u64 * 200) / 6_000;
        sleep(due.saturating_sub(begun.elapsed())).await; // real time: a pace
        200
    };
    let rate = written_without_pause(&app, write).await;
    assert!(rate >= 5_000.0, "{rate} writes a second are few");
}

/// Writes for 3 s, batch after batch; answers with how many a second that were.
async fn written_without_pause(app: &TestApp, write: impl AsyncFn(usize) -> usize) -> f64 {
    let mut watchers = Vec::new();
    for first in [10, 10, 100] {
        let watched = Watched::Top("points", period("DAY"), first);
        watchers.push(Watcher::open(&app.anonymous(), watched).await);
    }
    let rank = Watched::Rank("points", period("DAY"), "user-7");
    watchers.push(Watcher::open(&app.anonymous(), rank).await);
    let begun = Instant::now();
    let (mut written, mut batches) = (0, 0);
    while begun.elapsed() < Duration::from_secs(3) {
        written += write(batches).await;
        batches += 1;
    }
    let elapsed = begun.elapsed();
    let rate = written as f64 / elapsed.as_secs_f64();
    println!("{rate:.0} writes a second for {elapsed:?}");
    for watcher in &watchers {
        watcher.until_true(&app.anonymous()).await;
        let got = watcher.since(1);
        let last = got.last().unwrap().at;
        let most = (last - begun).as_millis() / 100 + 2;
        let mut gaps: Vec<Duration> = got.windows(2).map(|two| two[1].at - two[0].at).collect();
        gaps.sort();
        let (median, shortest) = (gaps[gaps.len() / 2], gaps[0]);
        println!(
            "{} updates until {:?} after the last write, {median:?} apart (median), {shortest:?} at least; {:?}",
            got.len(),
            last.saturating_duration_since(begun + elapsed),
            watcher.watched
        );
        assert!(
            got.len() as u128 <= most,
            "{} updates, and {most} are allowed",
            got.len()
        );
    }
    rate
}
