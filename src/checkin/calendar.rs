//! A month as a calendar shows it. Pure.
//!
//! Owns the state of each day.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::Record;
use crate::day::{Month, Zone};

/// What is known of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, async_graphql::Enum)]
pub enum DayState {
    /// The user checked in on the day itself.
    CheckedIn,
    /// The user made the day up later.
    MadeUp,
    /// A past day without a check-in, after the first.
    Missed,
    /// Today, not checked in yet.
    TodayOpen,
    /// A day to come.
    Future,
    /// A day before the user's first check-in.
    BeforeFirst,
    /// A day of a year that is no longer kept.
    Unknown,
}

/// One day of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    /// Which.
    pub date: NaiveDate,
    /// What is known of it.
    pub state: DayState,
}

/// The days of `month`; a date that the zone skipped is left out. `done` holds the check-ins of the month, `kept_since`
/// is the first date whose check-ins are still held.
pub fn days(
    zone: &Zone,
    month: Month,
    today: NaiveDate,
    kept_since: NaiveDate,
    record: Option<&Record>,
    done: &BTreeSet<NaiveDate>,
) -> Vec<Day> {
    let state = |date: NaiveDate| match record {
        _ if done.contains(&date) => DayState::CheckedIn,
        _ if date > today => DayState::Future,
        _ if date == today => DayState::TodayOpen,
        None => DayState::BeforeFirst,
        Some(record) if date < record.first => DayState::BeforeFirst,
        _ if date < kept_since => DayState::Unknown,
        _ => DayState::Missed,
    };
    month
        .days()
        .filter(|&date| zone.exists(date))
        .map(|date| Day {
            date,
            state: state(date),
        })
        .collect()
}
