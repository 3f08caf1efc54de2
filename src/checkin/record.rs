//! What is kept of a user beside the check-in bits: a few numbers. Pure.
//!
//! Owns what they are and what a check-in makes of them; `check_in.lua` does the same, and is tested against this. How they
//! are stored is [`super::stored`]'s, what make-ups and history make of them [`super::joining`]'s.

use chrono::NaiveDate;

use super::ended::{Ended, Horizon};
use super::streak::Streak;
use super::{Reward, Rewards};
use crate::day::Zone;

/// A user's check-ins in numbers, and the wallet. It outlives the years that expire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// `None`: no check-in yet. A wallet may be filled before the first.
    pub done: Option<Done>,
    /// What the user holds.
    pub wallet: Reward,
}

/// A user's check-ins in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The first ever.
    pub first: NaiveDate,
    /// The newest.
    pub last: NaiveDate,
    /// Days in a row that end on `last`.
    pub run: u32,
    /// The longest run ever.
    pub longest: u32,
    /// How many ever.
    pub total: u32,
    /// What the check-in on `last` paid.
    pub paid: Reward,
    /// The runs before the newest that have to be remembered, oldest first: nearly always none.
    pub ended: Vec<Ended>,
}

impl Record {
    /// The streak as of `today`.
    pub fn streak(&self, zone: &Zone, today: NaiveDate) -> Streak {
        let done = self.done.as_ref();
        done.map(|done| done.streak(zone, today)).unwrap_or_default()
    }

    /// The record after a check-in on `today`; the same if that day, or a later one, is done already.
    pub fn with_check_in(
        self,
        zone: &Zone,
        horizon: &Horizon,
        rewards: &Rewards,
        today: NaiveDate,
    ) -> Record {
        let done = match self.done {
            Some(done) if done.last >= today => {
                let done = Some(done);
                return Record { done, ..self };
            }
            Some(done) => done.with_check_in(zone, horizon, today),
            None => Done::first(today),
        };
        let paid = rewards.for_streak(done.run);
        Record {
            done: Some(Done { paid, ..done }),
            wallet: self.wallet.plus(paid),
        }
    }
}

impl Done {
    /// After the first check-in.
    fn first(day: NaiveDate) -> Done {
        Done {
            first: day,
            last: day,
            run: 1,
            longest: 1,
            total: 1,
            paid: Reward::default(),
            ended: Vec::new(),
        }
    }

    fn with_check_in(mut self, zone: &Zone, horizon: &Horizon, today: NaiveDate) -> Done {
        if self.last == zone.day_before(today) {
            self.run += 1;
        } else {
            self.ended.push(self.newest());
            self.run = 1;
        }
        self.ended.retain(|run| horizon.keeps(run));
        Done {
            last: today,
            longest: self.longest.max(self.run),
            total: self.total + 1,
            ..self
        }
    }

    /// The newest run.
    pub(super) fn newest(&self) -> Ended {
        Ended {
            last: self.last,
            run: self.run,
        }
    }

    fn streak(&self, zone: &Zone, today: NaiveDate) -> Streak {
        let checked_in_today = self.last >= today;
        let yesterday = zone.day_before(today);
        let current = if checked_in_today || self.last == yesterday {
            self.run
        } else {
            0
        };
        let ends_at = match current {
            0 => None,
            _ => Some(zone.end_of(zone.day_after(self.last))),
        };
        Streak {
            current,
            longest: self.longest,
            total: self.total,
            checked_in_today,
            at_risk: current > 0 && !checked_in_today,
            ends_at,
            last_date: Some(self.last),
            at_least: false,
        }
    }
}
