//! A hundred days over ten million rows, and a year: right, and never long at a time.

use chrono::NaiveDate;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, cmd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::harness::*;

const SEGMENT: u32 = 1 << 20;

/// How many rows and days, the last of them 2027-04-10.
#[derive(Clone, Copy)]
struct Scale {
    partitions: u32,
    rows: u32,
    days: u64,
}

impl Scale {
    fn first(self) -> NaiveDate {
        date("2027-04-10") - chrono::Days::new(self.days - 1)
    }
}

/// Writes bitmaps of these days; answers how many rows are set on any of them, and how many on each.
async fn synthetic(redis: &mut MultiplexedConnection, scale: Scale, random: &mut StdRng) -> (u64, u64) {
    let Scale {
        partitions,
        rows,
        days,
    } = scale;
    let (mut any, mut every) = (0, 0);
    for p in 0..partitions {
        let rows = rows / partitions;
        cmd("HSET")
            .arg(format!("tb:{{{p}}}:generation"))
            .arg("rows")
            .arg(rows)
            .exec_async(redis)
            .await
            .unwrap();
        for segment in 0..rows.div_ceil(SEGMENT) {
            let bytes = (rows - segment * SEGMENT).min(SEGMENT) as usize / 8;
            let mut regulars = vec![0_u8; bytes];
            random.fill_bytes(&mut regulars[..bytes / 2]);
            let (mut all, mut common) = (vec![0_u8; bytes], vec![0xFF_u8; bytes]);
            for day in 0..days {
                // Newcomers make each day's bitmap longer than the one before, as they do in life.
                let length = bytes / 2 + bytes / 2 * (day as usize + 1) / days as usize;
                let mut bits = regulars[..length].to_vec();
                for _ in 0..500 {
                    let at = random.next_u32() as usize % length;
                    bits[at] |= 1 << (random.next_u32() % 8);
                }
                for (i, bit) in bits.iter().enumerate() {
                    all[i] |= bit;
                    common[i] &= bit;
                }
                common[length..].fill(0);
                let date = scale.first() + chrono::Days::new(day);
                let key = format!("tb:{{{p}}}:day:{date}:{segment}");
                cmd("SET").arg(key).arg(bits).exec_async(redis).await.unwrap();
            }
            let ones = |bits: &[u8]| bits.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
            any += ones(&all);
            every += ones(&common);
        }
    }
    (any, every)
}

/// The longest command since the log was emptied, in microseconds.
async fn longest(redis: &mut MultiplexedConnection) -> i64 {
    let log: Vec<(i64, i64, i64, Vec<String>, String, String)> = cmd("SLOWLOG")
        .arg("GET")
        .arg(-1)
        .query_async(redis)
        .await
        .unwrap();
    log.into_iter().map(|entry| entry.2).max().unwrap_or(0)
}

/// What Redis executes while `work` goes on, a line each.
pub async fn overheard<T>(app: &TestApp, work: impl Future<Output = T>) -> (T, Vec<String>) {
    let ConnectionAddr::Unix(socket) = app.running().redis_address().addr().clone() else {
        panic!("a private Redis has a socket")
    };
    let mut line = UnixStream::connect(socket).await.unwrap();
    line.write_all(b"MONITOR\r\n").await.unwrap();
    let mut ok = [0; 5];
    line.read_exact(&mut ok).await.unwrap();
    let done = work.await;
    let mut redis = app.redis().await;
    cmd("ECHO")
        .arg("that was all")
        .exec_async(&mut redis)
        .await
        .unwrap();
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("that was all") {
        line.read_buf(&mut heard).await.unwrap();
    }
    let heard = String::from_utf8_lossy(&heard).into_owned();
    (done, heard.lines().map(str::to_owned).collect())
}

/// The words of a line that was overheard.
pub fn words(line: &str) -> Vec<String> {
    line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Each BITOP writes to a temporary key, of 16 keys at most, and a TTL follows at once; then the key is removed.
fn temporary_keys_are_tidy(lines: &[String]) -> usize {
    let lua: Vec<Vec<String>> = lines
        .iter()
        .filter(|line| line.contains(" lua]"))
        .map(|line| words(line))
        .collect();
    let (mut made, mut removed) = (0, 0);
    for (i, words) in lua.iter().enumerate() {
        match words[0].as_str() {
            "BITOP" => {
                assert!(
                    words.len() <= 3 + 16 && words[2].contains(":temporary:"),
                    "{words:?}"
                );
                assert_eq!(lua[i + 1], ["EXPIRE", &words[2], "60"]);
                made += usize::from(!words[3..].contains(&words[2]));
            }
            "UNLINK" => removed += 1,
            _ => {}
        }
    }
    assert_eq!(made, removed);
    made
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_days_over_ten_million_rows_never_hold_redis_up() {
    for partitions in both_partitions() {
        never_held_up(Scale {
            partitions,
            rows: 10_000_000,
            days: 100,
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_range_never_holds_redis_up() {
    for partitions in both_partitions() {
        never_held_up(Scale {
            partitions,
            rows: 2 * SEGMENT, // with one partition two whole segments: a script is about one
            days: 366,
        })
        .await;
    }
}

async fn never_held_up(scale: Scale) {
    let Scale {
        partitions,
        rows,
        days,
    } = scale;
    let from = scale.first().to_string();
    let app = spawn_app()
        .partitions(partitions)
        .at("2027-04-10T12:00:00Z")
        .with(off_disk)
        .with(|settings| settings.analytics.keep_days = 366)
        .await;
    let mut redis = app.redis().await;
    let (any, every) = synthetic(&mut redis, scale, &mut StdRng::seed_from_u64(7)).await;
    cmd("CONFIG")
        .arg("SET")
        .arg("slowlog-log-slower-than")
        .arg(100)
        .exec_async(&mut redis)
        .await
        .unwrap();
    cmd("CONFIG")
        .arg("SET")
        .arg("slowlog-max-len")
        .arg(10_000)
        .exec_async(&mut redis)
        .await
        .unwrap();
    // Others use this machine too, and what they take is no work of Redis: the best of some tries counts.
    let mut best = i64::MAX;
    for _ in 0..8 {
        cmd("SLOWLOG").arg("RESET").exec_async(&mut redis).await.unwrap();
        let analyst = app.analyst();
        assert_eq!(
            analyst.active(&from, "2027-04-10", "CHECK_IN", false, None).await,
            any
        );
        assert_eq!(
            analyst.active(&from, "2027-04-10", "CHECK_IN", true, None).await,
            every
        );
        best = best.min(longest(&mut redis).await);
    }
    #[allow(clippy::print_stderr)] // the figure itself
    {
        eprintln!("P = {partitions}, {days} days over {rows} rows: the longest command took {best} us");
    }
    assert!(best < 10_000, "{best} us");

    let caller = app.analyst();
    let asking = caller.active(&from, "2027-04-10", "CHECK_IN", false, None);
    let (count, lines) = overheard(&app, asking).await;
    assert_eq!(count, any);
    let segments = (rows / partitions).div_ceil(SEGMENT) * partitions;
    assert_eq!(temporary_keys_are_tidy(&lines), segments as usize);
    let left: Vec<String> = cmd("KEYS")
        .arg("*temporary*")
        .query_async(&mut redis)
        .await
        .unwrap();
    assert_eq!(left, [""; 0]);
}
