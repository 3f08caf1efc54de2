//! How long check-ins are kept, and since when they truly are. Pure; what is noted is read and written by
//! [`super::keeping`].
//!
//! Owns which dates are kept at a time, and the backstop TTLs. Raising a setting does not bring back what has left by the
//! old one: what is claimed to be kept begins after that, whatever the setting says.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc};

use crate::day::Zone;

/// Longer than any clocks differ: a Redis TTL is only the backstop behind deletion by the clock.
const BACKSTOP: TimeDelta = TimeDelta::days(1);

/// How long what is kept.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    years: u32,
    days: u32,
    /// Before these dates years and days have left by an earlier setting.
    years_gone: NaiveDate,
    days_gone: NaiveDate,
}

impl Keep {
    /// By the settings, with what is noted of years and of days.
    pub fn of(years: &Noted, days: &Noted) -> Keep {
        Keep {
            years: years.keep,
            days: days.keep,
            years_gone: years.gone,
            days_gone: days.gone,
        }
    }

    /// The first date of the kept years at `today`.
    pub fn since(&self, today: NaiveDate) -> NaiveDate {
        years_since(today, self.years).max(self.years_gone.min(today))
    }

    /// The first date whose bitmaps are kept at `today`.
    pub fn days_since(&self, today: NaiveDate) -> NaiveDate {
        days_since(today, self.days).max(self.days_gone.min(today))
    }

    /// Whether a day's bitmaps are kept.
    pub fn keeps_day(&self, date: NaiveDate, today: NaiveDate) -> bool {
        date >= self.days_since(today)
    }

    /// The backstop TTL of a year's rows, in seconds.
    pub fn year_ttl(&self, zone: &Zone, year: i32, now: DateTime<Utc>) -> i64 {
        let after = NaiveDate::from_ymd_opt(year + self.years as i32 + 1, 1, 1).unwrap_or(NaiveDate::MAX);
        (zone.start_of(after) - now + BACKSTOP).num_seconds().max(1)
    }

    /// The backstop TTL of a day's bitmaps, in seconds; not positive if they are no longer kept.
    pub fn day_ttl(&self, zone: &Zone, date: NaiveDate, now: DateTime<Utc>) -> i64 {
        (zone.end_of(date) - now + TimeDelta::days(self.days.into()) + BACKSTOP).num_seconds()
    }
}

/// The first date of `years` full years before that of `today`.
pub fn years_since(today: NaiveDate, years: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(today.year() - years as i32, 1, 1).unwrap_or(NaiveDate::MIN)
}

/// The first of `days` full days before `today`.
pub fn days_since(today: NaiveDate, days: u32) -> NaiveDate {
    let since = today.checked_sub_days(chrono::Days::new(days.into()));
    since.unwrap_or(NaiveDate::MIN)
}

/// What is noted beside the data of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// The setting: how many are kept.
    pub keep: u32,
    /// Nothing was ever written about dates before this one.
    begun: NaiveDate,
    /// What was written about dates before this one may have left.
    pub gone: NaiveDate,
}

impl Noted {
    /// Of data that nobody has written yet, or that was written (`begun`) before anything was noted. `since` is the first
    /// date that is kept now.
    pub fn first(keep: u32, since: NaiveDate, begun: bool) -> Noted {
        Noted {
            keep,
            begun: if begun { NaiveDate::MIN } else { since },
            gone: since,
        }
    }

    /// As noted before, from now on with the setting `keep`; `since` says which date is the first that a setting keeps now.
    pub fn then(self, keep: u32, since: impl Fn(u32) -> NaiveDate) -> Noted {
        // The old setting was in force up to now.
        let gone = self.gone.max(since(self.keep));
        if gone <= self.begun && since(keep) <= self.begun {
            return Noted::first(keep, since(keep), false); // nothing can have left yet
        }
        Noted {
            keep,
            gone: gone.max(since(keep)),
            ..self
        }
    }

    /// Reads what was noted.
    pub fn read(text: &str) -> Option<Noted> {
        let mut parts = text.split(' ');
        let noted = Noted {
            keep: parts.next()?.parse().ok()?,
            begun: match parts.next()? {
                "-" => NaiveDate::MIN,
                date => date.parse().ok()?,
            },
            gone: parts.next()?.parse().ok()?,
        };
        Some(noted)
    }
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.begun {
            NaiveDate::MIN => write!(f, "{} - {}", self.keep, self.gone),
            begun => write!(f, "{} {begun} {}", self.keep, self.gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn what_has_left_by_a_setting_is_not_claimed_by_a_longer_one() {
        let on = |noted: Noted, today, keep| noted.then(keep, |keep| years_since(date(today), keep));
        let since = |noted: &Noted, today| Keep::of(noted, noted).since(date(today)).to_string();
        let fresh = Noted::first(0, date("2026-01-01"), false);
        // Within the first year nothing has left: history of earlier years may still be imported.
        let raised = on(fresh, "2026-12-31", 2);
        assert_eq!(since(&raised, "2026-12-31"), "2024-01-01");
        // A year later it has.
        let late = on(fresh, "2027-03-01", 2);
        assert_eq!(since(&late, "2027-03-01"), "2027-01-01");
        assert_eq!(since(&late, "2029-03-01"), "2027-01-01");
        assert_eq!(since(&late, "2030-03-01"), "2028-01-01");
        // Fewer and then more again: what was between has left.
        let fewer = on(raised, "2027-03-01", 1);
        assert_eq!(since(&fewer, "2027-03-01"), "2026-01-01");
        let more = on(on(fewer, "2027-06-01", 0), "2027-07-01", 3);
        assert_eq!(since(&more, "2027-07-01"), "2027-01-01");
        // The same again changes nothing.
        assert_eq!(on(more, "2027-07-02", 3), more);
        let unnoted = Noted::first(1, date("2026-01-01"), true);
        assert_eq!(since(&on(unnoted, "2027-07-01", 2), "2027-07-01"), "2026-01-01");
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_today_kept() {
        let noted = Noted::first(1, date("2029-01-01"), true);
        let keep = Keep::of(&noted, &noted);
        assert_eq!(keep.since(date("2027-05-05")), date("2027-05-05"));
        assert!(keep.keeps_day(date("2027-05-05"), date("2027-05-05")));
    }

    #[test]
    fn what_is_noted_is_read_back() {
        for begun in [false, true] {
            let noted = Noted::first(2, date("2025-01-01"), begun);
            let noted = noted.then(2, |keep| years_since(date("2028-02-02"), keep));
            assert_eq!(Noted::read(&noted.to_string()), Some(noted));
        }
        assert_eq!(Noted::read("2 then"), None);
    }
}
