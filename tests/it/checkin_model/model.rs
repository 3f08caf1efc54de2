//! What should be: every check-in ever, and the rules in the plainest words.

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate, TimeDelta};
use tallyboard::checkin::ended::Horizon;
use tallyboard::checkin::rewards::{Reward as Earned, Rewards};
use tallyboard::checkin::streak;
use tallyboard::day::{Period, Zone};

use super::{COUNTS, POINTS, Setup, USERS};
use crate::harness::*;

#[derive(Default)]
pub struct User {
    /// Whether each was made up.
    pub done: BTreeMap<NaiveDate, bool>,
    /// What the check-in on the newest date paid.
    pub paid: Earned,
    pub wallet: Earned,
    /// Whether it checks in every day for now.
    pub steady: bool,
}

pub struct Model {
    pub setup: Setup,
    pub zone: Zone,
    pub rules: Rewards,
    pub today: NaiveDate,
    pub hour: u32,
    pub users: Vec<User>,
    /// Points by board, period and user.
    pub boards: BTreeMap<(&'static str, String), BTreeMap<usize, i64>>,
    pub made_up: u32,
    pub milestones: u32,
}

impl Model {
    pub fn new(app: &TestApp, setup: Setup) -> Model {
        Model {
            setup,
            zone: app.settings.zone().unwrap(),
            rules: Rewards::from(&app.settings.checkin),
            today: date(setup.begins),
            hour: 0,
            users: (0..USERS).map(|_| User::default()).collect(),
            boards: BTreeMap::new(),
            made_up: 0,
            milestones: 0,
        }
    }

    /// It is `date` now, at the model's hour.
    pub fn on(&mut self, app: &TestApp, date: NaiveDate) {
        self.today = date;
        let since = TimeDelta::hours(self.hour.into()) + TimeDelta::minutes(30);
        app.clock.set(self.zone.start_of(date) + since);
    }

    pub fn kept_since(&self) -> NaiveDate {
        self.kept_since_on(self.today)
    }

    pub fn kept_since_on(&self, today: NaiveDate) -> NaiveDate {
        NaiveDate::from_ymd_opt(today.year() - self.setup.keep_years as i32, 1, 1).unwrap()
    }

    pub fn opens(&self) -> NaiveDate {
        let window = 0..self.setup.window_days;
        let opens = window.fold(self.today, |day, _| self.zone.day_before(day));
        opens.max(self.kept_since())
    }

    pub fn horizon(&self) -> Horizon {
        let since = |day| self.kept_since_on(day);
        Horizon::of(&self.zone, self.today, self.setup.window_days, since)
    }

    /// The dates of the zone's calendar from `first` to `last`.
    pub fn dates(&self, first: NaiveDate, last: NaiveDate) -> impl Iterator<Item = NaiveDate> + use<> {
        let (zone, dates) = (self.zone, first.iter_days());
        dates
            .take_while(move |date| *date <= last)
            .filter(move |date| zone.exists(*date))
    }

    /// Days in a row among those of `user` that end on `last`.
    pub fn run_until(&self, user: usize, last: NaiveDate) -> u32 {
        let (done, mut day, mut run) = (&self.users[user].done, last, 0);
        while done.contains_key(&day) {
            (day, run) = (self.zone.day_before(day), run + 1);
        }
        run
    }

    fn run_from(&self, user: usize, first: NaiveDate) -> u32 {
        let (done, mut day, mut run) = (&self.users[user].done, first, 0);
        while done.contains_key(&day) {
            (day, run) = (self.zone.day_after(day), run + 1);
        }
        run
    }

    fn score(&mut self, board: &'static str, periods: &[Period], user: usize, points: i64, on: NaiveDate) {
        let today = self.today;
        let open = periods
            .iter()
            .filter(|period| period.span_of(on) == period.span_of(today));
        for period in open {
            let spans = self.boards.entry((board, period.span_of(on).key())).or_default();
            let held = spans.entry(user).or_insert(0);
            let most = match board {
                "points" => self.setup.max_points,
                _ => i64::MAX,
            };
            *held = (*held + points).min(most);
        }
    }

    /// The outcome and what was earned.
    pub fn check_in(&mut self, user: usize) -> (&'static str, Earned) {
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

    pub fn outcome(&self, user: usize, date: NaiveDate) -> &'static str {
        self.outcome_since(self.opens(), user, date)
    }

    /// The same, where it is known already since when days can be made up.
    pub fn outcome_since(&self, opens: NaiveDate, user: usize, date: NaiveDate) -> &'static str {
        let User { done, wallet, .. } = &self.users[user];
        let first = done.keys().next();
        if date >= self.kept_since() && done.contains_key(&date) {
            "ALREADY_CHECKED_IN"
        } else if date >= self.today {
            "NOT_A_PAST_DAY"
        } else if date < opens || first.is_none_or(|&first| date < first) {
            "OUTSIDE_WINDOW"
        } else if wallet.cards == 0 {
            "NO_CARDS"
        } else {
            "MADE_UP"
        }
    }

    pub fn make_up(&mut self, user: usize, date: NaiveDate) -> (&'static str, Earned) {
        let outcome = self.outcome(user, date);
        if outcome != "MADE_UP" {
            return (outcome, Earned::default());
        }
        let (before, after) = (
            self.run_until(user, self.zone.day_before(date)),
            self.run_from(user, self.zone.day_after(date)),
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

    pub fn import(&mut self, user: usize, date: NaiveDate) {
        let held = &mut self.users[user];
        if held.done.contains_key(&date) {
            return;
        }
        if held.done.keys().next_back() < Some(&date) {
            held.paid = Earned::default();
        }
        held.done.insert(date, false);
    }

    pub fn streak(&self, user: usize) -> (u32, u32, u32, bool, bool) {
        let done = &self.users[user].done;
        let current = streak::current_streak(&self.zone, self.today, done.keys().rev().copied());
        let today = done.contains_key(&self.today);
        let longest = self.longest_by(user, self.today);
        (current, longest, done.len() as u32, today, current > 0 && !today)
    }

    /// The longest run of `user` at the end of `day`.
    pub fn longest_by(&self, user: usize, day: NaiveDate) -> u32 {
        let until = self.users[user].done.range(..=day);
        let runs = streak::runs(&self.zone, until.map(|(date, _)| *date));
        runs.iter().map(|run| run.length).max().unwrap_or(0)
    }

    /// Whether it is forgotten if there was a check-in on `date`.
    pub fn is_unknown(&self, user: usize, date: NaiveDate) -> bool {
        let mut done = self.users[user].done.keys();
        let first = done.next().is_some_and(|&first| first <= date);
        let newest = self.users[user].done.keys().next_back();
        first && date < self.kept_since() && newest.is_some_and(|&newest| date <= newest)
    }

    pub fn state(&self, user: usize, date: NaiveDate) -> &'static str {
        let done = &self.users[user].done;
        match done.get(&date).filter(|_| date >= self.kept_since()) {
            Some(false) => "CHECKED_IN",
            Some(true) => "MADE_UP",
            None if date > self.today => "FUTURE",
            None if date == self.today => "TODAY_OPEN",
            None if done.keys().next().is_none_or(|&first| date < first) => "BEFORE_FIRST",
            None if self.is_unknown(user, date) => "UNKNOWN",
            None => "MISSED",
        }
    }
}

pub fn shown(reward: Earned) -> Reward {
    Reward {
        points: reward.points,
        make_up_cards: reward.cards,
    }
}

pub fn name(user: usize) -> String {
    format!("user-{user}")
}
