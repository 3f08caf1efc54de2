//! Streaks: the rules, and the record that keeps a user's in a few numbers. Pure.
//!
//! Owns what counts as in a row. Days are consecutive by the zone's calendar, never by hours: a 23-hour day is a day
//! like any other, and a day that the zone skipped is not missed.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};

use super::Reward;
use crate::day::{Zone, day_number, from_day_number};
use crate::keyspace::Unavailable;
use crate::keyspace::mutation::Fields;

/// What is kept of a user's check-ins beside their bits, and the wallet. It outlives the years that expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The first check-in ever.
    pub first: NaiveDate,
    /// The newest.
    pub last: NaiveDate,
    /// Days in a row that end on `last`.
    pub run: u32,
    /// The longest run ever.
    pub longest: u32,
    /// Check-ins ever.
    pub total: u32,
    /// What the check-in on `last` paid.
    pub paid: Reward,
    /// What the user holds.
    pub wallet: Reward,
}

impl Record {
    /// Reads the nine fields that a record is stored as.
    pub fn read(fields: &mut Fields<'_>) -> Result<Record, Unavailable> {
        Ok(Record {
            first: date(fields)?,
            last: date(fields)?,
            run: fields.number()?,
            longest: fields.number()?,
            total: fields.number()?,
            paid: reward(fields)?,
            wallet: reward(fields)?,
        })
    }

    /// The streak as of `today`.
    pub fn streak(&self, zone: &Zone, today: NaiveDate) -> Streak {
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
        }
    }

    /// The record after history was written: `kept` are all check-ins of the kept years, the new ones included;
    /// `added` is how many are new. Days before the kept years are known by the old record alone: of a run that began
    /// there and is not the newest any more, only the kept part can be joined to what is new.
    pub fn with_history(
        zone: &Zone,
        old: Option<Record>,
        kept: &BTreeSet<NaiveDate>,
        added: u32,
    ) -> Option<Record> {
        let runs = runs(zone, kept.iter().copied());
        let newest = runs.last().copied();
        let (Some(newest), first) = (newest, kept.first().copied()?) else {
            return old;
        };
        let Some(old) = old else {
            let longest = runs.iter().map(|run| run.length).max().unwrap_or(0);
            let record = Record {
                first,
                last: newest.last,
                run: newest.length,
                longest,
                total: added,
                paid: Reward::default(),
                wallet: Reward::default(),
            };
            return Some(record);
        };
        // The old run may begin before the kept years, or lie before them whole: what the bits no longer show of it
        // still counts.
        let unseen = |run: &Run| {
            if zone.day_before(run.first) == old.last {
                old.run
            } else if run.contains(old.last) {
                old.run
                    .saturating_sub(kept.range(run.first..=old.last).count() as u32)
            } else {
                0
            }
        };
        let longest = runs.iter().map(|run| run.length + unseen(run)).max().unwrap_or(0);
        let newer = newest.last > old.last;
        Some(Record {
            first: first.min(old.first),
            last: newest.last.max(old.last),
            run: if newest.last >= old.last {
                newest.length + unseen(&newest)
            } else {
                old.run
            },
            longest: longest.max(old.longest),
            total: old.total + added,
            paid: if newer { Reward::default() } else { old.paid },
            wallet: old.wallet,
        })
    }
}

/// As stored: `check_in.lua` reads and writes the same nine numbers. Dates are days since 1970-01-01.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record {
            first,
            last,
            run,
            longest,
            total,
            paid,
            wallet,
        } = self;
        write!(
            f,
            "{} {} {run} {longest} {total} ",
            day_number(*first),
            day_number(*last)
        )?;
        write!(
            f,
            "{} {} {} {}",
            paid.points, paid.cards, wallet.points, wallet.cards
        )
    }
}

fn date(fields: &mut Fields<'_>) -> Result<NaiveDate, Unavailable> {
    let number = fields.number()?;
    from_day_number(number).ok_or_else(|| Unavailable::Fault(format!("{number} is no day")))
}

fn reward(fields: &mut Fields<'_>) -> Result<Reward, Unavailable> {
    Ok(Reward {
        points: fields.number()?,
        cards: fields.number()?,
    })
}

/// A streak as of some day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streak {
    /// Days in a row up to today, or up to yesterday while today is open.
    pub current: u32,
    /// The longest run ever.
    pub longest: u32,
    /// Check-ins ever.
    pub total: u32,
    /// Whether today is done.
    pub checked_in_today: bool,
    /// Whether the run ends with today unless the user checks in.
    pub at_risk: bool,
    /// When the run ends unless the user checks in again.
    pub ends_at: Option<DateTime<Utc>>,
    /// The newest check-in.
    pub last_date: Option<NaiveDate>,
}

/// Days in a row that end on `day`, or on the day before while `day` is still open.
///
/// `history` yields check-in dates, newest first, none after `day`.
pub fn current_streak(zone: &Zone, day: NaiveDate, history: impl IntoIterator<Item = NaiveDate>) -> u32 {
    let mut days = history.into_iter().peekable();
    let mut expected = match days.peek() {
        Some(&newest) if newest == day => day,
        _ => zone.day_before(day),
    };
    let mut length = 0;
    for checked_in in days {
        if checked_in != expected {
            break;
        }
        length += 1;
        expected = zone.day_before(expected);
    }
    length
}

/// Days in a row, from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Its first day.
    pub first: NaiveDate,
    /// Its last day.
    pub last: NaiveDate,
    /// How many days.
    pub length: u32,
}

impl Run {
    fn contains(&self, day: NaiveDate) -> bool {
        (self.first..=self.last).contains(&day)
    }
}

/// The runs among ascending dates, in order.
pub fn runs(zone: &Zone, history: impl IntoIterator<Item = NaiveDate>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for day in history {
        match runs.last_mut() {
            Some(run) if zone.day_after(run.last) == day => {
                run.last = day;
                run.length += 1;
            }
            _ => runs.push(Run {
                first: day,
                last: day,
                length: 1,
            }),
        }
    }
    runs
}
