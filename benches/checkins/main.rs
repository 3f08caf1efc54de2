//! What check-ins cost: Redis' memory at a million users with a full year each, and check-ins a second inside Redis.
//!
//! `cargo bench --bench checkins`, or smaller: `USERS=100000 CHECK_INS=10000 cargo bench --bench checkins`. It starts
//! private Redis servers in temporary directories and prints tables. `PARTS=memory` or `PARTS=speed` measures one of both.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod memory;
mod place;
mod speed;

#[tokio::main]
async fn main() {
    let parts = std::env::var("PARTS").unwrap_or_else(|_| "memory,speed".into());
    if parts.contains("memory") {
        memory::measure(number("USERS", 1_000_000)).await;
    }
    if parts.contains("speed") {
        speed::measure(number("CHECK_INS", 50_000)).await;
    }
}

/// A number from the environment.
fn number(name: &str, default: u32) -> u32 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}
