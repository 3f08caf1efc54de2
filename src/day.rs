//! Which business date an instant belongs to, the calendar of the business zone, and the keys of periods.
//!
//! Everything that asks "which day is it" asks [`Zone::date_of`], and everything that walks from day to day
//! walks by [`Zone::day_before`] and [`Zone::day_after`]: by the calendar, never by 24 hours. Text becomes a
//! date only in [`parse_date`] and [`Month::parse`].
//!
//! Pure: nothing here reads a clock, the host's zone or a file. What the time is now is the clock's affair;
//! which dates a caller may ask for (the future, a long range) is decided where the dates are used.
//!
//! The rules of the zones are compiled in and end with the year 2099; after that a zone keeps its last offset.

use std::fmt;
use std::str::FromStr;

use chrono::{
    DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike, Utc, Weekday,
};
use chrono_tz::{GapInfo, Tz};
use serde::{Deserialize, Serialize};

/// The first date that is taken as input.
pub const FIRST_DATE: NaiveDate = match NaiveDate::from_ymd_opt(1900, 1, 1) {
    Some(date) => date,
    None => panic!("not a date"), // while compiling, never while running
};

/// The last date that is taken as input.
pub const LAST_DATE: NaiveDate = match NaiveDate::from_ymd_opt(2199, 12, 31) {
    Some(date) => date,
    None => panic!("not a date"),
};

/// The business time zone, and the time of day at which its days begin.
///
/// Days tile time: each instant belongs to one date, which lasts from [`start_of`](Zone::start_of) it to
/// [`end_of`](Zone::end_of) it, where the next begins. A day may last 23 hours, or 25, or 47. A date that the
/// zone skipped whole (Pacific/Apia went from 29 to 31 December 2011) is no day, and those two are consecutive.
///
/// No date and no instant makes it panic. At the very ends of chrono's range, in the years around ±262,000,
/// answers may be off by a day or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    tz: Tz,
    starts_at: NaiveTime,
}

impl Zone {
    /// Days of `tz` that begin at `starts_at` on its wall clock; fractions of a second are dropped.
    pub fn new(tz: Tz, starts_at: NaiveTime) -> Self {
        let starts_at = starts_at.with_nanosecond(0).unwrap_or(starts_at);
        Zone { tz, starts_at }
    }

    /// The zone's IANA name, like `Europe/Berlin`.
    pub fn name(&self) -> &'static str {
        self.tz.name()
    }

    /// The local time at which a day begins, in whole seconds.
    pub fn starts_at(&self) -> NaiveTime {
        self.starts_at
    }

    /// The first instant of `date`: when the wall clock first shows that date at the time that days start at.
    ///
    /// If the clock shows it twice, the day begins at the earlier; if it jumps over it, at the jump. A skipped
    /// date begins, and ends, where the next date begins, so that the date before lasts until then.
    pub fn start_of(&self, date: NaiveDate) -> DateTime<Utc> {
        let local = date.and_time(self.starts_at);
        match self.tz.from_local_datetime(&local).earliest() {
            Some(start) => start.to_utc(),
            None if self.exists(date) => self.jump_over(local).unwrap_or(local.and_utc()),
            None => self.start_of(self.day_after(date)),
        }
    }

    /// The first instant after `date`, which is the start of the next date.
    pub fn end_of(&self, date: NaiveDate) -> DateTime<Utc> {
        self.start_of(self.day_after(date))
    }

    /// The date that `instant` belongs to: the last one that has begun by then.
    ///
    /// So a later instant never has an earlier date. Where clocks are set back over the turn of the day (as in
    /// America/St_Johns, at 00:01, from 1987 to 2011) the new day has begun and stays, whatever the wall clock
    /// shows in the hour after: nobody checks in for a yesterday that was closed already.
    pub fn date_of(&self, instant: DateTime<Utc>) -> NaiveDate {
        let local = self.wall_clock(instant);
        let mut date = if local.time() < self.starts_at {
            self.day_before(local.date())
        } else {
            local.date()
        };
        // Nearly always the next date is still to come, and to see that takes one look-up. No skipped date is
        // ever the answer: it starts together with the date after it.
        while let Some(next) = date.succ_opt()
            && self.start_of(next) <= instant
        {
            date = next;
        }
        date
    }

    /// Whether the zone's wall clock ever shows `date`.
    pub fn exists(&self, date: NaiveDate) -> bool {
        match self.jump_over(date.and_time(NaiveTime::MIN)) {
            Some(jump) => self.wall_clock(jump).date() <= date,
            None => true,
        }
    }

    /// The date before `date` in the zone's calendar: 29 December for Apia's 31 December 2011.
    pub fn day_before(&self, date: NaiveDate) -> NaiveDate {
        match date.pred_opt() {
            Some(before) if self.exists(before) => before,
            Some(skipped) => self.day_before(skipped),
            None => date,
        }
    }

    /// The date after `date` in the zone's calendar: 31 December for Apia's 29 December 2011.
    pub fn day_after(&self, date: NaiveDate) -> NaiveDate {
        match date.succ_opt() {
            Some(after) if self.exists(after) => after,
            Some(skipped) => self.day_after(skipped),
            None => date,
        }
    }

    /// What the zone's wall clock shows at `instant`.
    fn wall_clock(&self, instant: DateTime<Utc>) -> NaiveDateTime {
        let utc = instant.naive_utc();
        let offset = self.tz.offset_from_utc_datetime(&utc).fix();
        utc.checked_add_offset(offset).unwrap_or(utc)
    }

    /// The instant at which the wall clock jumps over `local`, if it does.
    fn jump_over(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        // Read from the near side of the gap: chrono-tz leaves out the far side if the clock shows it twice.
        let (gap_begins, offset) = GapInfo::new(&local, &self.tz)?.begin?;
        Some(gap_begins.checked_sub_offset(offset.fix())?.and_utc())
    }
}

/// Why a text is not a date or a month that can be used: the caller's fault, worded for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DateError {
    /// Not of the form `YYYY-MM-DD`; bears the beginning of the text.
    #[error("{0:?} is not a date: write it as YYYY-MM-DD, like 2026-11-30")]
    NotADate(String),
    /// Not of the form `YYYY-MM`; bears the beginning of the text.
    #[error("{0:?} is not a month: write it as YYYY-MM, like 2026-11")]
    NotAMonth(String),
    /// Of the right form, but its month is not one of the twelve.
    #[error("{0} does not exist: months go from 01 to 12")]
    NoSuchMonth(String),
    /// Of the right form, but its month has no such day.
    #[error("{text} is not a date: {} has {} days, 01 to {1}", .month.name(), .month.length())]
    NoSuchDay {
        /// The text as it came.
        text: String,
        /// The month that lacks the day.
        month: Month,
    },
    /// A real date or month, outside of [`FIRST_DATE`] to [`LAST_DATE`].
    #[error("{0} is out of range: it must lie from {FIRST_DATE} to {LAST_DATE}")]
    OutOfRange(String),
}

/// Reads a date, strictly `YYYY-MM-DD`: ten characters, a real date, [`FIRST_DATE`] to [`LAST_DATE`].
///
/// Whether a zone skipped it is another question: [`Zone::exists`].
///
/// # Errors
/// A [`DateError`] that says what is wrong and what would be right.
pub fn parse_date(text: &str) -> Result<NaiveDate, DateError> {
    let fields = text
        .rsplit_once('-')
        .and_then(|(month, day)| Some((year_and_month(month)?, number(day, 2)?)));
    let ((year, month), day) = fields.ok_or_else(|| DateError::NotADate(beginning(text)))?;
    let month = Month::real(year, month, text)?;
    let date = month.first.with_day(day).ok_or_else(|| DateError::NoSuchDay {
        text: text.to_owned(),
        month,
    })?;
    within_range(date, text)
}

/// Days from 1970-01-01 to `date`, negative before.
pub fn day_number(date: NaiveDate) -> i64 {
    date.to_epoch_days().into()
}

/// The date that is `number` days after 1970-01-01, unless that is beyond some 262,000 years.
pub fn from_day_number(number: i64) -> Option<NaiveDate> {
    NaiveDate::from_epoch_days(number.try_into().ok()?)
}

/// A calendar month, like `2026-11`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    first: NaiveDate,
}

impl Month {
    /// The month that `date` lies in.
    pub fn of(date: NaiveDate) -> Self {
        Month {
            first: date - Days::new(date.day0().into()),
        }
    }

    /// Reads a month, strictly `YYYY-MM`: seven characters, within [`FIRST_DATE`] to [`LAST_DATE`].
    ///
    /// # Errors
    /// A [`DateError`] that says what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Self, DateError> {
        let (year, month) = year_and_month(text).ok_or_else(|| DateError::NotAMonth(beginning(text)))?;
        let month = Month::real(year, month, text)?;
        within_range(month.first, text)?;
        Ok(month)
    }

    /// Its first date.
    pub fn first(self) -> NaiveDate {
        self.first
    }

    /// Its last date.
    pub fn last(self) -> NaiveDate {
        self.first + Days::new(u64::from(self.length()) - 1)
    }

    /// Its dates in order, with those that a zone may have skipped.
    pub fn days(self) -> impl DoubleEndedIterator<Item = NaiveDate> + ExactSizeIterator {
        (0..self.length()).map(move |after| self.first + Days::new(after.into()))
    }

    /// How many dates it has.
    fn length(self) -> u8 {
        self.first.num_days_in_month()
    }

    /// Its name for messages, like `February 2026`.
    fn name(self) -> impl fmt::Display {
        self.first.format("%B %Y")
    }

    /// The month of these numbers, which were read from `text`.
    fn real(year: i32, month: u32, text: &str) -> Result<Self, DateError> {
        match NaiveDate::from_ymd_opt(year, month, 1) {
            Some(first) => Ok(Month { first }),
            None => Err(DateError::NoSuchMonth(text.to_owned())),
        }
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.first.year(), self.first.month())
    }
}

/// How long the standings of a board run before they begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Period {
    /// One date.
    Day,
    /// An ISO week, Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
    /// From the beginning, without an end.
    AllTime,
}

impl Period {
    /// Its name in the API and the configuration: `DAY`, `WEEK`, `MONTH` or `ALL_TIME`.
    pub fn as_str(self) -> &'static str {
        match self {
            Period::Day => "DAY",
            Period::Week => "WEEK",
            Period::Month => "MONTH",
            Period::AllTime => "ALL_TIME",
        }
    }

    /// The one period of this kind that `date` lies in.
    pub fn span_of(self, date: NaiveDate) -> PeriodSpan {
        let week = date.week(Weekday::Mon);
        let dates = match self {
            Period::Day => Some((date, date)),
            Period::Week => Some((
                week.checked_first_day().unwrap_or(NaiveDate::MIN),
                week.checked_last_day().unwrap_or(NaiveDate::MAX),
            )),
            Period::Month => Some((Month::of(date).first(), Month::of(date).last())),
            Period::AllTime => None,
        };
        PeriodSpan { period: self, dates }
    }
}

/// One period of the calendar: a date, a week, a month, or all time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeriodSpan {
    period: Period,
    dates: Option<(NaiveDate, NaiveDate)>,
}

impl PeriodSpan {
    /// Of which kind it is.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Its first date; none for all time.
    pub fn first(&self) -> Option<NaiveDate> {
        self.dates.map(|(first, _)| first)
    }

    /// Its last date; none for all time.
    pub fn last(&self) -> Option<NaiveDate> {
        self.dates.map(|(_, last)| last)
    }

    /// Its key in Redis and in the ledger: `2026-11-30`, `2026-W49`, `2026-11` or `all`.
    ///
    /// A week bears the year of its Thursday, as ISO has it: 2025-12-29 lies in `2026-W01`.
    pub fn key(&self) -> String {
        match (self.period, self.dates) {
            (Period::Day, Some((date, _))) => date.to_string(),
            (Period::Week, Some((monday, _))) => {
                let week = monday.iso_week();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            (Period::Month, Some((first, _))) => Month { first }.to_string(),
            (Period::AllTime, _) | (_, None) => "all".to_owned(),
        }
    }

    /// Its first instant; none for all time.
    pub fn starts_at(&self, zone: &Zone) -> Option<DateTime<Utc>> {
        self.dates.map(|(first, _)| zone.start_of(first))
    }

    /// The first instant after it, which is the start of the next; none for all time.
    pub fn ends_at(&self, zone: &Zone) -> Option<DateTime<Utc>> {
        self.dates.map(|(_, last)| zone.end_of(last))
    }
}

/// The numbers in a `YYYY-MM`, whatever they are.
fn year_and_month(text: &str) -> Option<(i32, u32)> {
    let (year, month) = text.split_once('-')?;
    Some((number(year, 4)?, number(month, 2)?))
}

/// The number that exactly `width` digits spell; `parse` alone would take a sign.
fn number<N: FromStr>(digits: &str, width: usize) -> Option<N> {
    let strict = digits.len() == width && digits.bytes().all(|byte| byte.is_ascii_digit());
    if strict { digits.parse().ok() } else { None }
}

fn within_range(date: NaiveDate, text: &str) -> Result<NaiveDate, DateError> {
    if (FIRST_DATE..=LAST_DATE).contains(&date) {
        Ok(date)
    } else {
        Err(DateError::OutOfRange(text.to_owned()))
    }
}

/// As much of a caller's text as a message should repeat.
fn beginning(text: &str) -> String {
    const LENGTH: usize = 40;
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
