//! What a request costs: `rank`, `top` 10, `checkIn` and `submitScore` over POST, ours beside three others.
//!
//! `cargo bench --bench requests`, smaller by `SECONDS=2 USERS=5000 CONTENDERS=ours,hand`; see docs/benchmarks.md. Owns the order
//! of the runs.
//!
//! Read in this order: [`contender`] (the servers), [`question`] (what is asked), [`load`] (64 connections), [`bare`] (the
//! scripts alone), [`report`] (the table).
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod bare;
mod compared;
mod contender;
mod load;
#[allow(dead_code)] // the live benchmark uses all of it
#[path = "../live/process.rs"]
mod process;
mod question;
mod report;
#[allow(dead_code)]
#[path = "../live/store.rs"]
mod store;

use std::time::Duration;

use contender::{Contender, Server};
use question::Question;
use store::Redis;

/// Connections of the load, each with one request at a time.
const CONNECTIONS: usize = 64;

/// Requests that nobody counts, so that code and caches are warm.
const WARM_UP: Duration = Duration::from_secs(1);

/// One contender asked one question.
pub struct Figures {
    pub contender: Contender,
    pub question: Question,
    pub a_second: f64,
    /// CPU of the server for a request, in microseconds.
    pub cpu_us: f64,
    pub p50_us: u64,
    pub p99_us: u64,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}

fn main() {
    if let Some(role) = compared::role() {
        return compared::serve(&role);
    }
    // `cargo bench` says so; `cargo test --benches` does not, and must not start this.
    if !std::env::args().any(|argument| argument == "--bench") {
        return println!("cargo bench --bench requests measures requests");
    }
    process::prepare(500);
    let window = Duration::from_secs(number("SECONDS", 4));
    let users = number("USERS", 100_000);
    let contenders = std::env::var("CONTENDERS").unwrap_or("hand,ours,stock,node".into());
    let mut figures = Vec::new();
    for contender in contenders.split(',').map(Contender::named) {
        eprintln!("{} …", contender.name());
        figures.extend(measure(contender, users, window));
    }
    eprintln!("bare scripts …");
    let bare = bare::measure(users, window, CONNECTIONS);
    report::print(&figures, &bare);
}

/// All questions to one contender, over a Redis of its own.
fn measure(contender: Contender, users: u64, window: Duration) -> Vec<Figures> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let redis = Redis::start().await;
        bare::fill(&redis, users).await;
        let server = Server::start(contender, &redis);
        let mut figures = Vec::new();
        for question in Question::ALL {
            load::run(&server, contender, question, users, WARM_UP).await;
            figures.push(load::run(&server, contender, question, users, window).await);
        }
        figures
    })
}
