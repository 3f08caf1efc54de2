//! Redis' memory for users with a full year of check-ins each, part by part: what `used_memory` grows by.
//!
//! Rows are given away by the store itself (`rows_for`). The rest is written directly, since 365 check-ins of a million
//! users would take hours: the same keys, fields and TTLs, brought about as the scripts do (strings sized by a first
//! SETBIT, then filled). A sample is read back through the store, and checks in on the day after, to show that they are.

use chrono::{Datelike, Days, NaiveDate};
use tallyboard::checkin::record::{Done, Record};
use tallyboard::checkin::rows::{self, LAST_YEAR_BIT, YEAR_BYTES};
use tallyboard::checkin::{Reward, Rewards};
use tallyboard::day::Month;
use tallyboard::ids::UserId;
use tallyboard::keyspace::{Operation, Partition, Row};

use super::place::Bench;

const BATCH: u32 = 1_000;
const DAYS: u64 = 100;
const ROWS_A_SEGMENT: u32 = 1_024;
const SAMPLE: u32 = 300;

type Ids = fn(u32) -> String;

/// Eight digits, in no order.
fn eight_digits(i: u32) -> String {
    (10_000_000 + (u64::from(i) * 7_919_317) % 89_999_999).to_string()
}

/// Ten digits up to 4294967295.
fn ten_digits(i: u32) -> String {
    (u32::MAX - i).to_string()
}

/// Ten characters that are no number.
fn ten_characters(i: u32) -> String {
    format!("u{:09}", (u64::from(i) * 7_919_317) % 999_999_937)
}

struct Table {
    users: u32,
    before: i64,
}

impl Table {
    async fn row(&mut self, bench: &mut Bench, name: &str) -> f64 {
        let now = bench.used().await;
        let each = (now - self.before) as f64 / f64::from(self.users);
        println!("{name:<64} {each:>8.1}");
        self.before = now;
        each
    }
}

pub async fn measure(users: u32) {
    println!(
        "\n{:<64} {:>8}",
        format!("Redis' memory at {users} users with a full year each"),
        "bytes a user"
    );
    let everything = full_year(users).await;
    println!("{:<64} {everything:>8.1}", "everything");
    one_key_a_user(users).await;
    for (name, ids) in [
        ("ids such as 4294967295: both maps", ten_digits as Ids),
        (
            "ids of ten characters that are no number: both maps",
            ten_characters,
        ),
    ] {
        let mut bench = quiet().await;
        let mut table = table(&mut bench, users).await;
        give_rows(&bench, users, ids).await;
        table.row(&mut bench, name).await;
        bench.stop().await;
    }
}

/// A Redis that does nothing beside.
async fn quiet() -> Bench {
    let mut bench = Bench::start("2026-12-31T12:00:00Z", |settings| {
        settings.analytics.keep_days = DAYS as u32;
    })
    .await;
    bench.command::<()>(&["CONFIG", "SET", "appendonly", "no"]).await;
    bench
}

async fn table(bench: &mut Bench, users: u32) -> Table {
    Table {
        users,
        before: bench.used().await,
    }
}

async fn give_rows(bench: &Bench, users: u32, ids: Ids) {
    for first in (0..users).step_by(BATCH as usize) {
        let names: Vec<UserId> = (first..(first + BATCH).min(users))
            .map(|i| UserId::parse(&ids(i)).unwrap())
            .collect();
        bench.app.keyspace.rows_for(&names).await.unwrap();
    }
}

async fn full_year(users: u32) -> f64 {
    let mut bench = quiet().await;
    let mut table = table(&mut bench, users).await;
    let mut sum = 0.0;
    give_rows(&bench, users, eight_digits).await;
    sum += table
        .row(&mut bench, "maps user -> row and row -> user, 8-digit ids")
        .await;
    records(&mut bench, users).await;
    sum += table.row(&mut bench, "records: streak and wallet").await;
    years(&mut bench, users).await;
    sum += table.row(&mut bench, "rows of the year (goal: 50)").await;
    days(&mut bench, users, false).await;
    sum += table.row(&mut bench, "100 days' bitmaps of check-ins").await;
    println!("{:<64} {sum:>8.1}", "  these together (goal: 144)");
    days(&mut bench, users, true).await;
    sum += table.row(&mut bench, "100 days' bitmaps of activity").await;
    check_sample(&bench, users).await;
    bench.stop().await;
    sum
}

/// What the rules make of a year without a gap.
fn record() -> Record {
    let rewards = Rewards::from(&tallyboard::config::CheckIn::default());
    let first = NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
    let wallet = (1..=365).fold(Reward::default(), |held, day| held.plus(rewards.for_streak(day)));
    Record {
        done: Some(Done {
            first,
            last: first + Days::new(364),
            run: 365,
            longest: 365,
            total: 365,
            paid: rewards.for_streak(365),
            ended: Vec::new(),
        }),
        wallet,
    }
}

async fn records(bench: &mut Bench, users: u32) {
    let text = record().to_string();
    let p = Partition::number(0);
    for first in (0..users).step_by(BATCH as usize) {
        let mut pipe = redis::pipe();
        for row in (first..(first + BATCH).min(users)).map(Row::number) {
            let key = bench.app.keyspace.keys().record(p, row.bucket());
            pipe.cmd("HSET").arg(key).arg(row.field()).arg(&text).ignore();
        }
        pipe.query_async::<()>(&mut bench.redis).await.unwrap();
    }
}

async fn years(bench: &mut Bench, users: u32) {
    let mut row = [0_u8; YEAR_BYTES as usize];
    (0..365).for_each(|day| row[day / 8] |= 0x80 >> (day % 8));
    for first in (0..users).step_by(ROWS_A_SEGMENT as usize) {
        let rows = (users - first).min(ROWS_A_SEGMENT) as usize;
        let segment = rows::year_segment(Row::number(first));
        let key = bench
            .app
            .keyspace
            .keys()
            .year(Partition::number(0), 2026, segment);
        let mut pipe = redis::pipe();
        pipe.cmd("SETBIT").arg(&key).arg(LAST_YEAR_BIT).arg(0).ignore();
        pipe.cmd("SETRANGE")
            .arg(&key)
            .arg(0)
            .arg(row.repeat(rows))
            .ignore();
        pipe.cmd("EXPIRE").arg(&key).arg(1_000_000).ignore();
        pipe.query_async::<()>(&mut bench.redis).await.unwrap();
    }
}

/// Everybody's bit in each of the last days, and the counters; a bitmap is sized as `day.lua` does.
async fn days(bench: &mut Bench, users: u32, activity: bool) {
    const ROWS_A_BITMAP: u32 = 1 << 20;
    let today = NaiveDate::from_ymd_opt(2026, 12, 31).unwrap();
    for day in today.iter_days().rev().take(DAYS as usize) {
        let (keys, p) = (bench.app.keyspace.keys(), Partition::number(0));
        let mut pipe = redis::pipe();
        for first in (0..users).step_by(ROWS_A_BITMAP as usize) {
            let segment = rows::day_segment(Row::number(first));
            let key = match activity {
                true => keys.active(p, day, segment),
                false => keys.day(p, day, segment),
            };
            let rows = (users - first).min(ROWS_A_BITMAP);
            let size = (u64::from(users) * 33 / 32 - u64::from(first)).min(ROWS_A_BITMAP.into());
            let mut bits = vec![0xff_u8; (rows / 8) as usize];
            (0..rows % 8).for_each(|bit| {
                if bit == 0 {
                    bits.push(0);
                }
                *bits.last_mut().unwrap() |= 0x80 >> bit;
            });
            pipe.cmd("SETBIT").arg(&key).arg(size - 1).arg(0).ignore();
            pipe.cmd("SETRANGE").arg(&key).arg(0).arg(bits).ignore();
            pipe.cmd("EXPIRE").arg(&key).arg(1_000_000).ignore();
        }
        let counter = match activity {
            true => keys.active_count(p, day),
            false => keys.day_count(p, day),
        };
        pipe.cmd("INCRBY").arg(&counter).arg(users).ignore();
        pipe.cmd("EXPIRE").arg(&counter).arg(1_000_000).ignore();
        pipe.query_async::<()>(&mut bench.redis).await.unwrap();
    }
}

/// Reads some users back through the store; the day after, they check in and it is their 366th in a row.
async fn check_sample(bench: &Bench, users: u32) {
    let (app, wanted) = (&bench.app, record());
    let today = NaiveDate::from_ymd_opt(2026, 12, 31).unwrap();
    let tomorrow = "2027-01-01T12:00:00Z".parse().unwrap();
    bench.clock.set(tomorrow);
    for i in (0..users).step_by((users / SAMPLE).max(1) as usize) {
        let user = UserId::parse(&eight_digits(i)).unwrap();
        assert_eq!(app.checkins.record(&user).await.unwrap(), Some(wanted.clone()));
        let dates = app
            .checkins
            .dates(&user, today - Days::new(500), today, today)
            .await
            .unwrap()
            .unwrap();
        assert!(dates.len() == 365 && dates.keys().all(|date| date.year() == 2026));
        let (_, month) = app.checkins.month(&user, Month::of(today), today).await.unwrap();
        assert_eq!(month.len(), 31);
        let receipt = app
            .checkins
            .check_in(&user, tomorrow, &Operation::unique(tomorrow))
            .await
            .unwrap();
        assert_eq!(receipt.record.done.unwrap().run, 366);
    }
    println!(
        "{:<64} {:>8}",
        "  a sample of them read back and checked in by the store", "right"
    );
}

/// The usual design: a string of a year's bits for each user, without a TTL.
async fn one_key_a_user(users: u32) {
    let mut bench = quiet().await;
    let mut table = table(&mut bench, users).await;
    for first in (0..users).step_by(BATCH as usize) {
        let mut pipe = redis::pipe();
        for i in first..(first + BATCH).min(users) {
            let key = format!("checkin:{}:2026", eight_digits(i));
            pipe.cmd("SET")
                .arg(key)
                .arg(&[0xff_u8; YEAR_BYTES as usize])
                .ignore();
        }
        pipe.query_async::<()>(&mut bench.redis).await.unwrap();
    }
    table
        .row(
            &mut bench,
            "beside: one key a user and year instead of the rows of the year",
        )
        .await;
    bench.stop().await;
}
