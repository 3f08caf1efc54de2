//! History from files: what goes in comes out right through GraphQL, once, whatever happens on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use chrono::{DateTime, Days, Months, NaiveDate, Utc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tallyboard::config::{Board as Configured, Settings};
use tallyboard::day::Period;
use tallyboard::ids::UserId;
use tallyboard::import::{self, Summary};
use tokio::process::{Child, Command};

use crate::harness::*;

// ---------------------------------------------------------------------------------------------------------- real data

/// A file of the real data, from the directory that `TALLYBOARD_DATA` names, or else from `../shared/data`, seen from here or
/// from the checkout that this one is a worktree or a clone of. If it is not there, the test says so and has nothing to
/// show; under `TALLYBOARD_DATA_REQUIRED=1` it fails.
pub fn real_data(name: &str) -> Option<String> {
    let required = std::env::var("TALLYBOARD_DATA_REQUIRED").is_ok_and(|set| set == "1");
    let found = data_in(&data_directories(), name, required);
    if found.is_none() {
        // Past the harness, which keeps to itself what a test that passes prints.
        let said = writeln!(
            std::io::stderr(),
            "skipped: no data ({name}; TALLYBOARD_DATA names its directory)"
        );
        said.unwrap();
    }
    found
}

fn data_in(directories: &[PathBuf], name: &str, required: bool) -> Option<String> {
    let mut texts = directories
        .iter()
        .map(|directory| std::fs::read_to_string(directory.join(name)));
    let found = texts.find_map(Result::ok);
    assert!(
        found.is_some() || !required,
        "no {name} in any of {directories:?}"
    );
    found
}

fn data_directories() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os("TALLYBOARD_DATA") {
        return vec![named.into()];
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let git = |args: &[&str]| {
        let said = std::process::Command::new("git")
            .current_dir(here)
            .args(args)
            .output();
        said.map_or_else(
            |_| String::new(),
            |said| String::from_utf8_lossy(&said.stdout).trim().to_owned(),
        )
    };
    let main = git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    let origin = git(&["config", "--get", "remote.origin.url"]);
    let main = Path::new(&main).parent().unwrap_or(here);
    [here, main, Path::new(&origin)]
        .iter()
        .map(|checkout| checkout.join("../shared/data"))
        .collect()
}

#[test]
fn data_that_is_missing_fails_a_test_only_where_it_is_required() {
    let dir = tempfile::TempDir::new().unwrap();
    let other = tempfile::TempDir::new().unwrap();
    std::fs::write(other.path().join("visits.csv"), "user,at").unwrap();
    let both = [dir.path().to_owned(), other.path().to_owned()];
    assert_eq!(data_in(&both, "visits.csv", true).as_deref(), Some("user,at"));
    assert_eq!(data_in(&both[..1], "visits.csv", false), None);
    let required = std::panic::catch_unwind(|| data_in(&both[..1], "visits.csv", true));
    assert!(required.is_err());
}

pub struct Purchase {
    pub user: String,
    pub date: NaiveDate,
    cents: i64,
}

pub fn purchases_in(text: &str) -> Vec<Purchase> {
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        Purchase {
            user: fields[0].into(),
            date: date(fields[1]),
            cents: fields[2].parse().unwrap(),
        }
    });
    rows.collect()
}

/// Points, and the order in which equal points were reached: of scores in the order they are to be applied in.
fn standings<'p>(scores: impl IntoIterator<Item = (&'p str, i64)>) -> Vec<(&'p str, i64)> {
    let mut held: BTreeMap<&str, (i64, usize)> = BTreeMap::new();
    for (turn, (user, points)) in scores.into_iter().enumerate() {
        match held.get_mut(user) {
            None => {
                held.insert(user, (points, turn));
            }
            Some(_) if points == 0 => {}
            Some(entry) => *entry = (entry.0 + points, turn),
        }
    }
    let mut order: Vec<_> = held.into_iter().collect();
    order.sort_by_key(|&(_, (points, turn))| (-points, turn));
    order
        .into_iter()
        .map(|(user, (points, _))| (user, points))
        .collect()
}

/// Current, longest and total of dates in a calendar without skipped days.
fn plain_streak(dates: &BTreeSet<NaiveDate>, today: NaiveDate) -> (u32, u32, u32) {
    let (mut run, mut longest, mut last) = (0, 0, None);
    for &day in dates {
        run = if last == day.pred_opt() { run + 1 } else { 1 };
        longest = longest.max(run);
        last = Some(day);
    }
    let open = last == Some(today) || last == today.pred_opt();
    (if open { run } else { 0 }, longest, dates.len() as u32)
}

fn by_user(purchases: &[Purchase]) -> BTreeMap<&str, BTreeSet<NaiveDate>> {
    let mut days: BTreeMap<&str, BTreeSet<NaiveDate>> = BTreeMap::new();
    for purchase in purchases {
        days.entry(&purchase.user).or_default().insert(purchase.date);
    }
    days
}

#[tokio::test(flavor = "multi_thread")]
async fn every_known_figure_of_the_purchases_comes_back() {
    let Some(text) = real_data("purchases.csv") else {
        return;
    };
    let purchases = purchases_in(&text);
    let app = purchase_app(1).await;
    let file = app.file("purchases.csv", &text);
    let fresh = summary(69_659, 67_591, 69_659 - 67_591, 0);
    let both = tokio::join!(check_ins(&app, &file), scores(&app, &file, "points"));
    assert_eq!(both, (fresh, summary(69_659, 69_659, 0, 0)));

    let days = by_user(&purchases);
    let streaks = all_streaks(&app, days.keys().copied()).await;
    compare_streaks(&days, &streaks, date("1998-07-01"));
    assert_eq!(streaks.iter().map(|streak| streak.2).sum::<u32>(), 67_591);
    let longest = streaks.iter().map(|streak| streak.1).max();
    assert_eq!(longest, Some(13));
    let of: Vec<&str> = days
        .keys()
        .zip(&streaks)
        .filter(|(_, streak)| streak.1 == 13)
        .map(|(user, _)| *user)
        .collect();
    assert_eq!(of, ["19339"]);
    compare_check_ins(&app, &days).await;

    let board = app.service().top("points", "ALL_TIME", 2).await;
    assert_eq!(board.participants, 23_570);
    assert_eq!(board.order(), [("07592", 1_399_093), ("14048", 897_633)]);
    let zero = standings_of(&purchases, None)
        .into_iter()
        .find(|(_, points)| *points == 0)
        .unwrap();
    let last = app.service().rank("points", "ALL_TIME", zero.0).await.unwrap();
    assert_eq!((last.points, last.dense), (0, 10_078), "no total is below 0");
    compare_boards(&app, &purchases, true).await;

    // The same again, after a restart: nothing moves.
    let before = everything(&app, &days).await;
    let app = app.restarted(|_| {}).await;
    let file = app.file("purchases.csv", &text);
    let nothing = summary(69_659, 0, 69_659, 0);
    let both = tokio::join!(check_ins(&app, &file), scores(&app, &file, "points"));
    assert_eq!(both, (nothing, nothing));
    assert_eq!(everything(&app, &days).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn purchases_spread_over_eight_partitions_are_the_same() {
    let Some(text) = real_data("purchases.csv") else {
        return;
    };
    let part: String = text.lines().take(8_001).flat_map(|line| [line, "\n"]).collect();
    let purchases = purchases_in(&part);
    let app = purchase_app(8).await;
    let file = app.file("purchases.csv", &part);
    let days = by_user(&purchases);
    let distinct = days.values().map(|days| days.len() as u64).sum();
    assert_eq!(
        check_ins(&app, &file).await,
        summary(8_000, distinct, 8_000 - distinct, 0)
    );
    assert_eq!(scores(&app, &file, "points").await, summary(8_000, 8_000, 0, 0));
    let streaks = all_streaks(&app, days.keys().copied()).await;
    compare_streaks(&days, &streaks, date("1998-07-01"));
    compare_check_ins(&app, &days).await;
    compare_boards(&app, &purchases, false).await;

    let before = everything(&app, &days).await;
    assert_eq!(check_ins(&app, &file).await, summary(8_000, 0, 8_000, 0));
    assert_eq!(scores(&app, &file, "points").await, summary(8_000, 0, 8_000, 0));
    assert_eq!(everything(&app, &days).await, before);
    let app = app.restarted(|_| {}).await;
    let file = app.file("purchases.csv", &part);
    assert_eq!(check_ins(&app, &file).await, summary(8_000, 0, 8_000, 0));
    assert_eq!(scores(&app, &file, "points").await, summary(8_000, 0, 8_000, 0));
    assert_eq!(everything(&app, &days).await, before);
}

pub async fn purchase_app(partitions: u32) -> TestApp {
    let keeping_all = |settings: &mut Settings| {
        settings.board = vec![Configured {
            id: "points".into(),
            periods: vec![Period::AllTime, Period::Month],
            ..Default::default()
        }];
        settings.checkin.keep_years = 2;
        settings.retention.month_boards_days = 1_000;
        settings.analytics.keep_days = 700;
    };
    spawn_app()
        .at("1998-07-01T00:00:00Z")
        .partitions(partitions)
        .with(keeping_all)
        .await
}

fn compare_streaks(days: &BTreeMap<&str, BTreeSet<NaiveDate>>, shown: &[(u32, u32, u32)], today: NaiveDate) {
    assert_eq!(days.len(), shown.len());
    for ((user, dates), shown) in days.iter().zip(shown) {
        assert_eq!(*shown, plain_streak(dates, today), "{user}: {dates:?}");
    }
}

/// Of those with the most check-ins, and of every hundredth.
async fn compare_check_ins(app: &TestApp, days: &BTreeMap<&str, BTreeSet<NaiveDate>>) {
    let some: Vec<_> = days
        .iter()
        .enumerate()
        .filter(|(i, (_, dates))| i % 100 == 0 || dates.len() > 60)
        .map(|(_, (user, dates))| (*user, dates))
        .collect();
    assert!(some.len() > 20);
    let shown = all_check_ins(
        app,
        some.iter().map(|(user, _)| *user),
        "1997-01-01",
        "1998-06-30",
    );
    for ((user, dates), shown) in some.iter().zip(shown.await) {
        assert_eq!(&shown, *dates, "{user}");
    }
}

/// The standings of all time, or of a month: purchases by date, then by their place in the file.
fn standings_of(purchases: &[Purchase], month: Option<NaiveDate>) -> Vec<(&str, i64)> {
    let mut within: Vec<&Purchase> = purchases
        .iter()
        .filter(|p| month.is_none_or(|first| (first..first + Months::new(1)).contains(&p.date)))
        .collect();
    within.sort_by_key(|p| p.date);
    standings(within.into_iter().map(|p| (p.user.as_str(), p.cents)))
}

/// The best 500 and the places of some of the others, for all time and some months.
async fn compare_boards(app: &TestApp, purchases: &[Purchase], one_partition: bool) {
    let months = ["1997-01-15", "1997-02-28", "1998-06-30"];
    for on in [None].into_iter().chain(months.map(Some)) {
        let first_of = |on| date(on) - Days::new(u64::from(chrono::Datelike::day0(&date(on))));
        let wanted = standings_of(purchases, on.map(first_of));
        let board = best(app, "points", on).await;
        assert_eq!(board.participants, wanted.len() as u64, "{on:?}");
        let shown = board.order();
        if one_partition {
            assert_eq!(shown, wanted[..shown.len()], "{on:?}");
        } else {
            // Between partitions equal points may stand either way.
            let points = |order: &[(&str, i64)]| order.iter().map(|(_, points)| *points).collect::<Vec<_>>();
            assert_eq!(points(&shown), points(&wanted[..shown.len()]), "{on:?}");
        }
        let sample: Vec<_> = wanted
            .iter()
            .enumerate()
            .step_by(97)
            .chain(wanted.iter().enumerate().next_back())
            .collect();
        let span = match on {
            None => "span: { period: ALL_TIME }".to_owned(),
            Some(on) => format!("span: {{ period: MONTH }}, on: \"{on}\""),
        };
        let places = each(app, sample.iter().map(|(_, (user, _))| *user), |user| {
            format!("rank(board: \"points\", {span}, userId: \"{user}\") {{ {STANDING} }}")
        });
        let distinct: Vec<i64> = wanted
            .iter()
            .map(|(_, points)| -points)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let places = places.await;
        for ((place, (user, points)), shown) in sample.into_iter().zip(places) {
            let shown: Standing = serde_json::from_value(shown).unwrap();
            let better = wanted.partition_point(|(_, other)| other > points) as u64;
            assert_eq!((shown.user.id.as_str(), shown.points), (*user, *points), "{on:?}");
            assert_eq!(shown.competition, better + 1, "{user} {on:?}");
            let dense = distinct.partition_point(|other| *other < -points) as u64;
            assert_eq!(shown.dense, dense + 1, "{user} {on:?}");
            if one_partition {
                assert_eq!(shown.rank, place as u64 + 1, "{user} {on:?}");
            }
        }
    }
}

/// What an import that changes nothing must leave as it is.
async fn everything(
    app: &TestApp,
    days: &BTreeMap<&str, BTreeSet<NaiveDate>>,
) -> (Vec<Board>, Vec<(u32, u32, u32)>) {
    let mut boards = Vec::new();
    for on in [None, Some("1997-02-28"), Some("1998-06-30")] {
        boards.push(best(app, "points", on).await);
    }
    let some = days.keys().copied().step_by(10);
    (boards, all_streaks(app, some).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_count_for_the_days_of_the_zone_in_whatever_order_the_file_has_them() {
    let Some(text) = real_data("visits.csv") else {
        return;
    };
    let visits: Vec<(&str, DateTime<Utc>)> = text
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(user, instant)| (user, at(instant)))
        .collect();
    for zone in [
        chrono_tz::UTC,
        chrono_tz::Asia::Kolkata,
        chrono_tz::America::Los_Angeles,
    ] {
        let mut days: BTreeMap<&str, BTreeSet<NaiveDate>> = BTreeMap::new();
        for (user, instant) in &visits {
            let local = instant.with_timezone(&zone).date_naive();
            days.entry(user).or_default().insert(local);
        }
        let distinct = days.values().map(|days| days.len() as u64).sum();
        for text in [text.clone(), shuffled(&text)] {
            let app = spawn_app()
                .zone(zone.name())
                .at("2015-05-22T12:00:00Z")
                .partitions(8)
                .await;
            let file = app.file("visits.csv", &text);
            let wanted = summary(10_000, distinct, 10_000 - distinct, 0);
            assert_eq!(check_ins(&app, &file).await, wanted, "{zone}");
            let shown = all_check_ins(&app, days.keys().copied(), "2015-05-10", "2015-05-22").await;
            for ((user, dates), shown) in days.iter().zip(shown) {
                assert_eq!(shown, *dates, "{user} in {zone}");
            }
        }
    }
}

// -------------------------------------------------------------------------------------------------- order, and once only

/// Scores with many equal sums, many at one instant and some less than a millisecond apart, in no order.
fn crowded_scores(rows: usize) -> String {
    let mut text = String::from("user,at,points\n");
    for row in 0..rows {
        // Fixed numbers that look like chance.
        let chance = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let (user, points) = (chance % 60, (chance >> 8) % 5);
        let instant = at("2027-01-30T00:00:00Z")
            + chrono::TimeDelta::hours(((chance >> 16) % 70) as i64)
            + chrono::TimeDelta::microseconds(((chance >> 40) % 3) as i64 * 400);
        let instant = instant.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        writeln!(text, "user-{user},{instant},{}", points as i64 - 1).unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_count_by_instant_and_then_by_their_place_in_the_file() {
    let text = crowded_scores(1_500);
    let mut rows: Vec<&str> = text.lines().skip(1).collect();
    rows.sort_by_key(|row| at(row.split(',').nth(1).unwrap()));
    let sorted = format!("user,at,points\n{}\n", rows.join("\n"));
    assert_ne!(text, sorted);
    let within = |month: &str| {
        standings(rows.iter().filter(|row| row.contains(month)).map(|row| {
            let fields: Vec<&str> = row.split(',').collect();
            (fields[0], fields[2].parse().unwrap())
        }))
    };
    for partitions in both_partitions() {
        let boards = ["shuffled", "sorted"];
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-02-10T00:00:00Z")
            .with(|settings| {
                settings.board = boards
                    .map(|id| Configured {
                        id: id.into(),
                        ..Default::default()
                    })
                    .into();
            })
            .await;
        for (board, text) in boards.into_iter().zip([&text, &sorted]) {
            let file = app.file(board, text);
            assert_eq!(scores(&app, &file, board).await, summary(1_500, 1_500, 0, 0));
        }
        for (on, month) in [
            (None, "2027-"),
            (Some("2027-01-31"), "2027-01-"),
            (Some("2027-02-01"), "2027-02-"),
        ] {
            let wanted = within(month);
            let [shuffled, sorted] = [best(&app, boards[0], on).await, best(&app, boards[1], on).await];
            let shuffled = shuffled.order();
            assert_eq!(shuffled, sorted.order(), "{on:?}");
            // Between partitions equal points may stand either way; within one the order is exact.
            for partition in 0..partitions {
                let keyspace = &app.running().app.keyspace;
                let here = |user: &str| {
                    keyspace.partition_of(&UserId::parse(user).unwrap()).index() == partition as usize
                };
                let shown: Vec<_> = shuffled.iter().filter(|(user, _)| here(user)).collect();
                let wanted: Vec<_> = wanted.iter().filter(|(user, _)| here(user)).collect();
                assert_eq!(shown.len(), wanted.len());
                for (shown, wanted) in shown.into_iter().zip(wanted) {
                    assert_eq!(shown, wanted, "{on:?}, P = {partitions}");
                }
            }
        }
    }
}

/// Ten thousand rows, and what they add up to: check-in dates, points, and how often a board changes.
struct Long {
    text: String,
    dates: BTreeMap<String, BTreeSet<NaiveDate>>,
    points: BTreeMap<String, i64>,
    changes: u64,
}

fn long_file(rows: u64) -> Long {
    let mut long = Long {
        text: "user,date,points\n".into(),
        dates: BTreeMap::new(),
        points: BTreeMap::new(),
        changes: rows,
    };
    for row in 0..rows {
        let chance = row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24;
        let (user, date) = (
            format!("user-{}", chance % 250),
            date("2026-03-01") + Days::new((chance >> 12) % 400),
        );
        let points = ((chance >> 8) % 1_000) as i64 + 1; // never 0, so each changes the board
        writeln!(long.text, "{user},{date},{points}").unwrap();
        long.dates.entry(user.clone()).or_default().insert(date);
        *long.points.entry(user).or_default() += points;
    }
    long
}

impl Long {
    /// That each row counted once: sums show what was lost, and the version what was done twice.
    async fn holds(&self, app: &TestApp) {
        let board = best(app, "points", None).await;
        let wanted = self.points.iter().map(|(user, points)| (user.as_str(), *points));
        let shown: BTreeMap<&str, i64> = board.order().into_iter().collect();
        assert_eq!(shown, wanted.collect());
        assert_eq!(board.version, self.changes);
    }

    async fn dates_hold(&self, app: &TestApp) {
        let users = || self.dates.keys().map(String::as_str);
        let today = app.clock.now().date_naive();
        let streaks = all_streaks(app, users()).await;
        let check_ins = all_check_ins(app, users(), "2026-03-01", "2027-05-01").await;
        for (((user, dates), streak), shown) in self.dates.iter().zip(streaks).zip(check_ins) {
            assert_eq!(shown, *dates, "{user}");
            assert_eq!(streak, plain_streak(dates, today), "{user}");
        }
    }
}

async fn long_app(partitions: u32) -> TestApp {
    let keeping_all = |settings: &mut Settings| settings.retention.month_boards_days = 1_000;
    let app = spawn_app().at("2027-05-01T12:00:00Z").partitions(partitions);
    app.with(|settings| {
        keeping_all(settings);
        settings.board[0].periods = vec![Period::AllTime, Period::Month];
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_killed_half_way_and_run_again_doubles_nothing() {
    let long = long_file(10_000);
    let app = long_app(8).await;
    let file = app.file("long.csv", &long.text);
    let mut board = watch_points(&app).await;
    for half_way in [1_500, 5_000] {
        let mut import = app.begin("scores", &file);
        until_version(&mut board, half_way).await;
        kill(&mut import).await;
        let version = best(&app, "points", None).await.version;
        assert!(
            (half_way..10_000).contains(&version),
            "killed half-way: {version}"
        );
    }
    let ran = ended(app.begin("scores", &file)).await;
    let done = ran.summary();
    assert!(done.applied > 0 && done.known >= 5_000, "{done}");
    assert_eq!((done.rows, done.applied + done.known), (10_000, 10_000));
    long.holds(&app).await;

    let mut import = app.begin("check-ins", &file);
    let first = long.text.lines().nth(1).unwrap().split(',').next().unwrap();
    while app.user(first).streak().await.total == 0 {}
    kill(&mut import).await;
    let ran = ended(app.begin("check-ins", &file)).await;
    assert!(ran.summary().applied > 0, "{}", ran.err);
    long.dates_hold(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_imports_of_one_file_at_once_double_nothing() {
    let long = long_file(6_000);
    let app = long_app(1).await;
    let file = app.file("long.csv", &long.text);
    for kind in ["scores", "check-ins"] {
        let [one, other] = [app.begin(kind, &file), app.begin(kind, &file)];
        let (one, other) = (ended(one).await.summary(), ended(other).await.summary());
        for done in [one, other] {
            assert_eq!(
                (done.rows, done.applied + done.known, done.rejected),
                (6_000, 6_000, 0),
                "{kind}"
            );
        }
    }
    long.holds(&app).await;
    long.dates_hold(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_goes_on_when_redis_is_killed_under_it() {
    let long = long_file(8_000);
    let app = long_app(8).await;
    let file = app.file("long.csv", &long.text);
    let mut board = watch_points(&app).await;
    let killing = async {
        for half_way in [1_000, 4_000] {
            until_version(&mut board, half_way).await;
            kill_redis(&app);
        }
    };
    let (done, ()) = tokio::join!(scores(&app, &file, "points"), killing);
    assert_eq!(
        done,
        summary(8_000, 8_000, 0, 0),
        "what a lost answer hid is not called known"
    );
    long.holds(&app).await;

    let first = long.text.lines().nth(1).unwrap().split(',').next().unwrap();
    let killing = async {
        while app
            .running()
            .app
            .checkins
            .record(&UserId::parse(first).unwrap())
            .await
            .ok()
            .flatten()
            .is_none()
        {
            tokio::task::yield_now().await;
        }
        kill_redis(&app);
    };
    let (done, ()) = tokio::join!(check_ins(&app, &file), killing);
    let distinct = long.dates.values().map(BTreeSet::len).sum::<usize>() as u64;
    assert_eq!(done, summary(8_000, distinct, 8_000 - distinct, 0));
    long.dates_hold(&app).await;
}

// ---------------------------------------------------------------------------------------------------------- the command

#[tokio::test(flavor = "multi_thread")]
async fn check_ins_that_cannot_be_are_named_by_their_lines_and_change_nothing() {
    let app = spawn_app()
        .zone("Pacific/Apia")
        .at("2012-02-01T00:00:00Z") // 13:00 there, of 1 February still
        .with(|settings| settings.checkin.keep_years = 1)
        .await;
    let lines: &[(&[u8], &str)] = &[
        (b"user,date,note", ""),
        (b"amy,2012-01-05,good", ""),
        (b"a my,2012-01-06,", "a user id has no spaces"),
        (
            &[b"x".repeat(129), b",2012-01-06,".to_vec()].concat(),
            "this one has 129",
        ),
        (b",2012-01-06,", "this one has 0"),
        (b"", ""),
        (b"amy,2012-02-30,", "February 2012 has 29 days"),
        (b"amy,30.1.2012,", "is not a date"),
        (b"amy,2012-02-02,", "lies in the future"),
        (
            b"amy,2010-12-31,",
            "lies before the kept years, which begin 2011-01-01",
        ),
        (b"amy,2011-12-30,", "did not take place in Pacific/Apia"),
        (b"amy", "it has no date"),
        (b"am\xff,2012-01-06,", "its user is not UTF-8"),
        (b"\"bob\",2012-01-07,\"a note", ""),
        (b"", ""),
        (b"of three lines\"", ""),
        (b"bob,2012-01-32,", "January 2012 has 31 days"),
        (b" bob , 2012-02-01 ,today", ""),
        (
            b"zoe,2012-01,\"never closed",
            "(a quote makes it one row with the next 1 lines)",
        ),
        (b"bob,2012-01-09,", ""),
    ];
    let wanted: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .filter(|(_, (_, said))| !said.is_empty())
        .map(|(i, (_, said))| (i + 1, *said))
        .collect();
    for (variant, line_end, mark) in [
        ("as it is", &b"\n"[..], &b""[..]),
        ("windows", b"\r\n", b""),
        ("marked", b"\n", b"\xef\xbb\xbf"),
        ("old mac", b"\r", b""),
    ] {
        let text: Vec<&[u8]> = lines.iter().map(|(line, _)| *line).collect();
        let file = app.file("bad.csv", [mark, &text.join(line_end)].concat());
        let ran = ended(app.begin("check-ins", &file)).await;
        let rejected = ran.rejected();
        assert_eq!(rejected.len(), wanted.len(), "{variant}: {}", ran.err);
        for ((line, said), (wanted_line, wanted)) in rejected.iter().zip(&wanted) {
            assert_eq!(line, wanted_line, "{variant}: {said}");
            assert!(said.contains(wanted), "{variant}, line {line}: {said}");
        }
        let fresh = if variant == "as it is" { 3 } else { 0 };
        assert_eq!(ran.summary(), summary(15, fresh, 3 - fresh, 12), "{variant}");
    }
    let shown = all_check_ins(&app, ["amy", "bob"], "2011-01-01", "2012-02-01").await;
    assert_eq!(shown[0], BTreeSet::from([date("2012-01-05")]));
    assert_eq!(shown[1], BTreeSet::from([date("2012-01-07"), date("2012-02-01")]));
    let events: u64 = app.number(&["HGET", "tb:{0}:generation", "events"]).await;
    assert_eq!(events, 2, "one write a user");
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_that_cannot_be_are_named_by_their_lines_and_change_nothing() {
    let app = spawn_app()
        .at("2027-03-01T08:00:00Z")
        .with(|settings| {
            settings.board[0].max_points = 1_000;
            settings.board[0].periods = vec![Period::Day, Period::Month];
        })
        .await;
    let lines = [
        ("points,at,user", ""),
        ("999,2027-02-28T23:00:00Z,amy", ""),
        (",2027-02-28T23:00:00Z,amy", "\"\" is no whole number of points"),
        ("1.5,2027-02-28T23:00:00Z,amy", "\"1.5\" is no whole number"),
        ("ten,2027-02-28T23:00:00Z,amy", "\"ten\" is no whole number"),
        (
            "-9223372036854775808,2027-02-28T23:00:00Z,amy",
            "is no whole number",
        ),
        (
            "9223372036854775808,2027-02-28T23:00:00Z,amy",
            "is no whole number",
        ),
        (
            "2001,2027-02-28T23:00:00Z,amy",
            "2001 points lie beyond the board's 1000",
        ),
        ("-2001,2027-02-28T23:00:00Z,amy", "lie beyond the board's 1000"),
        ("5,2027-03-01T08:00:01Z,amy", "lies in the future"),
        ("5,2027-02-30T08:00:01Z,amy", "is no instant"),
        ("5,2027-02-28,amy", "is no instant"),
        ("5,2027-02-28T23:00:00Z", "it has no user"),
    ];
    let text = lines.map(|(line, _)| line).join("\n");
    let file = app.file("bad.csv", text);
    let ran = ended(app.begin("scores", &file)).await;
    let wanted = lines.iter().enumerate().filter(|(_, (_, said))| !said.is_empty());
    for ((line, said), (wanted_line, (_, wanted))) in ran.rejected().iter().zip(wanted) {
        assert_eq!(*line, wanted_line + 1, "{said}");
        assert!(said.contains(wanted), "line {line}: {said}");
    }
    assert_eq!(ran.summary(), summary(12, 1, 0, 11));

    // What is refused only when it is its turn: a sum beyond the board, a score of which nothing is kept any more.
    let late = "user,at,points\namy,2027-02-28T23:30:00Z,2\namy,2027-02-28T23:45:00Z,1\nzed,2020-01-01T00:00:00Z,7\n";
    let file = app.file("late.csv", late);
    let ran = ended(app.begin("scores", &file)).await;
    let rejected = ran.rejected();
    assert_eq!(rejected.len(), 2, "{}", ran.err);
    assert!(
        rejected[0].1.contains("kept any more") && rejected[0].0 == 4,
        "{rejected:?}"
    );
    assert!(
        rejected[1].1.contains("beyond the board's 1000 points") && rejected[1].0 == 2,
        "{rejected:?}"
    );
    assert_eq!(ran.summary(), summary(3, 1, 0, 2));
    let again = ended(app.begin("scores", &file)).await;
    assert_eq!(again.summary(), summary(3, 0, 3, 0));

    let board = best(&app, "points", Some("2027-02-01")).await;
    assert_eq!((board.order(), board.version), (vec![("amy", 1_000)], 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_none_is_refused_in_plain_words() {
    let app = spawn_app().await;
    let good = app.file("good.csv", "user,date,points\namy,2027-02-28,1\n");
    let absent = app.dir.path().join("absent.csv");
    let no_points = app.file("no-points.csv", "user,date\namy,2027-02-28\n");
    let no_user = app.file("no-user.csv", "name;date\namy;2027-02-28\n");
    let empty = app.file("empty.csv", "");
    let other = app.file("utf-16.csv", b"\xff\xfeu\0s\0e\0r\0,\0a\0t\0\n\0");
    let open_quote = app.file(
        "open-quote.csv",
        format!(
            "user,date,points\namy,2027-02-27,1\n\"zed,{}",
            "2027-02-28,1\n".repeat(90_000)
        ),
    );
    for (kind, file, wanted) in [
        ("scores", &absent, "absent.csv: No such file"),
        ("check-ins", &absent, "absent.csv: No such file"),
        ("check-ins", &app.data_dir(), "Is a directory"),
        (
            "scores",
            &no_points,
            "needs the columns user,date,points or user,at,points in its first line, and has user,date",
        ),
        (
            "check-ins",
            &no_user,
            "needs the columns user,date or user,at in its first line, and has name;date",
        ),
        ("check-ins", &empty, "and has nothing"),
        ("scores", &empty, "and has nothing"),
        ("check-ins", &other, "needs the columns"),
        (
            "scores",
            &open_quote,
            "line 3: the row that begins here is longer than 1 MiB",
        ),
    ] {
        let ran = ended(app.begin(kind, file)).await;
        ran.fails_with(wanted);
    }
    let ran = ended(
        app.command("scores", &good, &["--board", "nope"])
            .spawn()
            .unwrap(),
    )
    .await;
    ran.fails_with("there is no board \"nope\"");
    assert_eq!(best(&app, "points", None).await.version, 0);
    assert_eq!(app.user("amy").streak().await.total, 0);

    let header = app.file("header.csv", "user,date,points\r\n");
    for kind in ["check-ins", "scores"] {
        assert_eq!(
            ended(app.begin(kind, &header)).await.summary(),
            summary(0, 0, 0, 0)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_alone_starts_redis_itself_and_leaves_the_data_to_the_server() {
    let app = spawn_app().at("2027-03-01T08:00:00Z").partitions(8).await;
    app.user("amy").check_in().await;
    let now = app.clock.now();
    let import = |kind: &str, file: &Path| app.command(kind, file, &[]);
    let file = app.file(
        "alone.csv",
        "user,date,points\namy,2027-02-28,30\nzed,2027-02-27,40\n",
    );
    let mut commands = [import("check-ins", &file), import("scores", &file)];
    let (dir, settings) = app.stopped().await;
    for command in &mut commands {
        let ran = ended(command.spawn().unwrap()).await;
        assert_eq!(ran.summary(), summary(2, 2, 0, 0), "{}", ran.err);
        let left = tallyboard::keyspace::managed::running_socket(&dir.path().join("data"));
        assert_eq!(left, None, "its Redis ended with it");
    }
    let app = TestApp::start(dir, settings, now).await;
    let streak = app.user("amy").streak().await;
    assert_eq!((streak.current, streak.total), (2, 2));
    assert_eq!(app.user("zed").streak().await.total, 1);
    assert_eq!(
        best(&app, "points", None).await.order(),
        [("zed", 40), ("amy", 30)]
    );
    assert_eq!(
        ended(app.begin("scores", &file)).await.summary(),
        summary(2, 0, 2, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_whole_batches_comes_to_its_end() {
    let app = spawn_app().await;
    let rows: String = (0..1_000)
        .map(|row| format!("user-{},2027-02-28,1\n", row % 7))
        .collect();
    let file = app.file("batch.csv", format!("user,date,points\n{rows}"));
    assert_eq!(scores(&app, &file, "points").await, summary(1_000, 1_000, 0, 0));
    assert_eq!(scores(&app, &file, "points").await, summary(1_000, 0, 1_000, 0));
    assert_eq!(check_ins(&app, &file).await, summary(1_000, 7, 993, 0));
    assert_eq!(check_ins(&app, &file).await, summary(1_000, 0, 1_000, 0));
}

// -------------------------------------------------------------------------------------------------- against a plain model

#[derive(Debug, Clone)]
enum Step {
    /// Some users check in today.
    CheckIn(Vec<usize>),
    /// A file: users and how many days back.
    Import(Vec<(usize, u64)>),
    /// The clock goes on by some days.
    Later(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let back = prop_oneof![12 => 0_u64..45, 1 => Just(800_u64)];
    let step = prop_oneof![
        2 => prop::collection::vec(0..USERS, 1..3).prop_map(Step::CheckIn),
        3 => prop::collection::vec((0..USERS, back), 1..25).prop_map(Step::Import),
        3 => (0_u64..3).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 60)
}

const USERS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn random_imports_between_live_check_ins_are_a_plain_set_of_dates() {
    let mut runner = TestRunner::new(Config::default());
    for partitions in [1, 8, 1, 8] {
        let app = spawn_app().partitions(partitions).at("2027-12-05T12:00:00Z");
        let app = app.with(|settings| settings.checkin.keep_years = 1).await;
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let mut model = vec![BTreeSet::new(); USERS];
        let mut today = date("2027-12-05");
        for step in &steps {
            match step {
                Step::Later(days) => {
                    today = today + Days::new(*days);
                    app.set(&format!("{today}T12:00:00Z"));
                }
                Step::CheckIn(users) => {
                    for &user in users {
                        let receipt = app.user(&format!("user-{user}")).check_in().await;
                        let fresh = model[user].insert(today);
                        assert_eq!(receipt.outcome == "CHECKED_IN", fresh, "{steps:?}");
                    }
                }
                Step::Import(rows) => {
                    let (mut text, mut wanted) = (String::from("user,date\n"), summary(0, 0, 0, 0));
                    for &(user, back) in rows {
                        let date = today - Days::new(back);
                        writeln!(text, "user-{user},{date}").unwrap();
                        wanted.rows += 1;
                        if back == 800 {
                            wanted.rejected += 1;
                        } else if model[user].insert(date) {
                            wanted.applied += 1;
                        } else {
                            wanted.known += 1;
                        }
                    }
                    let file = app.file("part.csv", text);
                    assert_eq!(check_ins(&app, &file).await, wanted, "{steps:?}");
                }
            }
            let users: Vec<String> = (0..USERS).map(|user| format!("user-{user}")).collect();
            let users = || users.iter().map(String::as_str);
            let streaks = all_streaks(&app, users()).await;
            for (dates, streak) in model.iter().zip(streaks) {
                assert_eq!(streak, plain_streak(dates, today), "{today} {dates:?} {steps:?}");
            }
            let to = today.to_string();
            for (dates, shown) in model
                .iter()
                .zip(all_check_ins(&app, users(), "2027-10-01", &to).await)
            {
                assert_eq!(shown, *dates, "{steps:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_began_in_a_year_that_is_gone_goes_on_growing() {
    // The run's first days, of a year that leaves Redis, and those that make it 400.
    for (keep, first, last_of_old, gone, today) in [
        (1, "2026-12-01", "2027-12-31", "2026", "2028-01-04"),
        (0, "2027-01-01", "2027-12-31", "2027", "2028-02-04"),
    ] {
        let app = spawn_app().at(&format!("{last_of_old}T12:00:00Z"));
        let app = app.with(|settings| settings.checkin.keep_years = keep).await;
        let days = |from: &str, to: &str| {
            let rows: String = date(from)
                .iter_days()
                .take_while(|day| *day <= date(to))
                .map(|day| format!("amy,{day}\n"))
                .collect();
            format!("user,date\n{rows}")
        };
        let old = app.file("old.csv", days(first, last_of_old));
        check_ins(&app, &old).await;
        let amy = app.user("amy");
        let later = |days| (date(today) + Days::new(days)).to_string();
        let go_to = |day: &str| app.set(&format!("{day}T12:00:00Z"));

        go_to(today);
        let year = format!("tb:{{0}}:year:{gone}:0");
        assert_eq!(app.number::<u64>(&["DEL", &year]).await, 1);
        let new = app.file("new.csv", days("2028-01-01", today));
        check_ins(&app, &new).await;
        let streak = amy.streak().await;
        let shown = (streak.current, streak.longest, streak.total);
        assert_eq!(shown, (400, 400, 400), "kept: {keep}");

        go_to(&later(1));
        assert_eq!(amy.check_in().await.streak.current, 401);
        go_to(&later(4));
        let between = app.file("between.csv", days(&later(2), &later(3)));
        check_ins(&app, &between).await;
        assert_eq!(amy.check_in().await.streak.current, 404);
        let streak = amy.streak().await;
        assert_eq!((streak.longest, streak.total), (404, 404));
        // The old file again: the year that is gone is refused, the other is known.
        let again = check_ins(&app, &old).await;
        assert_eq!((again.applied, again.rejected > 0), (0, true), "{again}");
        assert_eq!(amy.streak().await, streak);
    }
}

// --------------------------------------------------------------------------------------------------------------- helpers

fn summary(rows: u64, applied: u64, known: u64, rejected: u64) -> Summary {
    Summary {
        rows,
        applied,
        known,
        rejected,
    }
}

pub async fn check_ins(app: &TestApp, file: &Path) -> Summary {
    import::check_ins::import(&app.running().app, file).await.unwrap()
}

async fn scores(app: &TestApp, file: &Path, board: &str) -> Summary {
    import::scores::import(&app.running().app, file, board)
        .await
        .unwrap()
}

/// The lines of a file but the first, in another order.
fn shuffled(text: &str) -> String {
    let (header, rows) = text.split_once('\n').unwrap();
    let mut rows: Vec<(u64, &str)> = rows
        .lines()
        .enumerate()
        .map(|(i, row)| ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15), row))
        .collect();
    rows.sort();
    let rows: Vec<&str> = rows.into_iter().map(|(_, row)| row).collect();
    format!("{header}\n{}\n", rows.join("\n"))
}

/// Asks the same field for each user, many at a time.
async fn each<'u>(
    app: &TestApp,
    users: impl IntoIterator<Item = &'u str>,
    field: impl Fn(&str) -> String,
) -> Vec<Value> {
    let users: Vec<&str> = users.into_iter().collect();
    let mut answers = Vec::with_capacity(users.len());
    for users in users.chunks(50) {
        let mut query = String::from("{");
        for (i, user) in users.iter().enumerate() {
            write!(query, " u{i}: {}", field(user)).unwrap();
        }
        query.push('}');
        let mut data = app.service().data(&query, json!({})).await;
        answers.extend((0..users.len()).map(|i| data[format!("u{i}")].take()));
    }
    answers
}

/// Current, longest and total of each.
async fn all_streaks<'u>(app: &TestApp, users: impl IntoIterator<Item = &'u str>) -> Vec<(u32, u32, u32)> {
    let answers = each(app, users, |user| {
        format!("streak(userId: \"{user}\") {{ current longest total }}")
    });
    let number = |value: &Value| value.as_u64().unwrap() as u32;
    let read = |streak: &Value| {
        (
            number(&streak["current"]),
            number(&streak["longest"]),
            number(&streak["total"]),
        )
    };
    answers.await.iter().map(read).collect()
}

async fn all_check_ins<'u>(
    app: &TestApp,
    users: impl IntoIterator<Item = &'u str>,
    from: &str,
    to: &str,
) -> Vec<BTreeSet<NaiveDate>> {
    let answers = each(app, users, |user| {
        format!("checkIns(userId: \"{user}\", from: \"{from}\", to: \"{to}\") {{ date }}")
    });
    let read = |days: &Value| {
        let days = days.as_array().unwrap().iter();
        days.map(|day| date(day["date"].as_str().unwrap())).collect()
    };
    answers.await.iter().map(read).collect()
}

/// The best 500 of all time, or of the month of a date.
async fn best(app: &TestApp, board: &str, on: Option<&str>) -> Board {
    let query = format!(
        "query ($board: ID!, $span: BoardSpan, $on: Date) {{ leaderboard(board: $board, span: $span, on: $on) {{
            id participants version top(first: 500) {{ {STANDING} }} }} }}"
    );
    let period = if on.is_some() { "MONTH" } else { "ALL_TIME" };
    let variables = json!({ "board": board, "span": { "period": period }, "on": on });
    app.service().field(&query, variables).await
}

async fn watch_points(app: &TestApp) -> Socket {
    let mut socket = Socket::open(&app.anonymous()).await;
    let query =
        "subscription { leaderboardChanged(board: \"points\", first: 1) { leaderboard { version } } }";
    socket.subscribe(query, json!({})).await;
    socket
}

async fn until_version(socket: &mut Socket, version: u64) {
    while socket.update().await["leaderboard"]["version"].as_u64().unwrap() < version {}
}

fn kill_redis(app: &TestApp) {
    let pid = app.running().redis_pid().unwrap().to_string();
    let status = std::process::Command::new("kill").args(["-9", &pid]).status();
    assert!(status.unwrap().success());
}

/// What a command left behind.
struct Ran {
    succeeded: bool,
    out: String,
    err: String,
}

impl Ran {
    /// What its one line on standard output says.
    fn summary(&self) -> Summary {
        assert!(self.succeeded, "{}", self.err);
        let [line] = self.out.lines().collect::<Vec<_>>()[..] else {
            panic!("one line, not {:?}", self.out)
        };
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [rows, applied, known, rejected] = numbers[..] else {
            panic!("{line}")
        };
        let summary = summary(rows, applied, known, rejected);
        assert_eq!(summary.to_string(), line);
        summary
    }

    /// The rejected lines: their numbers and why.
    fn rejected(&self) -> Vec<(usize, &str)> {
        let lines = self.err.lines().filter_map(|line| line.strip_prefix("line "));
        lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(number, said)| (number.parse().unwrap(), said))
            .collect()
    }

    fn fails_with(&self, wanted: &str) {
        assert!(!self.succeeded && self.out.is_empty(), "{}{}", self.out, self.err);
        let said = self
            .err
            .lines()
            .find_map(|line| line.strip_prefix("tallyboard: "));
        let said = said.unwrap_or_else(|| panic!("{}", self.err));
        assert!(said.contains(wanted), "{said:?} does not say {wanted:?}");
    }
}

async fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().await.unwrap();
    Ran {
        succeeded: output.status.success(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// With SIGKILL, while it runs.
async fn kill(child: &mut Child) {
    assert!(
        child.try_wait().unwrap().is_none(),
        "it has ended before it was killed"
    );
    child.kill().await.unwrap();
}

impl TestApp {
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Starts `import` on this app's data directory.
    fn begin(&self, kind: &str, file: &Path) -> Child {
        self.command(kind, file, &[]).spawn().unwrap()
    }

    /// The command with this app's settings and time.
    fn command(&self, kind: &str, file: &Path, flags: &[&str]) -> Command {
        let config = self.file("tallyboard.toml", toml(&self.settings));
        let mut command = Command::from(tallyboard(&["import", kind]));
        command.arg(file);
        command
            .arg("--config")
            .arg(config)
            .arg("--data-dir")
            .arg(self.data_dir());
        command.args(["--dev", "--now", &self.clock.now().to_rfc3339()]);
        match flags {
            [] if kind == "scores" => command.args(["--board", "points"]),
            flags => command.args(flags),
        };
        command.env("RUST_LOG", "warn");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    /// A number that Redis itself answers.
    async fn number<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.redis().await).await.unwrap()
    }
}

/// The settings that a test may have changed, as a configuration file.
pub fn toml(settings: &Settings) -> String {
    let Settings {
        redis, day, checkin, ..
    } = settings;
    let mut text = format!(
        "[redis]\npartitions = {}\ntimeout_ms = {}\n[day]\ntime_zone = {:?}\n[checkin]\nkeep_years = {}\n\
         [retention]\nmonth_boards_days = {}\n",
        redis.partitions,
        redis.timeout_ms,
        day.time_zone,
        checkin.keep_years,
        settings.retention.month_boards_days,
    );
    for board in &settings.board {
        let periods: Vec<_> = board.periods.iter().map(|period| period.as_str()).collect();
        writeln!(
            text,
            "[[board]]\nid = {:?}\nmax_points = {}\nperiods = {periods:?}",
            board.id, board.max_points
        )
        .unwrap();
    }
    text
}
