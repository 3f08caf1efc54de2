//! Random histories against plain models: what the scripts decide is what the rules say.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use tallyboard::checkin::rewards::{Reward, Rewards};
use tallyboard::checkin::streak;
use tallyboard::config;
use tallyboard::day::Zone;

use crate::harness::*;

/// Draws `cases` values and gives each to `test`, one server serving them all.
fn draw<S: Strategy>(strategy: S, cases: u32) -> Vec<S::Value> {
    let mut runner = TestRunner::new(Config {
        cases,
        ..Config::default()
    });
    (0..cases)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

/// Whether a user checks in on each of these days.
fn histories() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(prop::bool::weighted(0.85), 20..40)
}

#[tokio::test(flavor = "multi_thread")]
async fn streaks_and_rewards_of_random_histories_are_those_of_the_rules() {
    let checkin = config::CheckIn {
        milestone: vec![config::Milestone {
            streak: 5,
            points: 77,
            make_up_cards: 2,
        }],
        ..Default::default()
    };
    let rules = Rewards::from(&checkin);
    for partitions in both_partitions() {
        let checkin = checkin.clone();
        let app = spawn_app()
            .partitions(partitions)
            .with(|settings| settings.checkin = checkin)
            .await;
        let zone = app.settings.zone().unwrap();
        let users = draw(histories(), 12);
        let first = date("2027-12-20"); // over a year's end
        let mut model: Vec<(BTreeSet<NaiveDate>, Reward)> = vec![Default::default(); users.len()];
        for day in 0..40 {
            let today = first + Days::new(day);
            app.set(&format!("{today}T09:00:00Z"));
            for (user, history) in users.iter().enumerate() {
                let caller = app.user(&format!("user-{user}"));
                let (done, wallet) = &mut model[user];
                if history.get(day as usize) == Some(&true) {
                    done.insert(today);
                    let earned =
                        rules.for_streak(streak::current_streak(&zone, today, done.iter().rev().copied()));
                    wallet.points += earned.points;
                    wallet.cards += earned.cards;
                    let receipt = caller.check_in().await;
                    assert_eq!(receipt.reward, shown(earned), "user-{user} on {today}");
                    assert_eq!(receipt.wallet, shown(*wallet), "user-{user} on {today}");
                }
                compare(&zone, today, done, &caller.streak().await);
            }
        }
    }
}

fn shown(reward: Reward) -> crate::harness::Reward {
    crate::harness::Reward {
        points: reward.points,
        make_up_cards: reward.cards,
    }
}

fn compare(zone: &Zone, today: NaiveDate, done: &BTreeSet<NaiveDate>, shown: &Streak) {
    let runs = streak::runs(zone, done.iter().copied());
    assert_eq!(
        shown.current,
        streak::current_streak(zone, today, done.iter().rev().copied()),
        "{today}: {done:?}"
    );
    assert_eq!(
        shown.longest,
        runs.iter().map(|run| run.length).max().unwrap_or(0)
    );
    assert_eq!(shown.total, done.len() as u32);
    assert_eq!(shown.checked_in_today, done.contains(&today));
    assert_eq!(shown.at_risk, shown.current > 0 && !done.contains(&today));
}

/// A score: of which user, how many points, how many seconds later.
fn scores() -> impl Strategy<Value = Vec<(usize, i64, i64)>> {
    prop::collection::vec(
        (
            0_usize..12,
            -4_i64..8,
            prop_oneof![3 => Just(0_i64), 1 => 1_i64..50_000],
        ),
        300,
    )
}

/// The board as rules say: points, and the order in which equal points were reached.
#[derive(Default)]
struct Model {
    members: BTreeMap<String, (i64, usize)>,
}

impl Model {
    fn add(&mut self, user: &str, points: i64, turn: usize) {
        let entry = self.members.entry(user.into()).or_insert((0, usize::MAX));
        if points != 0 || entry.1 == usize::MAX {
            *entry = (entry.0 + points, turn);
        }
    }

    fn order(&self) -> Vec<(&str, i64)> {
        let mut order: Vec<_> = self
            .members
            .iter()
            .map(|(user, (points, turn))| (-points, *turn, user))
            .collect();
        order.sort();
        order
            .into_iter()
            .map(|(points, _, user)| (user.as_str(), -points))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn standings_of_random_scores_are_those_of_a_plain_list() {
    for partitions in both_partitions() {
        for scores in draw(scores(), 2) {
            let app = spawn_app()
                .partitions(partitions)
                .at("2027-12-26T00:00:00Z")
                .await;
            let zone = app.settings.zone().unwrap();
            let service = app.service();
            let mut models: BTreeMap<&str, (String, Model)> = BTreeMap::new();
            for (turn, (user, points, later)) in scores.into_iter().enumerate() {
                app.clock.set(app.clock.now() + chrono::TimeDelta::seconds(later));
                let user = format!("user-{user}");
                let scored = service.score("points", &user, points).await;
                for standing in &scored.standings {
                    let name = ["DAY", "WEEK", "MONTH", "ALL_TIME"]
                        .into_iter()
                        .find(|p| *p == standing.period)
                        .unwrap();
                    let (key, model) = models.entry(name).or_default();
                    if *key != standing.period_key {
                        (*key, *model) = (standing.period_key.clone(), Model::default());
                    }
                    let before = model.members.get(&user).map(|(points, _)| *points);
                    assert_eq!(standing.previous_points, before);
                    model.add(&user, points, turn);
                    let shown = standing.standing.as_ref().unwrap();
                    same_place(model, shown, partitions);
                }
            }
            for (period, (_, model)) in &models {
                let board = service.top("points", period, 50).await;
                let mut wanted = model.order();
                let mut shown = board.order();
                if partitions > 1 {
                    // Between partitions equal points may stand either way.
                    wanted.sort_by_key(|(user, points)| (-points, *user));
                    shown.sort_by_key(|(user, points)| (-points, *user));
                }
                assert_eq!(
                    shown,
                    wanted,
                    "{period} at {} in {}",
                    app.clock.now(),
                    zone.name()
                );
                for standing in &board.top {
                    same_place(model, standing, partitions);
                }
            }
        }
    }
}

fn same_place(model: &Model, shown: &Standing, partitions: u32) {
    let order = model.order();
    let better: Vec<i64> = order
        .iter()
        .map(|(_, points)| *points)
        .filter(|points| *points > shown.points)
        .collect();
    assert_eq!(model.members[&shown.user.id].0, shown.points);
    assert_eq!(shown.competition, better.len() as u64 + 1);
    assert_eq!(
        shown.dense,
        better.iter().collect::<BTreeSet<_>>().len() as u64 + 1
    );
    if partitions == 1 {
        let place = order.iter().position(|(user, _)| *user == shown.user.id).unwrap();
        assert_eq!(shown.rank, place as u64 + 1, "{order:?}");
        let share = 100.0 * (order.len() - place) as f64 / order.len() as f64;
        assert!(
            (shown.percentile - share).abs() < 1e-9,
            "{} is not {share}",
            shown.percentile
        ); // JSON reads decimals
    }
}
