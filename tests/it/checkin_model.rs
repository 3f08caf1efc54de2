//! Random lives of users against a plain model: check-ins, make-ups, wallets and imports over gaps, years' ends and
//! restarts. What was answered, the wallet, the boards, the streak, the calendar, the list of check-ins and the counters
//! of days agree at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use chrono::{Datelike, Days, NaiveDate};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tallyboard::checkin::rewards::{Reward as Earned, Rewards};
use tallyboard::checkin::streak;
use tallyboard::config::{Board as Configured, Milestone, Settings};
use tallyboard::day::{Period, Zone};
use tallyboard::leaderboard::TieBreak;

use crate::harness::*;

const USERS: usize = 4;
const OPERATIONS: usize = 10_000;
const KEEP_DAYS: u64 = 40;
const POINTS: [Period; 3] = [Period::Day, Period::Month, Period::AllTime];
const COUNTS: [Period; 3] = [Period::Week, Period::Month, Period::AllTime];

/// One run: how the server is set up.
#[derive(Clone, Copy)]
struct Setup {
    partitions: u32,
    keep_years: u32,
    window_days: u32,
    max_points: i64,
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_random_operations_on_one_partition_agree_with_a_plain_model() {
    // Runs that began in a year that is gone are joined again and again.
    let setup = Setup {
        partitions: 1,
        keep_years: 0,
        window_days: 12,
        max_points: 10_000_000,
    };
    live(setup).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_random_operations_on_eight_partitions_agree_with_a_plain_model() {
    let setup = Setup {
        partitions: 8,
        keep_years: 1,
        window_days: 4,
        max_points: 3_000, // which many come up to
    };
    live(setup).await;
}

async fn live(setup: Setup) {
    let seed = Seed::draw();
    let mut rng = StdRng::seed_from_u64(seed.0);
    let mut app = spawn_app()
        .with(off_disk)
        .with(|settings| configure(settings, setup))
        .at("2027-10-20T12:00:00Z")
        .await;
    let mut model = Model::new(&app, setup);
    for turn in 0..OPERATIONS {
        step(&app, &mut model, &mut rng).await;
        if turn % 200 == 199 {
            compare(&app, &model, &mut rng).await;
        }
        if turn % 3_000 == 2_999 {
            app = app.restarted(|_| {}).await;
        }
    }
    compare(&app, &model, &mut rng).await;
    let years: BTreeSet<i32> = model
        .users
        .iter()
        .flat_map(|user| user.done.keys().map(Datelike::year))
        .collect();
    assert!(years.len() >= 2 && model.today.year() >= 2028, "{years:?}");
    assert!(
        model.made_up > 100 && model.milestones > 10,
        "{} and {}",
        model.made_up,
        model.milestones
    );
}

fn configure(settings: &mut Settings, setup: Setup) {
    settings.redis.partitions = setup.partitions;
    settings.checkin.keep_years = setup.keep_years;
    settings.makeup.window_days = setup.window_days;
    settings.analytics.keep_days = KEEP_DAYS as u32;
    settings.checkin.cycle = vec![10, 11, 12, 13, 14];
    settings.checkin.milestone = [(3, 33, 0), (7, 77, 1), (10, 100, 1), (20, 200, 2), (50, 555, 3)]
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

// ----------------------------------------------------------------------------------------------------------------- model

#[derive(Default)]
struct User {
    /// Whether each was made up.
    done: BTreeMap<NaiveDate, bool>,
    /// What the check-in on the newest date paid.
    paid: Earned,
    wallet: Earned,
}

struct Model {
    setup: Setup,
    zone: Zone,
    rules: Rewards,
    today: NaiveDate,
    hour: u32,
    users: Vec<User>,
    /// Points by board, period and user.
    boards: BTreeMap<(&'static str, String), BTreeMap<usize, i64>>,
    made_up: u32,
    milestones: u32,
}

impl Model {
    fn new(app: &TestApp, setup: Setup) -> Model {
        Model {
            setup,
            zone: app.settings.zone().unwrap(),
            rules: Rewards::from(&app.settings.checkin),
            today: date("2027-10-20"),
            hour: 12,
            users: (0..USERS).map(|_| User::default()).collect(),
            boards: BTreeMap::new(),
            made_up: 0,
            milestones: 0,
        }
    }

    fn kept_since(&self) -> NaiveDate {
        NaiveDate::from_ymd_opt(self.today.year() - self.setup.keep_years as i32, 1, 1).unwrap()
    }

    fn opens(&self) -> NaiveDate {
        (self.today - Days::new(self.setup.window_days.into())).max(self.kept_since())
    }

    /// Days in a row among those of `user` that end on `last`.
    fn run_until(&self, user: usize, last: NaiveDate) -> u32 {
        let done = |date: &NaiveDate| self.users[user].done.contains_key(date);
        last.iter_days().rev().take_while(done).count() as u32
    }

    fn run_from(&self, user: usize, first: NaiveDate) -> u32 {
        let done = |date: &NaiveDate| self.users[user].done.contains_key(date);
        first.iter_days().take_while(done).count() as u32
    }

    fn score(&mut self, board: &'static str, periods: &[Period], user: usize, points: i64, on: NaiveDate) {
        for period in periods
            .iter()
            .filter(|period| period.span_of(on) == period.span_of(self.today))
        {
            let spans = self.boards.entry((board, period.span_of(on).key())).or_default();
            let held = spans.entry(user).or_insert(0);
            let most = if board == "points" {
                self.setup.max_points
            } else {
                i64::MAX
            };
            *held = (*held + points).min(most);
        }
    }

    /// The outcome and what was earned.
    fn check_in(&mut self, user: usize) -> (&'static str, Earned) {
        let today = self.today;
        if self.users[user].done.contains_key(&today) {
            return ("ALREADY_CHECKED_IN", self.users[user].paid);
        }
        self.users[user].done.insert(today, false);
        let dates = self.users[user].done.keys().rev().copied();
        let paid = self
            .rules
            .for_streak(streak::current_streak(&self.zone, today, dates));
        self.users[user].paid = paid;
        self.users[user].wallet = self.users[user].wallet.plus(paid);
        self.score("points", &POINTS, user, paid.points, today);
        self.score("count", &COUNTS, user, 1, today);
        ("CHECKED_IN", paid)
    }

    fn outcome(&self, user: usize, date: NaiveDate) -> &'static str {
        let User { done, wallet, .. } = &self.users[user];
        let first = done.keys().next();
        if date >= self.kept_since() && done.contains_key(&date) {
            "ALREADY_CHECKED_IN"
        } else if date >= self.today {
            "NOT_A_PAST_DAY"
        } else if date < self.opens() || first.is_none_or(|&first| date < first) {
            "OUTSIDE_WINDOW"
        } else if wallet.cards == 0 {
            "NO_CARDS"
        } else {
            "MADE_UP"
        }
    }

    fn make_up(&mut self, user: usize, date: NaiveDate) -> (&'static str, Earned) {
        let outcome = self.outcome(user, date);
        if outcome != "MADE_UP" {
            return (outcome, Earned::default());
        }
        let (before, after) = (
            self.run_until(user, date.pred_opt().unwrap()),
            self.run_from(user, date.succ_opt().unwrap()),
        );
        let mut reward = Earned::default();
        for (length, extra) in &self.rules.milestones {
            if before.max(after) < *length && *length <= before + 1 + after {
                reward = reward.plus(*extra);
                self.milestones += 1;
            }
        }
        self.made_up += 1;
        let held = &mut self.users[user];
        held.done.insert(date, true);
        held.wallet.cards -= 1;
        held.wallet = held.wallet.plus(reward);
        if reward.points > 0 {
            self.score("points", &POINTS, user, reward.points, self.today);
        }
        self.score("count", &COUNTS, user, 1, date);
        (outcome, reward)
    }

    fn streak(&self, user: usize) -> (u32, u32, u32, bool, bool) {
        let done = &self.users[user].done;
        let current = streak::current_streak(&self.zone, self.today, done.keys().rev().copied());
        let runs = streak::runs(&self.zone, done.keys().copied());
        let longest = runs.iter().map(|run| run.length).max().unwrap_or(0);
        let today = done.contains_key(&self.today);
        (current, longest, done.len() as u32, today, current > 0 && !today)
    }

    fn state(&self, user: usize, date: NaiveDate) -> &'static str {
        let done = &self.users[user].done;
        match done.get(&date).filter(|_| date >= self.kept_since()) {
            Some(false) => "CHECKED_IN",
            Some(true) => "MADE_UP",
            None if date > self.today => "FUTURE",
            None if date == self.today => "TODAY_OPEN",
            None if done.keys().next().is_none_or(|&first| date < first) => "BEFORE_FIRST",
            None if date < self.kept_since() => "UNKNOWN",
            None => "MISSED",
        }
    }
}

fn shown(reward: Earned) -> Reward {
    Reward {
        points: reward.points,
        make_up_cards: reward.cards,
    }
}

fn name(user: usize) -> String {
    format!("user-{user}")
}

// ------------------------------------------------------------------------------------------------------------ operations

async fn step(app: &TestApp, model: &mut Model, rng: &mut StdRng) {
    let user = rng.random_range(0..USERS);
    match rng.random_range(0..100) {
        0..7 => later(app, model, rng),
        7..55 => {
            let receipt = app.user(&name(user)).check_in().await;
            answered(model, user, &receipt, |model| model.check_in(user));
        }
        55..80 => {
            let back = rng.random_range(0..=u64::from(model.setup.window_days) + 3);
            let date = model.today + Days::new(1) - Days::new(back);
            let receipt = app.user(&name(user)).make_up(&date.to_string()).await;
            answered(model, user, &receipt, |model| model.make_up(user, date));
        }
        80..86 => {
            let cards = rng.random_range(1..3);
            let changed = app.service().grant(&name(user), cards, None).await;
            model.users[user].wallet.cards += cards as u32;
            assert_eq!(
                (changed.outcome.as_str(), changed.wallet),
                ("APPLIED", shown(model.users[user].wallet))
            );
        }
        86..97 => {
            let points = rng.random_range(-400..200);
            let changed = app.service().adjust(&name(user), points, None).await;
            let wallet = &mut model.users[user].wallet;
            let enough = wallet.points + points >= 0;
            wallet.points += if enough { points } else { 0 };
            let outcome = if enough { "APPLIED" } else { "INSUFFICIENT" };
            assert_eq!(
                (changed.outcome.as_str(), changed.wallet),
                (outcome, shown(*wallet))
            );
        }
        _ => import(app, model, rng).await,
    }
}

/// The clock goes on: mostly to the next day, at times within it, at times over a few.
fn later(app: &TestApp, model: &mut Model, rng: &mut StdRng) {
    let days = match rng.random_range(0..10) {
        0 => 0,
        1 => rng.random_range(2..5),
        _ => 1,
    };
    model.hour = if days == 0 {
        rng.random_range(model.hour..24)
    } else {
        rng.random_range(0..24)
    };
    model.today = model.today + Days::new(days);
    app.set(&format!("{}T{:02}:30:00Z", model.today, model.hour));
}

fn answered(
    model: &mut Model,
    user: usize,
    receipt: &CheckedIn,
    done: impl FnOnce(&mut Model) -> (&'static str, Earned),
) {
    let (outcome, earned) = done(model);
    let newest: Vec<_> = model.users[user].done.iter().rev().take(30).collect();
    let said = format!("user {user}, {}: {newest:?}", receipt.date);
    assert_eq!(
        (receipt.outcome.as_str(), receipt.reward),
        (outcome, shown(earned)),
        "{said}"
    );
    assert_eq!(receipt.wallet, shown(model.users[user].wallet), "{said}");
    same_streak(model, user, &receipt.streak);
}

fn same_streak(model: &Model, user: usize, shown: &Streak) {
    let is = (
        shown.current,
        shown.longest,
        shown.total,
        shown.checked_in_today,
        shown.at_risk,
    );
    assert_eq!(is, model.streak(user), "user {user} on {}", model.today);
    let newest = model.users[user].done.keys().next_back();
    assert_eq!(shown.last_date, newest.map(NaiveDate::to_string));
    let next = model.rules.for_streak(shown.current + 1);
    assert_eq!(shown.next_reward, Some(self::shown(next)));
}

/// A file with some days of the last two weeks. What make-ups could join stays known beyond the kept years, so only such
/// days come.
async fn import(app: &TestApp, model: &mut Model, rng: &mut StdRng) {
    let mut text = String::from("user,date\n");
    for _ in 0..rng.random_range(1..4) {
        let user = rng.random_range(0..USERS);
        let date = model.today - Days::new(rng.random_range(0..13));
        if date < model.opens() {
            continue;
        }
        writeln!(text, "{},{date}", name(user)).unwrap();
        let held = &mut model.users[user];
        let newest = held.done.keys().next_back().copied();
        if held
            .done
            .insert(date, held.done.get(&date) == Some(&true))
            .is_none()
            && newest < Some(date)
        {
            held.paid = Earned::default();
        }
    }
    let file = app.dir.path().join("some.csv");
    std::fs::write(&file, text).unwrap();
    let done = tallyboard::import::check_ins::import(&app.running().app, &file).await;
    assert_eq!(done.unwrap().rejected, 0);
}

// ------------------------------------------------------------------------------------------------------------ comparison

async fn compare(app: &TestApp, model: &Model, rng: &mut StdRng) {
    app.look_after().await;
    for user in 0..USERS {
        let caller = app.user(&name(user));
        same_streak(model, user, &caller.streak().await);
        assert_eq!(
            caller.wallet().await,
            shown(model.users[user].wallet),
            "user {user}"
        );
        let months_back = [0, 31, 31 * rng.random_range(2..16)];
        for day in months_back.map(|back| model.today - Days::new(back)) {
            same_month(
                model,
                user,
                &caller.calendar(&day.format("%Y-%m").to_string()).await,
            );
        }
        let from = model.kept_since() - Days::new(40);
        let until = model.today + Days::new(1);
        let kinds = caller.kinds(&from.to_string(), &until.to_string()).await;
        let wanted: Vec<(String, String)> = model.users[user]
            .done
            .range(model.kept_since()..)
            .map(|(date, made_up)| {
                (
                    date.to_string(),
                    if *made_up { "MAKE_UP" } else { "NORMAL" }.to_owned(),
                )
            })
            .collect();
        assert_eq!(kinds, wanted, "user {user} on {}", model.today);
        same_past(&caller, model, user, rng).await;
    }
    same_boards(app, model).await;
    same_days(app, model).await;
}

fn same_month(model: &Model, user: usize, days: &[Day]) {
    for day in days {
        let on = date(&day.date);
        let said = format!("user {user}, {on} as of {}", model.today);
        assert_eq!(day.state, model.state(user, on), "{said}");
        assert_eq!(day.can_make_up, model.outcome(user, on) == "MADE_UP", "{said}");
    }
}

/// A past day of the kept years: what is known of it for sure.
async fn same_past(caller: &Caller<'_>, model: &Model, user: usize, rng: &mut StdRng) {
    let days = (model.today - model.kept_since()).num_days() as u64;
    let on = model.today - Days::new(rng.random_range(0..=days.min(60)));
    if on == model.today {
        return;
    }
    let shown = caller.streak_on(&on.to_string()).await;
    let current = model.run_until(user, on);
    // Of a run that began before the kept years only the kept part may be known.
    if on - Days::new(current.into()) >= model.kept_since() {
        assert_eq!(
            shown.current, current,
            "user {user} on {on} as of {}",
            model.today
        );
    }
    let total = model.users[user].done.range(..=on).count() as u32;
    assert_eq!((shown.total, shown.checked_in_today), (total, current > 0));
}

async fn same_boards(app: &TestApp, model: &Model) {
    for (board, periods) in [("points", POINTS), ("count", COUNTS)] {
        for kind in periods {
            let shown = app.service().board(board, &period(kind.as_str()), None).await;
            let shown: BTreeMap<String, i64> = shown.order().into_iter().collect();
            let key = (board, kind.span_of(model.today).key());
            let wanted = model.boards.get(&key).cloned().unwrap_or_default();
            let wanted: BTreeMap<String, i64> = wanted
                .into_iter()
                .map(|(user, points)| (name(user), points))
                .collect();
            assert_eq!(shown, wanted, "{key:?}");
        }
    }
}

/// Bits and counters of the kept days.
async fn same_days(app: &TestApp, model: &Model) {
    let keyspace = &app.running().app.keyspace;
    let mut redis = app.redis().await;
    for day in model.today.iter_days().rev().take(KEEP_DAYS as usize + 2) {
        let (mut counted, mut bits) = (0, 0);
        for p in keyspace.partitions() {
            let (count, ones): (Option<usize>, usize) = redis::pipe()
                .cmd("GET")
                .arg(keyspace.keys().day_count(p, day))
                .cmd("BITCOUNT")
                .arg(keyspace.keys().day(p, day, 0))
                .query_async(&mut redis)
                .await
                .unwrap();
            counted += count.unwrap_or(0);
            bits += ones;
        }
        let kept = (model.today - day).num_days() <= KEEP_DAYS as i64;
        let wanted = model
            .users
            .iter()
            .filter(|user| kept && user.done.contains_key(&day))
            .count();
        assert_eq!((counted, bits), (wanted, wanted), "{day} as of {}", model.today);
    }
}
