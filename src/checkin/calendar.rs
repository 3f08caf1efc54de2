//! A month as a calendar shows it. Pure.
//!
//! Owns the state of each day.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::Record;
use super::history::CheckInKind;
use super::make_up::{MakeUpOutcome, MakeUpWindow};
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
    /// A day of a year that is no longer kept, between the first check-in and the newest.
    Unknown,
}

/// One day of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    /// Which.
    pub date: NaiveDate,
    /// What is known of it.
    pub state: DayState,
    /// Whether it can be made up now.
    pub can_make_up: bool,
}

/// The days of `month`; a date that the zone skipped is left out. `done` holds the check-ins of the month, `kept_since`
/// is the first date whose check-ins are still held.
pub fn days(
    zone: &Zone,
    month: Month,
    window: &MakeUpWindow,
    kept_since: NaiveDate,
    record: Option<&Record>,
    done: &BTreeMap<NaiveDate, CheckInKind>,
) -> Vec<Day> {
    let first = record
        .and_then(|record| record.done.as_ref())
        .map(|done| done.first);
    let unknown = record.and_then(|record| record.unknown(kept_since));
    let unknown = |date| unknown.as_ref().is_some_and(|unknown| unknown.contains(&date));
    let state = |date: NaiveDate| match done.get(&date) {
        Some(CheckInKind::Normal) => DayState::CheckedIn,
        Some(CheckInKind::MakeUp) => DayState::MadeUp,
        None if date > window.today => DayState::Future,
        None if date == window.today => DayState::TodayOpen,
        None if first.is_none_or(|first| date < first) => DayState::BeforeFirst,
        None if unknown(date) => DayState::Unknown,
        None => DayState::Missed,
    };
    month
        .days()
        .filter(|&date| zone.exists(date))
        .map(|date| Day {
            date,
            state: state(date),
            can_make_up: window.outcome(date, record, done.contains_key(&date)) == MakeUpOutcome::MadeUp,
        })
        .collect()
}
