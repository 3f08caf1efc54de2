//! Random histories of everything that can happen to a board, against a plain list of what each span holds.
//!
//! Every run draws another history. A failure prints its seed; `TALLYBOARD_SEED=<seed> cargo test --test it board_model`
//! repeats it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use chrono::{Days, NaiveDate, TimeDelta};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tallyboard::config;
use tallyboard::day::{Period, Zone};
use tallyboard::ids::UserId;
use tallyboard::keyspace::Partition;
use tallyboard::leaderboard::{BoardOrder, RankMethod, ScoreOperator, TieBreak};

use crate::harness::*;

/// Small, so that equal points and refusals are everywhere.
const MAX_POINTS: i64 = 30;

/// How many batches a run draws, and how many operations each has: with both partition counts more than 10,000.
const BATCHES: usize = 48;
const BATCH: std::ops::Range<usize> = 80..150;

/// Ids whose order by bytes is neither that of people nor that of writing.
const USERS: [&str; 18] = [
    "amy", "Zed", "a", "B", "user-10", "user-2", "auth0|5f", "~", "!", "amy2", "amY", "0", "00", "_x", "-x",
    "zz", "Zz", "mid",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_history_leaves_what_a_plain_list_holds() {
    run(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_history_leaves_what_a_plain_list_holds_with_eight_partitions() {
    run(8).await;
}

async fn run(partitions: u32) {
    let seed = Seed::draw();
    let mut rng = StdRng::seed_from_u64(seed.0);
    let boards = boards();
    let app = spawn_app()
        .partitions(partitions)
        .zone("Europe/Berlin")
        .at("2027-03-22T07:00:00Z") // a clock change, a month's end and several weeks lie ahead
        .with(|settings| settings.board = boards.clone())
        .await;
    let zone = app.settings.zone().unwrap();
    let mut history = History {
        models: boards.into_iter().map(|board| Model::of(board, zone)).collect(),
        service: app.service(),
        partitions,
        zone,
        operations: 0,
    };
    for batch in 0..BATCHES {
        history.move_the_clock(&mut rng);
        history.batch(&mut rng).await;
        for _ in 0..rng.random_range(0..8) {
            match rng.random_bool(0.4) {
                true => history.remove(&mut rng).await,
                false => history.score(&mut rng).await,
            }
        }
        history
            .check(&mut rng, if batch + 1 == BATCHES { 60 } else { 3 })
            .await;
    }
    assert!(
        history.operations >= 5_000,
        "{} operations are few",
        history.operations
    );
}

/// A board of each kind.
fn boards() -> Vec<config::Board> {
    let periods = [
        vec![Period::Day, Period::Week, Period::Month, Period::AllTime],
        vec![Period::AllTime, Period::Day],
        vec![Period::Month, Period::Week], // its windows need days that nobody sees
    ];
    let methods = [RankMethod::Ordinal, RankMethod::Competition, RankMethod::Dense];
    let mut boards = Vec::new();
    for order in [BoardOrder::HighestFirst, BoardOrder::LowestFirst] {
        for operator in [ScoreOperator::Increment, ScoreOperator::Set, ScoreOperator::Best] {
            for tie_break in [TieBreak::FirstToReach, TieBreak::None] {
                let n = boards.len();
                boards.push(config::Board {
                    id: format!("b{n}"),
                    order,
                    operator,
                    tie_break,
                    rank_method: methods[n % 3],
                    periods: periods[(n / 2 + n / 6) % 3].clone(),
                    windows: if operator == ScoreOperator::Set {
                        vec![]
                    } else {
                        vec![2, 7]
                    },
                    max_points: MAX_POINTS,
                    ..Default::default()
                });
            }
        }
    }
    boards
}

/// What one user holds in one set, and when it came to hold that.
#[derive(Clone, Copy)]
struct Held {
    points: i64,
    arrived: u64,
}

type Set = BTreeMap<&'static str, Held>;

/// A board as a plain list.
struct Model {
    board: config::Board,
    zone: Zone,
    /// By the period's key: a day's, a week's, a month's and that of all time differ.
    sets: HashMap<String, Set>,
    arrivals: u64,
}

/// What a score does.
#[derive(Debug, PartialEq)]
enum Outcome {
    Rejected,
    /// Whether anything changed, and the points before, by period.
    Counted(bool, Vec<(String, Option<i64>)>),
}

/// What a board can be asked over.
#[derive(Debug, Clone)]
enum Asked {
    Period(Period, NaiveDate),
    LastDays(u32),
}

impl Model {
    fn of(board: config::Board, zone: Zone) -> Model {
        Model {
            board,
            zone,
            sets: HashMap::new(),
            arrivals: 0,
        }
    }

    fn sign(&self) -> i64 {
        match self.board.order {
            BoardOrder::HighestFirst => -1,
            BoardOrder::LowestFirst => 1,
        }
    }

    /// The keys of the sets that a write of `date` goes into: the shown ones first.
    fn keys(&self, date: NaiveDate) -> Vec<String> {
        let mut periods = self.board.periods.clone();
        if !self.board.windows.is_empty() && !periods.contains(&Period::Day) {
            periods.push(Period::Day);
        }
        periods.iter().map(|period| period.span_of(date).key()).collect()
    }

    fn score(
        &mut self,
        user: &'static str,
        operator: ScoreOperator,
        points: i64,
        date: NaiveDate,
    ) -> Outcome {
        let (keys, sign) = (self.keys(date), self.sign());
        let mut changes = Vec::new();
        for key in &keys {
            let before = self
                .sets
                .get(key)
                .and_then(|set| set.get(user))
                .map(|held| held.points);
            let after = match (operator, before) {
                (ScoreOperator::Increment, before) => before.unwrap_or(0) + points,
                (ScoreOperator::Best, Some(before)) if points.abs() <= MAX_POINTS => {
                    if sign * points < sign * before {
                        points
                    } else {
                        before
                    }
                }
                _ => points,
            };
            changes.push((before, after));
        }
        if changes.iter().any(|(_, after)| after.abs() > MAX_POINTS) {
            return Outcome::Rejected;
        }
        self.arrivals += 1;
        for (key, &(before, after)) in keys.iter().zip(&changes) {
            if before != Some(after) {
                let held = Held {
                    points: after,
                    arrived: self.arrivals,
                };
                self.sets.entry(key.clone()).or_default().insert(user, held);
            }
        }
        let changed = changes.iter().any(|&(before, after)| before != Some(after));
        let befores = changes.iter().map(|(before, _)| *before);
        let shown = keys.into_iter().zip(befores).take(self.board.periods.len());
        Outcome::Counted(changed, shown.collect())
    }

    fn remove(&mut self, user: &str, date: NaiveDate) -> bool {
        let mut keys = self.keys(date);
        let longest = self.board.windows.iter().max().copied().unwrap_or(0);
        keys.extend(self.last_days(longest, date));
        let sets = &mut self.sets;
        let removed = keys
            .iter()
            .map(|key| sets.get_mut(key).is_some_and(|set| set.remove(user).is_some()));
        removed.fold(false, |any, one| any | one)
    }

    fn last_days(&self, days: u32, date: NaiveDate) -> Vec<String> {
        std::iter::successors(Some(date), |&date| Some(self.zone.day_before(date)))
            .take(days as usize)
            .map(|date| Period::Day.span_of(date).key())
            .collect()
    }

    /// Who stands there, best first; equals by arrival or by id.
    fn order(&self, asked: &Asked, today: NaiveDate) -> Vec<(&'static str, i64)> {
        let set = match asked {
            Asked::Period(period, on) => self
                .sets
                .get(&period.span_of(*on).key())
                .cloned()
                .unwrap_or_default(),
            Asked::LastDays(days) => self.over(&self.last_days(*days, today)),
        };
        let by_arrival = self.by_arrival(asked);
        let place = |held: &Held| {
            (
                self.sign() * held.points,
                if by_arrival { held.arrived } else { 0 },
            )
        };
        let mut order: Vec<_> = set.iter().collect();
        order.sort_by_key(|(user, held)| (place(held), **user));
        order
            .into_iter()
            .map(|(user, held)| (*user, held.points))
            .collect()
    }

    fn over(&self, keys: &[String]) -> Set {
        let mut all = Set::new();
        for (user, held) in keys.iter().filter_map(|key| self.sets.get(key)).flatten() {
            let add = |sum: &mut Held| match self.board.operator {
                ScoreOperator::Best if self.sign() * sum.points <= self.sign() * held.points => {}
                ScoreOperator::Best => sum.points = held.points,
                ScoreOperator::Increment | ScoreOperator::Set => sum.points += held.points,
            };
            all.entry(user).and_modify(add).or_insert(*held);
        }
        all
    }

    fn by_arrival(&self, asked: &Asked) -> bool {
        self.board.tie_break == TieBreak::FirstToReach && matches!(asked, Asked::Period(..))
    }

    fn spans(&self, today: NaiveDate) -> Vec<Asked> {
        let windows = self.board.windows.iter().map(|&days| Asked::LastDays(days));
        let days = [0, 1, 2, 5, 8].map(|days| today - Days::new(days));
        let periods = self.board.periods.iter();
        windows
            .chain(periods.flat_map(|&period| days.map(|on| Asked::Period(period, on))))
            .collect()
    }
}

/// The models beside the server.
struct History<'a> {
    models: Vec<Model>,
    service: Caller<'a>,
    partitions: u32,
    zone: Zone,
    operations: usize,
}

/// A drawn question for a page.
#[derive(Debug, Clone, Default)]
struct Page {
    first: Option<usize>,
    last: Option<usize>,
    after: Option<usize>,
    before: Option<usize>,
    least: Option<i64>,
    most: Option<i64>,
}

impl History<'_> {
    fn today(&self) -> NaiveDate {
        self.zone.date_of(self.service.app.clock.now())
    }

    /// Not at all, a little, to the day's last millisecond, over its end, or over several days.
    fn move_the_clock(&self, rng: &mut StdRng) {
        let clock = &self.service.app.clock;
        let now = clock.now();
        let next_day = self.zone.end_of(self.today());
        clock.set(match rng.random_range(0..100) {
            0..20 => now,
            20..50 => now + TimeDelta::milliseconds(rng.random_range(0..5_000)),
            50..65 => {
                (now + TimeDelta::hours(rng.random_range(0..6))).min(next_day - TimeDelta::milliseconds(1))
            }
            65..75 => next_day - TimeDelta::milliseconds(1),
            75..95 => next_day + TimeDelta::milliseconds(rng.random_range(0..2)),
            _ => now + TimeDelta::hours(rng.random_range(20..220)),
        });
    }

    /// A board, a user, an operator, whether it has to be named, and points.
    fn draw(&self, rng: &mut StdRng) -> (usize, &'static str, ScoreOperator, bool, i64) {
        let board = rng.random_range(0..self.models.len());
        let own = self.models[board].board.operator;
        let overridden = rng.random_bool(0.15);
        let operator = match overridden {
            true => *[ScoreOperator::Increment, ScoreOperator::Set, ScoreOperator::Best]
                .choose(rng)
                .unwrap(),
            false => own,
        };
        let points = match (rng.random_range(0..20), operator) {
            (0, _) => *[
                MAX_POINTS,
                -MAX_POINTS,
                MAX_POINTS + 1,
                -MAX_POINTS - 1,
                2 * MAX_POINTS,
            ]
            .choose(rng)
            .unwrap(),
            (1, _) => 0,
            (_, ScoreOperator::Increment) => rng.random_range(-5..7),
            _ => rng.random_range(-8..9),
        };
        (board, USERS.choose(rng).unwrap(), operator, overridden, points)
    }

    async fn batch(&mut self, rng: &mut StdRng) {
        let today = self.today();
        let drawn: Vec<_> = (0..rng.random_range(BATCH)).map(|_| self.draw(rng)).collect();
        let inputs: Vec<Value> = drawn.iter().map(|score| self.input(score)).collect();
        let query = "mutation ($inputs: [SubmitScoreInput!]!) { submitScores(inputs: $inputs) { outcome
            standings { period periodKey previousPoints } rejection { code message } } }";
        let shown: Vec<Scored> = self.service.field(query, json!({ "inputs": inputs })).await;
        assert_eq!(shown.len(), drawn.len());
        for (&(board, user, operator, _, points), shown) in drawn.iter().zip(shown) {
            let wanted = self.models[board].score(user, operator, points, today);
            assert_eq!(
                outcome(&shown),
                wanted,
                "board {board}: {user} {operator:?} {points} on {today}"
            );
            self.operations += 1;
        }
    }

    async fn score(&mut self, rng: &mut StdRng) {
        let today = self.today();
        let drawn @ (board, user, operator, _, points) = self.draw(rng);
        let query = format!(
            "mutation ($input: SubmitScoreInput!) {{ submitScore(input: $input) {{ outcome
                standings {{ period periodKey previousPoints standing {{ {STANDING} }} }} rejection {{ code message }} }} }}"
        );
        let shown: Scored = self
            .service
            .field(&query, json!({ "input": self.input(&drawn) }))
            .await;
        let said = format!("board {board}: {user} {operator:?} {points} on {today}");
        let wanted = self.models[board].score(user, operator, points, today);
        assert_eq!(outcome(&shown), wanted, "{said}");
        self.operations += 1;
        let model = &self.models[board];
        for (&period, shown) in model.board.periods.iter().zip(&shown.standings) {
            let asked = Asked::Period(period, today);
            let order = model.order(&asked, today);
            let shown = shown.standing.as_ref().unwrap();
            let place = order.iter().position(|(name, _)| *name == user).unwrap();
            let ties = order
                .iter()
                .filter(|(_, points)| *points == order[place].1)
                .count() as u64;
            let mut wanted = ranked(model, &order, place, shown.reached_at.clone());
            if self.partitions > 1 && model.by_arrival(&asked) {
                // Equals of other partitions may stand before or behind.
                assert!(
                    (wanted.competition..wanted.competition + ties).contains(&shown.rank),
                    "{said}: {shown:?}"
                );
                (wanted.rank, wanted.percentile) = (shown.rank, shown.percentile);
            }
            same(shown, &wanted, &format!("{said}, {asked:?}"));
        }
    }

    async fn remove(&mut self, rng: &mut StdRng) {
        let (board, user, ..) = self.draw(rng);
        let query = "mutation ($board: ID!, $user: ID!) { removeFromBoard(board: $board, userId: $user) { removed } }";
        let id = &self.models[board].board.id;
        let shown: Value = self
            .service
            .field(query, json!({ "board": id, "user": user }))
            .await;
        let today = self.today();
        let removed = self.models[board].remove(user, today);
        assert_eq!(shown["removed"], removed, "board {board}: {user} off on {today}");
        self.operations += 1;
    }

    fn input(
        &self,
        &(board, user, operator, overridden, points): &(usize, &str, ScoreOperator, bool, i64),
    ) -> Value {
        let mut input = json!({ "board": self.models[board].board.id, "userId": user, "points": points });
        if overridden {
            input["operator"] = json!(format!("{operator:?}").to_uppercase());
        }
        input
    }

    /// So many spans of all boards.
    async fn check(&self, rng: &mut StdRng, many: usize) {
        let today = self.today();
        let spans = |model| {
            Model::spans(model, today)
                .into_iter()
                .map(move |span| (model, span))
        };
        let all: Vec<_> = self.models.iter().flat_map(spans).collect();
        for (model, asked) in all.choose_multiple(rng, many) {
            self.check_span(model, asked, rng).await;
        }
    }

    async fn check_span(&self, model: &Model, asked: &Asked, rng: &mut StdRng) {
        let today = self.today();
        let said = format!(
            "board {} over {asked:?} on {today}, P = {}",
            model.board.id, self.partitions
        );
        let wanted = model.order(asked, today);
        let all = self
            .ask(
                model,
                asked,
                &format!("participants all: entries(first: 500) {{ {} }}", entries()),
            )
            .await;
        assert_eq!(all["participants"], wanted.len(), "{said}");
        let all: Entries = serde_json::from_value(all["all"].clone()).unwrap();
        let (cursors, list): (Vec<_>, Vec<_>) =
            all.edges.into_iter().map(|edge| (edge.cursor, edge.node)).unzip();
        let order: Vec<_> = list
            .iter()
            .map(|standing| (standing.user.id.as_str(), standing.points))
            .collect();
        self.same_order(model, asked, &order, &wanted, &said);
        for (place, standing) in list.iter().enumerate() {
            same(
                standing,
                &ranked(model, &order, place, standing.reached_at.clone()),
                &said,
            );
            let timed = standing
                .reached_at
                .as_deref()
                .map(|reached| at(reached) <= self.service.app.clock.now());
            assert_eq!(
                timed,
                model.by_arrival(asked).then_some(true),
                "{said}: {standing:?}"
            );
        }
        self.check_pages(model, asked, rng, &list, &cursors, &said).await;
        if rng.random_bool(0.2) {
            self.walk(model, asked, rng.random_range(1..8), &list, &said)
                .await;
        }
    }

    /// Between partitions, equals that stand by arrival may stand either way; within one they may not.
    fn same_order(
        &self,
        model: &Model,
        asked: &Asked,
        shown: &[(&str, i64)],
        wanted: &[(&str, i64)],
        said: &str,
    ) {
        if self.partitions == 1 || !model.by_arrival(asked) {
            assert_eq!(shown, wanted, "{said}");
            return;
        }
        let points = |order: &[(&str, i64)]| order.iter().map(|(_, points)| *points).collect::<Vec<_>>();
        assert_eq!(points(shown), points(wanted), "{said}");
        let of = |p: u32, order: &[(&str, i64)]| -> Vec<(String, i64)> {
            let there = |user: &str| {
                Partition::of(&UserId::parse(user).unwrap(), self.partitions) == Partition::number(p)
            };
            let there = order.iter().filter(|(user, _)| there(user));
            there.map(|(user, points)| (user.to_string(), *points)).collect()
        };
        for p in 0..self.partitions {
            assert_eq!(of(p, shown), of(p, wanted), "{said}, partition {p}");
        }
    }

    /// Every way of reading a part shows that part of the whole.
    async fn check_pages(
        &self,
        model: &Model,
        asked: &Asked,
        rng: &mut StdRng,
        list: &[Standing],
        cursors: &[String],
        said: &str,
    ) {
        let pages: Vec<Page> = (0..5).map(|_| drawn_page(rng, list.len())).collect();
        let (user, radius) = (*USERS.choose(rng).unwrap(), rng.random_range(0..7_usize));
        let top = rng.random_range(0..25_usize);
        let mut fields = format!(
            "top(first: {top}) {{ {STANDING} }} around(userId: {user:?}, radius: {radius}) {{ {STANDING} }}
            standing(userId: {user:?}) {{ {STANDING} }}"
        );
        for (n, page) in pages.iter().enumerate() {
            write!(
                fields,
                " p{n}: entries{} {{ {} }}",
                arguments(page, cursors),
                entries()
            )
            .unwrap();
        }
        let shown = self.ask(model, asked, &fields).await;
        let read = |name: &str| -> Vec<Standing> { serde_json::from_value(shown[name].clone()).unwrap() };
        assert_eq!(read("top"), list[..top.min(list.len())], "{said}: top {top}");
        let place = list.iter().position(|standing| standing.user.id == user);
        let around = place.map_or(&[][..], |place| {
            &list[place.saturating_sub(radius)..(place + radius + 1).min(list.len())]
        });
        assert_eq!(read("around"), around, "{said}: {radius} around {user}");
        let standing: Option<Standing> = serde_json::from_value(shown["standing"].clone()).unwrap();
        assert_eq!(
            standing.as_ref(),
            place.map(|place| &list[place]),
            "{said}: {user}"
        );
        if let Asked::Period(period, on) = asked {
            let query = format!(
                "query ($board: ID!, $span: BoardSpan, $on: Date, $user: ID) {{
                    rank(board: $board, span: $span, on: $on, userId: $user) {{ {STANDING} }} }}"
            );
            let variables = json!({ "board": model.board.id, "span": { "period": period.as_str() }, "on": on, "user": user });
            let rank: Option<Standing> = self.service.field(&query, variables).await;
            assert_eq!(rank, standing, "{said}: {user}");
        }
        for (n, page) in pages.iter().enumerate() {
            let shown: Entries = serde_json::from_value(shown[format!("p{n}")].clone()).unwrap();
            same_page(
                &shown,
                page,
                list,
                cursors,
                model.sign(),
                &format!("{said}: {page:?}"),
            );
        }
    }

    /// Walks the whole board by cursors, forwards and backwards.
    async fn walk(&self, model: &Model, asked: &Asked, size: usize, list: &[Standing], said: &str) {
        for way in Way::BOTH {
            let mut seen: Vec<Standing> = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let arguments = way.arguments(size, cursor.as_deref());
                let page = self
                    .ask(
                        model,
                        asked,
                        &format!("p: entries{arguments} {{ {} }}", entries()),
                    )
                    .await;
                let page: Entries = serde_json::from_value(page["p"].clone()).unwrap();
                cursor = way.next(&page.page_info).map(str::to_owned);
                match way {
                    Way::Forwards => seen.extend(page.rows()),
                    Way::Backwards => drop(seen.splice(0..0, page.rows())),
                }
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, list, "{said}: a walk by {size} {way:?}");
        }
    }

    async fn ask(&self, model: &Model, asked: &Asked, fields: &str) -> Value {
        let query = format!(
            "query ($board: ID!, $span: BoardSpan, $on: Date) {{ leaderboard(board: $board, span: $span, on: $on) {{ {fields} }} }}"
        );
        let (span, on) = match asked {
            Asked::Period(period, on) => (json!({ "period": period.as_str() }), Some(on)),
            Asked::LastDays(days) => (json!({ "lastDays": days }), None),
        };
        let variables = json!({ "board": model.board.id, "span": span, "on": on });
        self.service.field(&query, variables).await
    }
}

fn outcome(shown: &Scored) -> Outcome {
    let before = |standing: &PeriodStanding| (standing.period_key.clone(), standing.previous_points);
    match (shown.outcome.as_str(), &shown.rejection) {
        ("REJECTED", Some(rejection)) if rejection.code == "POINTS_OUT_OF_RANGE" => Outcome::Rejected,
        ("APPLIED", None) => Outcome::Counted(true, shown.standings.iter().map(before).collect()),
        ("UNCHANGED", None) => Outcome::Counted(false, shown.standings.iter().map(before).collect()),
        _ => panic!("{shown:?}"),
    }
}

/// What is to be shown of whoever stands at `place`.
fn ranked(model: &Model, order: &[(&str, i64)], place: usize, reached_at: Option<String>) -> Standing {
    let (user, points) = order[place];
    let better: Vec<i64> = order
        .iter()
        .map(|(_, points)| *points)
        .take_while(|&other| other != points)
        .collect();
    let distinct = better.iter().collect::<BTreeSet<_>>().len();
    let before = match model.board.rank_method {
        RankMethod::Ordinal => place,
        RankMethod::Competition | RankMethod::Dense => better.len(),
    };
    Standing {
        user: User { id: user.into() },
        rank: place as u64 + 1,
        points,
        competition: better.len() as u64 + 1,
        dense: distinct as u64 + 1,
        percentile: 100.0 * (order.len() - before) as f64 / order.len() as f64,
        reached_at,
    }
}

fn same(shown: &Standing, wanted: &Standing, said: &str) {
    let close = (shown.percentile - wanted.percentile).abs() < 1e-9; // JSON reads decimals
    let shown = Standing {
        percentile: if close {
            wanted.percentile
        } else {
            shown.percentile
        },
        ..shown.clone()
    };
    assert_eq!(&shown, wanted, "{said}");
}

fn drawn_page(rng: &mut StdRng, members: usize) -> Page {
    let mut some =
        |chance: f64| (members > 0 && rng.random_bool(chance)).then(|| rng.random_range(0..members));
    let (after, before) = (some(0.4), some(0.4));
    let mut bound = |chance: f64| rng.random_bool(chance).then(|| rng.random_range(-9..10));
    let (least, most) = (bound(0.3), bound(0.3));
    let many = rng.random_range(0..10);
    let (first, last) = match rng.random_range(0..5) {
        0 => (None, None),
        1 | 2 => (Some(many), None),
        _ => (None, Some(many)),
    };
    Page {
        first,
        last,
        after,
        before,
        least,
        most,
    }
}

fn arguments(page: &Page, cursors: &[String]) -> String {
    let number = |name: &str, n: Option<i64>| n.map(|n| format!("{name}: {n}"));
    let cursor =
        |name: &str, place: Option<usize>| place.map(|place| format!("{name}: {:?}", cursors[place]));
    let given = [
        number("first", page.first.map(|n| n as i64)),
        number("last", page.last.map(|n| n as i64)),
        number("minPoints", page.least),
        number("maxPoints", page.most),
        cursor("after", page.after),
        cursor("before", page.before),
    ];
    let given: Vec<String> = given.into_iter().flatten().collect();
    match given.is_empty() {
        true => String::new(),
        false => format!("({})", given.join(", ")),
    }
}

fn same_page(shown: &Entries, page: &Page, list: &[Standing], cursors: &[String], sign: i64, said: &str) {
    let fits = |points: i64| {
        page.least.is_none_or(|least| points >= least) && page.most.is_none_or(|most| points <= most)
    };
    // The board is ordered by points, so those that fit are neighbours: list[low..high].
    let (worst_first, best_first) = if sign == 1 {
        (page.least, page.most)
    } else {
        (page.most, page.least)
    };
    let before_them =
        |standing: &Standing| worst_first.is_some_and(|bound| sign * standing.points < sign * bound);
    let up_to_them =
        |standing: &Standing| best_first.is_none_or(|bound| sign * standing.points <= sign * bound);
    let low = list.iter().filter(|standing| before_them(standing)).count();
    let high = list
        .iter()
        .filter(|standing| up_to_them(standing))
        .count()
        .max(low);
    assert!(list[low..high].iter().all(|standing| fits(standing.points)));
    let from = page.after.map_or(low, |after| (after + 1).clamp(low, high));
    let to = page
        .before
        .map_or(high, |before| before.clamp(from, high.max(from)));
    let (start, end) = match page.last {
        Some(last) => (to.saturating_sub(last).max(from), to),
        None => (from, to.min(from + page.first.unwrap_or(50))),
    };
    let rows: Vec<&Standing> = shown.edges.iter().map(|edge| &edge.node).collect();
    assert_eq!(rows, list[start..end].iter().collect::<Vec<_>>(), "{said}");
    let wanted = PageInfo {
        has_previous_page: start > low,
        has_next_page: end < high,
        start_cursor: cursors[start..end].first().cloned(),
        end_cursor: cursors[start..end].last().cloned(),
    };
    assert_eq!(shown.page_info, wanted, "{said}");
    assert_eq!(shown.total_count, high - low, "{said}");
}
