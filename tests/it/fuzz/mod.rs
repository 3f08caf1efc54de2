//! Random bytes and broken requests at every door: no panic, no fault of ours, and nothing left behind.
//!
//! It takes some seconds, or as many as `TALLYBOARD_FUZZ_SECONDS` says; `TALLYBOARD_SEED` repeats what a run was drawn from
//! (but not the order in which the server met it).

mod broken;
mod corpus;
mod visitors;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use reqwest::Client;
use serde_json::json;

use crate::harness::*;

const CONFIG: &str = "[[board]]\nid = \"points\"\nwindows = [7]\n[[board]]\nid = \"best\"\noperator = \"BEST\"\nuser_writes = true\n\
    [redis]\ntimeout_ms = 10000\n[rate]\nuser_mutations = 0\nuser_operations = 0\naddress_mutations = 0\naddress_operations = 0\n";

/// How much a server may have grown after it has met everything once, in KiB: what its caches hold.
const GROWTH: u64 = 48 * 1024;

/// Who come at the same time.
const VISITORS: u64 = 24;

fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Brings broken requests until it is time to stop.
async fn visit(number: u64, seed: u64, address: String, until: Instant, came: Arc<AtomicUsize>) {
    let mut random = StdRng::seed_from_u64(seed.wrapping_add(number));
    let client = Client::new();
    while Instant::now() < until {
        match number % 4 {
            0 => visitors::over_http(&address, &client, &mut random).await,
            1 => visitors::over_stream(&address, &client, &mut random).await,
            2 => visitors::over_socket(&address, &mut random).await,
            _ => visitors::by_the_byte(&address, &mut random).await,
        }
        came.fetch_add(1, Ordering::Relaxed);
    }
}

async fn visited(seed: u64, address: &str, seconds: f64) -> usize {
    let came = Arc::new(AtomicUsize::new(0));
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut all = tokio::task::JoinSet::new();
    for number in 0..VISITORS {
        all.spawn(visit(number, seed, address.to_owned(), until, came.clone()));
    }
    while let Some(visitor) = all.join_next().await {
        if let Err(failed) = visitor {
            std::panic::resume_unwind(failed.into_panic());
        }
    }
    came.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_requests_break_nothing_and_leave_nothing_behind() {
    let seed = Seed::draw();
    let seconds = std::env::var("TALLYBOARD_FUZZ_SECONDS").map_or(6.0, |text| text.parse().unwrap());
    let place = Place::new(CONFIG);
    let server = Server::start(place.serve());
    let address = server.address().to_owned();
    server.score("points", "amy", 5).await;
    let files = open_files(server.pid());

    let mut came = visited(seed.0, &address, seconds / 3.0).await;
    let warm = resident_kib(server.pid());
    came += visited(seed.0 ^ u64::MAX, &address, seconds * 2.0 / 3.0).await;

    crowd_becomes(&address, [0, 0, 0]).await;
    eventually("connections to be closed", async || {
        open_files(server.pid()) <= files + 2
    })
    .await;
    let after = resident_kib(server.pid());
    assert!(after < warm + GROWTH, "{warm} KiB, then {after} KiB");
    // It serves as ever.
    let answer = server
        .ask(
            ("X-Dev-User", "amy"),
            "{ viewer { role } businessDay { timeZone } }",
        )
        .await;
    assert_eq!(
        answer["data"],
        json!({ "viewer": { "role": "USER" }, "businessDay": { "timeZone": "UTC" } })
    );
    let ended = tokio::task::spawn_blocking(move || server.end("TERM"))
        .await
        .unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let faults: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.contains("panicked") || line.contains("ERROR"))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    #[allow(clippy::print_stdout)] // what a long run is asked for
    {
        println!("{came} visits in {seconds} s; {warm} KiB, then {after} KiB; {files} files open before");
    }
}
