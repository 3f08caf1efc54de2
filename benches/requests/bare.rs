//! The scripts alone: what they reach with nothing around them, and how the boards are filled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tallyboard::app::App;
use tallyboard::ids::UserId;
use tallyboard::keyspace::Operation;
use tallyboard::leaderboard::submit::Score;

use crate::compared::app;
use crate::question::user_id;
use crate::store::Redis;

/// Scores in one pipeline while the board is filled.
const TOGETHER: u64 = 500;

/// Writes a second that the use cases reach with no server in front, as many at a time as the load has connections.
pub struct Bare {
    pub check_in: f64,
    pub score: f64,
}

/// Everybody gets some points, for the servers that keep boards and for the one that does it plainly.
pub async fn fill(redis: &Redis, users: u64) {
    let app = app(&redis.url()).await;
    let (board, now) = (app.boards.boards().get("points").unwrap(), app.clock.now());
    let mut plain = redis.client().get_multiplexed_async_connection().await.unwrap();
    for from in (0..users).step_by(TOGETHER as usize) {
        let those = from..users.min(from + TOGETHER);
        let points = |user: u64| (user.wrapping_mul(2_654_435_761) % 100_000) as i64;
        let scores: Vec<_> = those
            .clone()
            .map(|user| {
                let score = Score {
                    board,
                    user: UserId::parse(&user_id(user)).unwrap(),
                    operator: board.operator,
                    points: points(user),
                };
                (score, Operation::unique(now))
            })
            .collect();
        for submitted in app.boards.submit_many(&scores, now).await {
            submitted.unwrap();
        }
        let mut plainly = redis::pipe();
        for user in those {
            plainly
                .cmd("ZADD")
                .arg("plain:board")
                .arg(points(user))
                .arg(user_id(user))
                .ignore();
        }
        plainly.exec_async(&mut plain).await.unwrap();
    }
}

pub fn measure(users: u64, window: Duration, at_a_time: usize) -> Bare {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let redis = Redis::start().await;
        fill(&redis, users).await;
        let app = app(&redis.url()).await;
        Bare {
            check_in: rate(&app, users, window, at_a_time, true).await,
            score: rate(&app, users, window, at_a_time, false).await,
        }
    })
}

async fn rate(app: &Arc<App>, users: u64, window: Duration, at_a_time: usize, check_in: bool) -> f64 {
    let turn = AtomicU64::new(0);
    let began = Instant::now();
    let board = app.boards.boards().get("points").unwrap();
    let one = async || {
        while began.elapsed() < window {
            let turn = turn.fetch_add(1, Ordering::Relaxed);
            let (user, now) = (UserId::parse(&user_id(turn % users)).unwrap(), app.clock.now());
            let operation = Operation::unique(now);
            if check_in {
                app.checkins.check_in(&user, now, &operation).await.unwrap();
            } else {
                let score = Score {
                    board,
                    user,
                    operator: board.operator,
                    points: 1,
                };
                app.boards.submit(&score, now, &operation).await.unwrap();
            }
        }
    };
    join_all((0..at_a_time).map(|_| one())).await;
    turn.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}
