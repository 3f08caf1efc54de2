//! Check-ins a second: what 50 clients at once reach, and what the script takes inside Redis, beside a script of four
//! plain commands that is called the same way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tallyboard::config::{Board, Settings};
use tallyboard::ids::UserId;
use tallyboard::keyspace::Operation;

use super::place::Bench;

const CLIENTS: u32 = 50;

/// What a check-in needs at the least: to read, to write, to set a bit, to count.
const FOUR_COMMANDS: &str = "
    local held = redis.call('HGET', KEYS[1], ARGV[1])
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
    redis.call('SETBIT', KEYS[2], ARGV[3], 1)
    return redis.call('INCR', KEYS[3])";

pub async fn measure(check_ins: u32) {
    println!(
        "\n{:<44} {:>10} {:>14} {:>16}",
        format!("{check_ins} calls by {CLIENTS} clients"),
        "us inside",
        "a second inside",
        "a second reached"
    );
    let plain = four_commands(check_ins).await;
    for (name, change) in [
        ("check-in", (|_| ()) as fn(&mut Settings)),
        ("check-in that feeds two boards of 4 periods", feed_boards),
    ] {
        let inside = check_in(check_ins, name, change).await;
        println!("  {:.2} x the time of four commands", inside / plain);
    }
}

fn feed_boards(settings: &mut Settings) {
    for id in ["points", "count"] {
        settings.board.push(Board {
            id: id.into(),
            ..Default::default()
        });
    }
    settings.checkin.points_board = "points".into();
    settings.checkin.count_board = "count".into();
}

/// Each user checks in once a day: on the first to be known, on the second to be measured.
async fn check_in(check_ins: u32, name: &str, change: fn(&mut Settings)) -> f64 {
    let mut bench = Bench::start("2027-03-01T12:00:00Z", change).await;
    everybody(&bench, check_ins).await;
    bench.clock.set("2027-03-02T12:00:00Z".parse().unwrap());
    bench.command::<()>(&["CONFIG", "RESETSTAT"]).await;
    let took = everybody(&bench, check_ins).await;
    let inside = report(&mut bench, name, check_ins, took).await;
    bench.stop().await;
    inside
}

async fn everybody(bench: &Bench, users: u32) -> Duration {
    let now = bench.clock.now();
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|client| {
        let app = bench.app.clone();
        tokio::spawn(async move {
            for i in (client..users).step_by(CLIENTS as usize) {
                let user = UserId::parse(&(10_000_000 + i).to_string()).unwrap();
                let receipt = app
                    .checkins
                    .check_in(&user, now, &Operation::unique(now))
                    .await
                    .unwrap();
                assert!(receipt.fresh);
            }
        })
    });
    join_all(clients)
        .await
        .into_iter()
        .for_each(|client| client.unwrap());
    began.elapsed()
}

async fn four_commands(calls: u32) -> f64 {
    let mut bench = Bench::start("2027-03-01T12:00:00Z", |_| ()).await;
    let script = Arc::new(redis::Script::new(FOUR_COMMANDS));
    let digest: String = bench.command(&["SCRIPT", "LOAD", FOUR_COMMANDS]).await;
    assert_eq!(digest, script.get_hash());
    bench.command::<()>(&["CONFIG", "RESETSTAT"]).await;
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|client| {
        let (mut redis, digest) = (bench.redis.clone(), digest.clone());
        tokio::spawn(async move {
            for i in (client..calls).step_by(CLIENTS as usize) {
                let mut call = redis::cmd("EVALSHA");
                call.arg(&digest).arg(3);
                call.arg(format!("tb:{{0}}:record:{}", i / 128))
                    .arg("tb:{0}:bits")
                    .arg("tb:{0}:count");
                call.arg(i % 128).arg("20000 20000 1 1 1 10 0 10 0").arg(i);
                call.query_async::<i64>(&mut redis).await.unwrap();
            }
        })
    });
    join_all(clients)
        .await
        .into_iter()
        .for_each(|client| client.unwrap());
    let took = began.elapsed();
    let inside = report(&mut bench, "a script of HGET, HSET, SETBIT, INCR", calls, took).await;
    bench.stop().await;
    inside
}

/// Prints a row; answers with the time inside Redis, in microseconds a call.
async fn report(bench: &mut Bench, name: &str, calls: u32, took: Duration) -> f64 {
    let stats: String = bench.command(&["INFO", "commandstats"]).await;
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:"))
        .unwrap();
    let inside: f64 = line
        .split(',')
        .find_map(|field| field.strip_prefix("usec_per_call="))
        .unwrap()
        .parse()
        .unwrap();
    println!(
        "{name:<44} {inside:>10.1} {:>14.0} {:>16.0}",
        1e6 / inside,
        f64::from(calls) / took.as_secs_f64()
    );
    inside
}
