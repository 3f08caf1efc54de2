//! What a board is asked over: a calendar period, a rolling window, or heat.
//!
//! Owns the way from a date and a board to the sets that hold the answer, and how their keys are read. Pure; key names
//! are spelled by [`crate::keyspace::Keys`].

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::heat::{End, Heat};
use super::plan::PeriodPlan;
use super::{Board, BoardOrder, score};
use crate::config;
use crate::day::{Period, PeriodSpan, Zone, day_number, from_day_number};

/// Longer than any clocks differ: a Redis TTL is only the backstop behind deletion by the clock.
pub const BACKSTOP: TimeDelta = TimeDelta::days(1);

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
    /// For how many days after its end a period of `board` stays; `None`: for ever. Day sets stay as long as a window
    /// may need them.
    pub fn days(self, board: &Board, period: Period) -> Option<u32> {
        match period {
            Period::Day => Some(self.day.max(board.longest_window() + 1)),
            Period::Week => Some(self.week),
            Period::Month => Some(self.month),
            Period::AllTime => None,
        }
    }
}

/// One calendar period of a board.
#[derive(Debug, Clone)]
pub struct OpenPeriod {
    /// How it is encoded.
    pub plan: PeriodPlan,
    /// Its dates.
    pub dates: PeriodSpan,
    /// `2026-11-30`, `2026-W49`, `2026-11`, `all`.
    pub key: String,
    /// When it starts; `None` for ALL_TIME.
    pub starts_at: Option<DateTime<Utc>>,
    /// When it ends, exclusive; `None` for ALL_TIME.
    pub ends_at: Option<DateTime<Utc>>,
    /// When it leaves Redis; `None`: never.
    pub kept_until: Option<DateTime<Utc>>,
}

impl OpenPeriod {
    /// The period of `plan` that `date` lies in.
    pub fn of(
        board: &Board,
        plan: &PeriodPlan,
        date: NaiveDate,
        zone: &Zone,
        retention: Retention,
    ) -> OpenPeriod {
        let dates = plan.period.span_of(date);
        let ends_at = dates.ends_at(zone);
        let days = retention.days(board, plan.period);
        let kept_until = ends_at
            .zip(days)
            .and_then(|(end, days)| end.checked_add_signed(TimeDelta::days(days.into())));
        OpenPeriod {
            plan: *plan,
            key: dates.key(),
            starts_at: dates.starts_at(zone),
            dates,
            ends_at,
            kept_until,
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
            .stored_plans()
            .map(|plan| OpenPeriod::of(board, plan, date, zone, retention));
        periods.filter(|period| period.is_kept(now)).collect()
    }

    /// Whether Redis still keeps it at `now`.
    pub fn is_kept(&self, now: DateTime<Utc>) -> bool {
        self.kept_until.is_none_or(|until| now < until)
    }

    /// The tick of a write at `at`.
    pub fn tick(&self, at: DateTime<Utc>) -> i64 {
        score::tick(&self.plan, self.began(), at.timestamp_millis())
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

/// The last so many days, the day in force included.
#[derive(Debug, Clone)]
pub struct Window {
    /// How many days.
    pub days: u32,
    /// The day in force.
    pub date: NaiveDate,
    /// When its first day starts.
    pub starts_at: DateTime<Utc>,
    /// When the day in force ends, exclusive.
    pub ends_at: DateTime<Utc>,
}

impl Window {
    /// The window of `days` days that ends with `date`.
    pub fn ending(days: u32, date: NaiveDate, zone: &Zone) -> Window {
        let first = Window::dates(days, date, zone).next_back().unwrap_or(date);
        Window {
            days,
            date,
            starts_at: zone.start_of(first),
            ends_at: zone.end_of(date),
        }
    }

    /// The dates of a window, newest first. A date that the zone skipped is none.
    pub fn dates(
        days: u32,
        date: NaiveDate,
        zone: &Zone,
    ) -> impl DoubleEndedIterator<Item = NaiveDate> + use<> {
        let zone = *zone;
        let dates: Vec<NaiveDate> = std::iter::successors(Some(date), |&date| Some(zone.day_before(date)))
            .take(days as usize)
            .collect();
        dates.into_iter()
    }

    /// What key names call it: a set for each day in force.
    pub fn stored(days: u32, date: NaiveDate) -> String {
        format!("last-{days}@{date}")
    }
}

/// What a board is asked over.
#[derive(Debug, Clone)]
pub enum Span {
    /// A calendar period.
    Period(OpenPeriod),
    /// A rolling window.
    Window(Window),
    /// What is hot now.
    Heat(Heat),
}

impl Span {
    /// Names the span to callers: `2026-W49`, `last-7`, `heat`.
    pub fn key(&self) -> String {
        match self {
            Span::Period(period) => period.key.clone(),
            Span::Window(window) => format!("last-{}", window.days),
            Span::Heat(_) => "heat".into(),
        }
    }

    /// Names the span's sets.
    pub fn stored(&self) -> String {
        match self {
            Span::Period(period) => period.key.clone(),
            Span::Window(window) => Window::stored(window.days, window.date),
            Span::Heat(_) => "heat".into(),
        }
    }

    /// How many keys equal points may have; 0 where every key is a group of its own (`board.lua`).
    pub fn range(&self) -> i64 {
        match self {
            Span::Period(period) => period.plan.tie_range(),
            Span::Window(_) => 1,
            Span::Heat(_) => 0,
        }
    }

    /// The day in force of a window as scripts compare it.
    pub fn day_in_force(&self, board: &Board) -> Option<String> {
        match self {
            Span::Window(window) => Some(board.window_day(window.date)),
            Span::Period(_) | Span::Heat(_) => None,
        }
    }

    /// The calendar period, if it is one.
    pub fn period(&self) -> Option<Period> {
        match self {
            Span::Period(period) => Some(period.plan.period),
            Span::Window(_) | Span::Heat(_) => None,
        }
    }

    /// When it starts and ends, if it does.
    pub fn bounds(&self) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
        match self {
            Span::Period(period) => (period.starts_at, period.ends_at),
            Span::Window(window) => (Some(window.starts_at), Some(window.ends_at)),
            Span::Heat(_) => (None, None),
        }
    }

    /// The points within a key, as shown at `now`.
    pub fn points(&self, order: BoardOrder, key: f64, now: DateTime<Utc>) -> i64 {
        match self {
            Span::Heat(heat) => heat.shown(order, key, now),
            _ => score::sign(order) * self.group(key) as i64,
        }
    }

    /// What equal points have in common.
    pub fn group(&self, key: f64) -> f64 {
        match self.range() {
            0 => key,
            range => (key / range as f64).floor(),
        }
    }

    /// When the points of a key were reached, approximately, never later than `now`; `None` where keys do not tell.
    pub fn reached_at(&self, key: f64, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let Span::Period(period) = self else { return None };
        let tie = (key as i64).rem_euclid(period.plan.tie_range());
        let reached = score::reached_at(&period.plan, period.began(), tie, now.timestamp_millis())?;
        DateTime::from_timestamp_millis(reached)
    }

    /// Smallest and largest key of points within `least..=most`, as Redis reads bounds; open where there is none.
    pub fn key_bounds(
        &self,
        order: BoardOrder,
        least: Option<i64>,
        most: Option<i64>,
        now: DateTime<Utc>,
    ) -> [String; 2] {
        // The end of the points that stands first, and the one that stands last.
        let (front, back) = match order {
            BoardOrder::HighestFirst => (most, least),
            BoardOrder::LowestFirst => (least, most),
        };
        let sign = score::sign(order);
        let (front, back) = match self {
            Span::Heat(heat) => {
                let key = |points, end| heat.bound(order, points, end, now).to_string();
                (
                    front.map(|points| key(points, End::Front)),
                    back.map(|points| key(points, End::Back)),
                )
            }
            _ => {
                // Callers may ask for points far beyond the board's, whose keys no longer fit 64 bits.
                let first = |points: i64| i128::from(sign * points) * i128::from(self.range());
                (
                    front.map(|points| first(points).to_string()),
                    back.map(|points| (first(points) + i128::from(self.range()) - 1).to_string()),
                )
            }
        };
        [
            front.unwrap_or_else(|| "-inf".into()),
            back.unwrap_or_else(|| "+inf".into()),
        ]
    }

    /// Whether it is over at `now`.
    pub fn is_closed(&self, now: DateTime<Utc>) -> bool {
        matches!(self, Span::Period(period) if period.ends_at.is_some_and(|end| end <= now))
    }
}

/// A day as the scripts of windows compare it: the day and which windows are kept up with it.
pub fn window_day(date: NaiveDate, windows: &[u32]) -> String {
    let windows: Vec<String> = windows.iter().map(u32::to_string).collect();
    format!("{} {}", day_number(date), windows.join(","))
}

/// Reads what [`window_day`] spelled: the day, and the lengths of the windows.
pub fn read_window_day(text: &str) -> (Option<NaiveDate>, Vec<u32>) {
    let (day, windows) = text.split_once(' ').unwrap_or((text, ""));
    let date = day.parse().ok().and_then(from_day_number);
    (
        date,
        windows.split(',').filter_map(|days| days.parse().ok()).collect(),
    )
}
