//! What a board costs Redis at a million members: Redis' own time for each operation, and the longest single command.
//!
//! `cargo bench --bench boards`, or with fewer members `MEMBERS=100000 cargo bench --bench boards`. It starts a private
//! Redis in a temporary directory, fills one board (four periods, windows of 7 and 30 days) and prints a table.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use redis::aio::MultiplexedConnection;
use tallyboard::app::{App, Backing};
use tallyboard::clock::Clock;
use tallyboard::config::{self, Durability, Settings};
use tallyboard::day::Period;
use tallyboard::ids::UserId;
use tallyboard::keyspace::Operation;
use tallyboard::keyspace::keeper::Keeper;
use tallyboard::leaderboard::submit::Score;
use tallyboard::leaderboard::{Board, RankMethod, ScoreOperator, Span};

/// Users who score on each of the days before.
const A_DAY: usize = 20_000;
const DAYS: i64 = 30;
const BATCH: usize = 500;
const SAMPLES: usize = 2_000;

struct Bench {
    app: Arc<App>,
    clock: Clock,
    board: Arc<Board>,
    redis: MultiplexedConnection,
    members: usize,
}

#[tokio::main]
async fn main() {
    let members: usize = std::env::var("MEMBERS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.server.data_dir = dir.path().join("data");
    settings.redis.durability = Durability::EverySec;
    settings.redis.timeout_ms = 60_000;
    settings.board = vec![config::Board {
        id: "points".into(),
        windows: vec![7, 30],
        ..Default::default()
    }];
    let backing = Backing::start(&settings).await.unwrap();
    let today: DateTime<Utc> = "2027-06-15T12:00:00Z".parse().unwrap();
    let clock = Clock::manual(today - TimeDelta::days(DAYS - 1));
    let app = App::open(settings, clock.clone(), &backing).await.unwrap();
    let client = redis::Client::open(backing.address().clone()).unwrap();
    let redis = client.get_multiplexed_async_connection().await.unwrap();
    let board = app.boards.boards().get("points").unwrap().clone();
    let mut bench = Bench {
        app,
        clock,
        board,
        redis,
        members,
    };
    bench.fill(today).await;
    bench.report().await;
    drop(bench);
    backing.stop().await;
}

impl Bench {
    /// A month of days with some scores each, then everybody scores today.
    async fn fill(&mut self, today: DateTime<Utc>) {
        let began = Instant::now();
        for back in (1..DAYS).rev() {
            self.clock.set(today - TimeDelta::days(back));
            for first in (0..A_DAY).step_by(BATCH) {
                let shift = back as usize * 7_919;
                self.score((first..first + BATCH).map(|i| (i * 31 + shift) % self.members))
                    .await;
            }
        }
        self.clock.set(today);
        for first in (0..self.members).step_by(BATCH) {
            self.score(first..(first + BATCH).min(self.members)).await;
        }
        println!(
            "filled {} members and {} days in {:.0?}",
            self.members,
            DAYS,
            began.elapsed()
        );
    }

    async fn score(&self, users: impl Iterator<Item = usize>) {
        let now = self.clock.now();
        let scores: Vec<_> = users
            .map(|i| {
                // A few thousand distinct points, so that there are ties to be kept in order.
                let points = 1 + (i as i64 * 2_654_435_761) % 5_000;
                let (board, user) = (&*self.board, user(i));
                (
                    Score {
                        board,
                        user,
                        operator: ScoreOperator::Increment,
                        points,
                    },
                    Operation::unique(now),
                )
            })
            .collect();
        for outcome in self.app.boards.submit_many(&scores, now).await {
            outcome.unwrap();
        }
    }

    async fn report(&mut self) {
        println!(
            "\n{:<44} {:>8} {:>12} {:>12}",
            "Redis' own time at this size", "calls", "us a call", "longest us"
        );
        let app = self.app.clone();
        let (boards, board, now) = (&app.boards, self.board.clone(), self.clock.now());
        let all_time = boards
            .period(&board, Period::AllTime, app.zone.date_of(now), now)
            .unwrap();
        let week = boards.window(&board, 7, now).unwrap();
        let members = self.members;
        let someone = move |i: usize| user((i * 7_907) % members);

        self.measure("submitScore, 4 periods and 2 windows", async |i| {
            let score = Score {
                board: &board,
                user: someone(i),
                operator: ScoreOperator::Increment,
                points: 1 + i as i64 % 50,
            };
            boards.submit(&score, now, &Operation::unique(now)).await.unwrap();
        })
        .await;
        for method in [RankMethod::Ordinal, RankMethod::Competition, RankMethod::Dense] {
            self.measure(&format!("rank, {method:?}"), async |i| {
                let standing = boards
                    .standing(&board, &all_time, &someone(i), now)
                    .await
                    .unwrap()
                    .unwrap();
                boards.rank(&board, &standing, method).await.unwrap();
            })
            .await;
        }
        for (name, span) in [("ALL_TIME", &all_time), ("last 7 days", &week)] {
            let top = async |span: &Span| boards.top(&board, span, 10, now).await.unwrap();
            self.measure(&format!("top 10, {name}"), async |_| drop(top(span).await))
                .await;
            self.measure(&format!("around, radius 5, {name} (three scripts)"), async |i| {
                boards.around(&board, span, &someone(i), 5, now).await.unwrap();
            })
            .await;
        }
        self.measure_build(now).await;
    }

    /// Tomorrow's windows, as the keeper builds them.
    async fn measure_build(&mut self, now: DateTime<Utc>) {
        self.reset().await;
        let keeper = Keeper::new(self.app.keyspace.clone());
        let began = Instant::now();
        let partitions = keeper.partitions().await.unwrap();
        self.app.boards.look_after(&partitions, now).await.unwrap();
        self.print("building tomorrow's windows, 50 users a step").await;
        println!("  in {:.0?}, pauses included", began.elapsed());
    }

    async fn measure(&mut self, name: &str, operation: impl AsyncFn(usize)) {
        self.reset().await;
        for i in 0..SAMPLES {
            operation(i).await;
        }
        self.print(name).await;
    }

    async fn reset(&mut self) {
        for (name, value) in [("slowlog-log-slower-than", "0"), ("slowlog-max-len", "100000")] {
            let mut set = redis::cmd("CONFIG");
            set.arg("SET")
                .arg(name)
                .arg(value)
                .exec_async(&mut self.redis)
                .await
                .unwrap();
        }
        redis::cmd("SLOWLOG")
            .arg("RESET")
            .exec_async(&mut self.redis)
            .await
            .unwrap();
        redis::cmd("CONFIG")
            .arg("RESETSTAT")
            .exec_async(&mut self.redis)
            .await
            .unwrap();
    }

    async fn print(&mut self, name: &str) {
        let stats: String = redis::cmd("INFO")
            .arg("commandstats")
            .query_async(&mut self.redis)
            .await
            .unwrap();
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_evalsha:"))
            .unwrap_or_default();
        let field = |name: &str| {
            line.split(',')
                .find_map(|field| field.strip_prefix(name))
                .unwrap_or_default()
        };
        let slow: Vec<Vec<redis::Value>> = redis::cmd("SLOWLOG")
            .arg("GET")
            .arg(-1)
            .query_async(&mut self.redis)
            .await
            .unwrap();
        let longest = slow
            .iter()
            .filter_map(|entry| match entry.as_slice() {
                [_, _, redis::Value::Int(us), redis::Value::Array(words), ..] => match words.first() {
                    Some(redis::Value::BulkString(name)) if name.eq_ignore_ascii_case(b"evalsha") => {
                        Some(*us)
                    }
                    _ => None,
                },
                _ => None,
            })
            .max();
        println!(
            "{name:<44} {:>8} {:>12} {:>12}",
            field("calls="),
            field("usec_per_call="),
            longest.unwrap_or(0)
        );
    }
}

fn user(i: usize) -> UserId {
    UserId::parse(&format!("{:08}", i)).unwrap()
}
