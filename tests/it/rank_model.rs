//! Random races against a plain model of who stands where and who went past whom.
//!
//! A round is one batch of scores or a removal. Its scores may be told in several updates, so what is compared is where
//! they lead, and how many went past in all; a single update must also name them. A failure prints its seed.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tallyboard::config::Board;
use tallyboard::day::Period;
use tallyboard::ids::BoardId;
use tallyboard::leaderboard::{BoardOrder, RankMethod, ScoreOperator, TieBreak};

use crate::harness::*;

#[tokio::test(flavor = "multi_thread")]
async fn random_races_are_told_as_a_plain_model_sees_them() {
    random_races(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_races_are_told_as_a_plain_model_sees_them_with_eight_partitions() {
    random_races(8).await;
}

const USERS: [&str; 10] = [
    "amy", "bob", "cat", "dan", "eve", "fay", "gus", "hal", "ida", "Zed",
];

async fn random_races(partitions: u32) {
    const ROUNDS: usize = 25;
    let seed = Seed::draw();
    let mut rng = StdRng::seed_from_u64(seed.0);
    let board = |id: &str, order, rank_method| Board {
        id: id.into(),
        order,
        rank_method,
        operator: ScoreOperator::Set,
        tie_break: TieBreak::None, // between partitions nobody knows who came first
        periods: vec![Period::AllTime],
        ..Default::default()
    };
    let app = spawn_app().partitions(partitions).with(off_disk);
    let app = app
        .with(|settings| {
            settings.live.interval_ms = 20;
            settings.board = vec![
                board("up", BoardOrder::HighestFirst, RankMethod::Competition),
                board("down", BoardOrder::LowestFirst, RankMethod::Dense),
                board("bell", BoardOrder::HighestFirst, RankMethod::Ordinal),
            ];
        })
        .await;
    let all_time = || period("ALL_TIME");
    let bell = Watcher::open(&app.anonymous(), Watched::Top("bell", all_time(), 1)).await;
    for (id, order, method) in [
        ("up", BoardOrder::HighestFirst, RankMethod::Competition),
        ("down", BoardOrder::LowestFirst, RankMethod::Dense),
    ] {
        let mut model = Model {
            order,
            method,
            points: BTreeMap::new(),
        };
        let mut watchers = Vec::new();
        for user in ["amy", "bob", "cat", "dan"] {
            let watcher = Watcher::open(&app.anonymous(), Watched::Rank(id, all_time(), user)).await;
            watchers.push((user, watcher));
        }
        for round in 0..ROUNDS {
            let before = model.points.clone();
            let counts: Vec<usize> = watchers.iter().map(|(_, watcher)| watcher.count()).collect();
            let mut scored: Vec<&str> = Vec::new();
            if rng.random_bool(0.15) {
                let user = USERS.choose(&mut rng).unwrap();
                let there = model.points.remove(user).is_some();
                assert_eq!(app.service().remove(id, user).await, there);
            } else {
                let many = rng.random_range(1..=5);
                scored = USERS.choose_multiple(&mut rng, many).copied().collect();
                let score = |user: &&'static str| (*user, rng.random_range(0..12));
                let scores: Vec<(&str, i64)> = scored.iter().map(score).collect();
                model.points.extend(scores.iter().copied());
                submit(&app, id, &scores).await;
            }
            for ((user, watcher), &count) in watchers.iter().zip(&counts) {
                let (state, past) = (model.state(user), model.past(&before, user, &scored));
                let told = |got: &[Got]| {
                    let rounds = &got[count..];
                    let names = |got: &Got| got.update["overtakenCount"].as_u64().unwrap() as usize;
                    state_of(&got[got.len() - 1].update) == state
                        && (scored.contains(user) || rounds.iter().map(names).sum::<usize>() == past.len())
                };
                let what = format!("round {round}: {state} after {past:?}");
                watcher.until(&what, told).await;
            }
            // When the bell is heard, so is all that was said before; what is told then ends the round.
            let rings = bell.count();
            submit(
                &app,
                "bell",
                &[("bell", round as i64 + if id == "up" { 1 } else { 1_001 })],
            )
            .await;
            bell.until("the bell", |got| got.len() > rings).await;
            app.running().app.changes.missed(&BoardId::parse(id).unwrap());
            for ((user, watcher), &count) in watchers.iter().zip(&counts) {
                let over = |got: &[Got]| got[count..].iter().any(|got| got.update["cause"] == "RESYNCED");
                watcher.until("the round's end", over).await;
                let mut round_told = watcher.since(count);
                let end = round_told.pop().unwrap().update;
                assert_eq!(state_of(&end), model.state(user), "{end}");
                if scored.contains(user) {
                    continue; // whether before or after it went past, nobody can say
                }
                let past = model.past(&before, user, &scored);
                let was = Model {
                    points: before.clone(),
                    ..model
                };
                let seen = was.state(user) != model.state(user) || !past.is_empty();
                // Between two scores of a batch there may be something to tell that the second undoes.
                let told_of = !round_told.is_empty();
                assert!(
                    told_of == seen || (told_of && scored.len() > 1),
                    "{round_told:?} for {before:?}, then {model:?}"
                );
                let told: usize = round_told
                    .iter()
                    .map(|got| got.update["overtakenCount"].as_u64().unwrap() as usize)
                    .sum();
                assert_eq!(told, past.len(), "{round_told:?}");
                if let [only] = &round_told[..] {
                    let names = only.update["overtakenBy"].as_array().unwrap().iter();
                    let names: Vec<&str> = names.map(|row| row["user"]["id"].as_str().unwrap()).collect();
                    assert_eq!(names, past[..past.len().min(3)], "{only:?}");
                }
            }
        }
    }
}

/// Who stands on a board with how many points; equal points by user id.
#[derive(Debug, Clone)]
struct Model {
    order: BoardOrder,
    method: RankMethod,
    points: BTreeMap<&'static str, i64>,
}

impl Model {
    fn key(&self, points: i64) -> i64 {
        match self.order {
            BoardOrder::HighestFirst => -points,
            BoardOrder::LowestFirst => points,
        }
    }

    fn before(&self, a: (&str, i64), b: (&str, i64)) -> bool {
        let order = self.key(a.1).cmp(&self.key(b.1));
        order.then_with(|| a.0.cmp(b.0)) == Ordering::Less
    }

    /// All, the best first.
    fn rows(&self) -> Vec<(&'static str, i64)> {
        let mut rows: Vec<_> = self
            .points
            .iter()
            .map(|(user, points)| (*user, *points))
            .collect();
        rows.sort_by_key(|(user, points)| (self.key(*points), *user));
        rows
    }

    /// What a follower of `user` sees, as [`state_of`] tells it.
    fn state(&self, user: &str) -> Value {
        let rows = self.rows();
        let Some(place) = rows.iter().position(|(name, _)| *name == user) else {
            return json!([null, null, null]);
        };
        let points = rows[place].1;
        let better: Vec<i64> = rows
            .iter()
            .map(|row| row.1)
            .take_while(|more| *more != points)
            .collect();
        let ahead = match self.method {
            RankMethod::Ordinal => place,
            RankMethod::Competition => better.len(),
            RankMethod::Dense => better.chunk_by(|a, b| a == b).count(),
        };
        let above = place.checked_sub(1).map(|above| rows[above]);
        json!([
            [ahead + 1, place + 1, points],
            above.map(|above| (above.0, above.1)),
            above.map(|above| (above.1 - points).abs()),
        ])
    }

    /// Who went past `user` by scoring, the best first.
    fn past(&self, before: &BTreeMap<&'static str, i64>, user: &str, scored: &[&str]) -> Vec<&'static str> {
        let (Some(&was), Some(&is)) = (before.get(user), self.points.get(user)) else {
            return Vec::new();
        };
        let past = |&(other, points): &(&'static str, i64)| {
            let stood = before.get(other);
            other != user
                && scored.contains(&other)
                && stood != Some(&points)
                && !stood.is_some_and(|&stood| self.before((other, stood), (user, was)))
                && self.before((other, points), (user, is))
        };
        self.rows()
            .into_iter()
            .filter(past)
            .map(|(user, _)| user)
            .collect()
    }
}

fn state_of(update: &Value) -> Value {
    let (standing, above) = (&update["standing"], &update["above"]);
    let place = (!standing.is_null()).then(|| [&standing["rank"], &standing["ordinal"], &standing["points"]]);
    let above = (!above.is_null()).then(|| [&above["user"]["id"], &above["points"]]);
    json!([place, above, update["pointsToAbove"]])
}

async fn submit(app: &TestApp, board: &str, scores: &[(&str, i64)]) {
    let inputs = scores
        .iter()
        .map(|(user, points)| json!({ "board": board, "userId": user, "points": points }));
    app.service().submit_all(&inputs.collect::<Vec<_>>()).await;
}
