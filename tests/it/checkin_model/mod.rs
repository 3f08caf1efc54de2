//! Random lives of users against a plain model: check-ins, make-ups, wallets and imports over gaps, years' ends and
//! restarts. What was answered, the wallet, the boards, the streak, the calendar, the list of check-ins and the counters
//! of days agree at any time.
//!
//! [`model`] is what should be, [`operations`] what is done to both, [`comparison`] what is compared.

mod comparison;
mod model;
mod operations;

use std::collections::BTreeSet;

use chrono::{Datelike, NaiveDate};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tallyboard::config::{Board as Configured, Milestone, Settings};
use tallyboard::day::Period;
use tallyboard::leaderboard::TieBreak;

use crate::harness::*;
use comparison::compare;
use model::Model;
use operations::step;

const USERS: usize = 4;
const KEEP_DAYS: u64 = 40;
const POINTS: [Period; 3] = [Period::Day, Period::Month, Period::AllTime];
const COUNTS: [Period; 3] = [Period::Week, Period::Month, Period::AllTime];

/// One run: how the server is set up, and for how long it is used.
#[derive(Clone, Copy)]
struct Setup {
    partitions: u32,
    keep_years: u32,
    /// Long enough to reach over several gaps, some of them in the year before.
    window_days: u32,
    max_points: i64,
    zone: &'static str,
    begins: &'static str,
    operations: usize,
}

const USUAL: Setup = Setup {
    partitions: 1,
    keep_years: 0,
    window_days: 12,
    max_points: 10_000_000,
    zone: "UTC",
    begins: "2027-10-20",
    operations: 2_500,
};

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_random_operations_on_one_partition_agree_with_a_plain_model() {
    live(Setup {
        operations: 10_000,
        ..USUAL
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_random_operations_on_eight_partitions_agree_with_a_plain_model() {
    live(Setup {
        partitions: 8,
        keep_years: 1,
        window_days: 366,
        max_points: 3_000, // which many come up to
        operations: 10_000,
        ..USUAL
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_agrees_on_eight_partitions_where_no_year_before_the_present_is_kept() {
    live(Setup {
        partitions: 8,
        window_days: 40,
        ..USUAL
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_agrees_on_one_partition_where_one_year_is_kept() {
    live(Setup {
        keep_years: 1,
        window_days: 366,
        ..USUAL
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_agrees_on_one_partition_where_two_years_are_kept() {
    live(Setup {
        keep_years: 2,
        window_days: 366,
        ..USUAL
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_agrees_on_eight_partitions_where_two_years_are_kept() {
    live(Setup {
        partitions: 8,
        keep_years: 2,
        window_days: 366,
        ..USUAL
    })
    .await;
}

/// Apia had no 30 December 2011, and its clocks change twice a year.
#[tokio::test(flavor = "multi_thread")]
async fn the_model_agrees_where_a_date_was_skipped() {
    live(Setup {
        window_days: 25,
        zone: "Pacific/Apia",
        begins: "2011-12-14",
        operations: 2_000,
        ..USUAL
    })
    .await;
}

async fn live(setup: Setup) {
    let seed = Seed::draw();
    let mut rng = StdRng::seed_from_u64(seed.0);
    let mut app = spawn_app()
        .with(off_disk)
        .with(|settings| configure(settings, setup))
        .at(&format!("{}T12:00:00Z", setup.begins))
        .await;
    let mut model = Model::new(&app, setup);
    model.on(&app, date(setup.begins));
    for turn in 0..setup.operations {
        step(&app, &mut model, &mut rng).await;
        if turn % 200 == 199 {
            compare(&app, &model, &mut rng).await;
        }
        if turn % 3_000 == 2_999 {
            app = app.restarted(|_| {}).await;
        }
    }
    compare(&app, &model, &mut rng).await;
    was_worth_it(&model);
}

/// What is promised of make-ups, years' ends and milestones has been put to the test.
fn was_worth_it(model: &Model) {
    let dates = model.users.iter().flat_map(|user| user.done.keys());
    let years: BTreeSet<i32> = dates.map(NaiveDate::year).collect();
    assert!(years.len() >= 2, "{years:?}");
    let each = model.setup.operations as u32 / 1_000;
    assert!(
        model.made_up > 10 * each && model.milestones > each,
        "{} and {}",
        model.made_up,
        model.milestones
    );
}

fn configure(settings: &mut Settings, setup: Setup) {
    settings.redis.partitions = setup.partitions;
    settings.day.time_zone = setup.zone.into();
    settings.checkin.keep_years = setup.keep_years;
    settings.makeup.window_days = setup.window_days;
    settings.analytics.keep_days = KEEP_DAYS as u32;
    settings.checkin.cycle = vec![10, 11, 12, 13, 14];
    settings.checkin.milestone = [
        (3, 33, 0),
        (7, 77, 1),
        (10, 100, 1),
        (20, 200, 2),
        (50, 555, 3),
        (365, 3_650, 1),
        (500, 5_000, 1),
        (800, 8_000, 1),
    ]
    .map(|(streak, points, make_up_cards)| Milestone {
        streak,
        points,
        make_up_cards,
    })
    .to_vec();
    settings.checkin.points_board = "points".into();
    settings.checkin.count_board = "count".into();
    settings.board[0].max_points = setup.max_points;
    settings.board[0].periods = POINTS.to_vec();
    settings.board[0].windows = vec![7];
    settings.board.push(Configured {
        id: "count".into(),
        tie_break: TieBreak::None,
        periods: COUNTS.to_vec(),
        ..Default::default()
    });
}
