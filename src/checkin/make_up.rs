//! Which missed days can be made up. Pure.
//!
//! Owns the outcomes and their precedence. What a make-up changes is [`super::Record`]'s, what it earns
//! [`super::rewards`]'.

use chrono::NaiveDate;

use super::Record;
use crate::day::Zone;

/// What became of a make-up. Where several apply, the first of them is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, async_graphql::Enum)]
pub enum MakeUpOutcome {
    /// The day counts as checked in now; one card was spent.
    MadeUp,
    /// The day was done before, by a check-in or a make-up; nothing changed.
    AlreadyCheckedIn,
    /// The day is today or to come; nothing changed.
    NotAPastDay,
    /// The day lies further back than make-ups reach, or before the user's first check-in; nothing changed.
    OutsideWindow,
    /// The user holds no make-up card; nothing changed.
    NoCards,
}

/// From when to when days can be made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MakeUpWindow {
    /// The first day; not before `today` if there is none.
    pub opens: NaiveDate,
    /// The day after the last.
    pub today: NaiveDate,
}

impl MakeUpWindow {
    /// The last `days` days before `today` by the zone's calendar, as far as their years are kept.
    pub fn before(zone: &Zone, today: NaiveDate, days: u32, kept_since: NaiveDate) -> MakeUpWindow {
        let opens = (0..days).fold(today, |day, _| zone.day_before(day));
        MakeUpWindow {
            opens: opens.max(kept_since),
            today,
        }
    }

    /// What a make-up of `date` comes to; `done` is whether there is a check-in on it.
    pub fn outcome(&self, date: NaiveDate, record: Option<&Record>, done: bool) -> MakeUpOutcome {
        let first = record
            .and_then(|record| record.done.as_ref())
            .map(|done| done.first);
        if done {
            MakeUpOutcome::AlreadyCheckedIn
        } else if date >= self.today {
            MakeUpOutcome::NotAPastDay
        } else if date < self.opens || first.is_none_or(|first| date < first) {
            MakeUpOutcome::OutsideWindow
        } else if record.is_none_or(|record| record.wallet.cards == 0) {
            MakeUpOutcome::NoCards
        } else {
            MakeUpOutcome::MadeUp
        }
    }
}
