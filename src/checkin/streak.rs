//! Streaks: the rules. Pure.
//!
//! Owns what counts as in a row. Days are consecutive by the zone's calendar, never by hours: a 23-hour day is a day
//! like any other, and a day that the zone skipped is not missed.

use chrono::{DateTime, NaiveDate, Utc};

use crate::day::Zone;

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
    /// Whether `current` and `longest` are only at least so much: days that nobody knows any more may make them more. Never
    /// of today.
    pub at_least: bool,
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
    /// Whether `day` is one of its days.
    pub fn contains(&self, day: NaiveDate) -> bool {
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
