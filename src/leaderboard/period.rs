//! The sets that a date belongs to: for each period of a board its key, its ticks and how long it is kept.
//!
//! Owns the way from an instant and a board to "where does this score go". Pure; key names are spelled by
//! [`crate::keyspace::Keys`].

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::plan::PeriodPlan;
use super::{Board, score};
use crate::config;
use crate::day::{Period, PeriodSpan, Zone};

/// Longer than any clocks differ: a Redis TTL is only the backstop behind deletion by the clock.
const BACKSTOP: TimeDelta = TimeDelta::days(1);

/// How long closed periods stay in Redis.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    day: u32,
    week: u32,
    month: u32,
}

impl From<&config::Retention> for Retention {
    fn from(kept: &config::Retention) -> Retention {
        Retention {
            day: kept.day_boards_days,
            week: kept.week_boards_days,
            month: kept.month_boards_days,
        }
    }
}

impl Retention {
    /// When a period that ends at `ends_at` may go; ALL_TIME never does.
    fn until(self, period: Period, ends_at: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        let days = match period {
            Period::Day => self.day,
            Period::Week => self.week,
            Period::Month => self.month,
            Period::AllTime => return None,
        };
        ends_at?.checked_add_signed(TimeDelta::days(days.into()))
    }
}

/// One period of a board at one date.
#[derive(Debug, Clone)]
pub struct OpenPeriod {
    /// How it is encoded.
    pub plan: PeriodPlan,
    /// `2026-11-30`, `2026-W49`, `2026-11`, `all`.
    pub key: String,
    /// When it starts; `None` for ALL_TIME.
    pub starts_at: Option<DateTime<Utc>>,
    /// When it ends, exclusive; `None` for ALL_TIME.
    pub ends_at: Option<DateTime<Utc>>,
    /// When it leaves Redis; `None`: never.
    kept_until: Option<DateTime<Utc>>,
}

impl OpenPeriod {
    /// The period of `plan` that `date` lies in.
    pub fn of(plan: &PeriodPlan, date: NaiveDate, zone: &Zone, retention: Retention) -> OpenPeriod {
        let span: PeriodSpan = plan.period.span_of(date);
        let ends_at = span.ends_at(zone);
        OpenPeriod {
            plan: *plan,
            key: span.key(),
            starts_at: span.starts_at(zone),
            ends_at,
            kept_until: retention.until(plan.period, ends_at),
        }
    }

    /// Every period of `board` that `at` lies in and that Redis still keeps at `now`.
    pub fn kept(
        board: &Board,
        at: DateTime<Utc>,
        now: DateTime<Utc>,
        zone: &Zone,
        retention: Retention,
    ) -> Vec<OpenPeriod> {
        let date = zone.date_of(at);
        let periods = board
            .plans
            .iter()
            .map(|plan| OpenPeriod::of(plan, date, zone, retention));
        periods.filter(|period| period.is_kept(now)).collect()
    }

    /// Whether Redis still keeps it at `now`.
    pub fn is_kept(&self, now: DateTime<Utc>) -> bool {
        self.kept_until.is_none_or(|until| now < until)
    }

    /// Whether it is over at `now`.
    pub fn is_closed(&self, now: DateTime<Utc>) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }

    /// The tick of a write at `at`.
    pub fn tick(&self, at: DateTime<Utc>) -> i64 {
        score::tick(&self.plan, self.began(), at.timestamp_millis())
    }

    /// When a tie was reached, approximately, and never later than `now`.
    pub fn reached_at(&self, tie: i64, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        score::reached_at(&self.plan, self.began(), tie, now.timestamp_millis())
            .and_then(DateTime::from_timestamp_millis)
    }

    /// The backstop TTL at `now`, in seconds; 0: never.
    pub fn ttl(&self, now: DateTime<Utc>) -> i64 {
        self.kept_until
            .map_or(0, |until| (until - now + BACKSTOP).num_seconds().max(1))
    }

    fn began(&self) -> i64 {
        score::ticks_begin(self.plan.period, self.starts_at.map(|at| at.timestamp_millis()))
    }
}
