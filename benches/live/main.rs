//! What live push costs: N subscribers of a board's top 10 that changes ten times a second, ours beside three others.
//!
//! `cargo bench --bench live`, smaller by `SUBSCRIBERS=200 SECONDS=5 CONTENDERS=ours,shared MIXED=10x20`; see
//! docs/benchmarks.md. Owns the order of the runs.
//!
//! Read in this order: [`plan`] (what is run), [`measure`] (one run), [`contender`] (the four servers), [`writer`] and
//! [`subscribers`] (both ends of a change), [`report`] (the table).
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod compared;
mod contender;
mod frames;
mod latency;
mod measure;
mod ours;
mod plan;
mod posts;
mod process;
mod report;
mod shared;
mod socket;
mod state;
mod stock;
mod store;
mod subscribers;
mod writer;

use plan::Plan;

fn main() {
    // The servers to compare with are this program too.
    if let Some(role) = compared::role() {
        return compared::serve(&role);
    }
    // `cargo bench` says so; `cargo test --benches` does not, and must not start this.
    if !std::env::args().any(|argument| argument == "--bench") {
        return println!("cargo bench --bench live measures live push");
    }
    let plan = Plan::from_env();
    process::prepare(plan.most_sockets());
    let mut figures = Vec::new();
    for run in plan.runs() {
        eprintln!("{run} …");
        figures.push(measure::measure(&run));
    }
    report::print(&figures);
}
