//! Which days may be asked for. Pure.
//!
//! Owns the bounds and the words in which a range beyond them is refused.

use chrono::NaiveDate;

use crate::day::Zone;
use crate::error::Error;

/// The most days of one range.
pub const MAX_DAYS: i64 = 366;

/// The most days after the cohort that one question names, and how far they may lie behind it.
const MAX_RETURN_DAYS: usize = 100;

/// The most cohorts times days of one table.
const MAX_CELLS: usize = 2_000;

/// Why a range cannot be answered, in words for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRange(String);

impl From<BadRange> for Error {
    fn from(bad: BadRange) -> Error {
        Error::BadUserInput(bad.0)
    }
}

/// The days whose bitmaps are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The last of them.
    pub today: NaiveDate,
    /// The first of them.
    pub since: NaiveDate,
}

impl Kept {
    /// `date`, which the caller calls `what`, if it is kept.
    pub fn day(&self, what: &str, date: NaiveDate) -> Result<NaiveDate, BadRange> {
        let Kept { today, since } = self;
        if date > *today {
            return Err(BadRange(format!(
                "{what} ({date}) lies in the future: today is {today}"
            )));
        }
        if date < *since {
            return Err(BadRange(format!(
                "{what} ({date}) lies before the kept days, which begin {since}"
            )));
        }
        Ok(date)
    }

    /// The days from `from` to `to`, both included, without those that `zone` skipped.
    pub fn range(&self, zone: &Zone, from: NaiveDate, to: NaiveDate) -> Result<Vec<NaiveDate>, BadRange> {
        if from > to {
            return Err(BadRange(format!("from ({from}) lies after to ({to})")));
        }
        self.day("to", to)?;
        self.day("from", from)?;
        let days = (to - from).num_days() + 1;
        if days > MAX_DAYS {
            return Err(BadRange(format!(
                "a range has at most {MAX_DAYS} days, and {from} to {to} has {days}"
            )));
        }
        let dates = from.iter_days().take_while(|date| *date <= to);
        Ok(dates.filter(|date| zone.exists(*date)).collect())
    }
}

/// The days after a cohort's at which to look: each from 0 to 366, at most 100 of them.
pub fn return_days(days: &[i32]) -> Result<Vec<u64>, BadRange> {
    if days.len() > MAX_RETURN_DAYS {
        return Err(BadRange(format!(
            "days has at most {MAX_RETURN_DAYS} entries, and {} were given",
            days.len()
        )));
    }
    let day = |day: &i32| match u64::try_from(*day) {
        Ok(within) if i64::from(*day) <= MAX_DAYS => Ok(within),
        _ => Err(BadRange(format!(
            "each of days is 0 to {MAX_DAYS} days after the cohort, and {day} is not"
        ))),
    };
    days.iter().map(day).collect()
}

/// Refuses a table of too many cells.
pub fn table(cohorts: usize, days: usize) -> Result<(), BadRange> {
    match cohorts * days <= MAX_CELLS {
        true => Ok(()),
        false => Err(BadRange(format!(
            "a table has at most {MAX_CELLS} cells, and {cohorts} cohorts at {days} days are more: ask for a shorter range"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::NaiveTime;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn kept(since: &str, today: &str) -> Kept {
        Kept {
            today: date(today),
            since: date(since),
        }
    }

    #[test]
    fn what_lies_beyond_the_bounds_is_refused_with_its_reason() {
        let zone = Zone::new(chrono_tz::UTC, NaiveTime::MIN);
        let kept = kept("2025-03-31", "2027-03-01");
        let said = |from, to| kept.range(&zone, date(from), date(to)).unwrap_err().to_string();
        assert!(said("2027-02-02", "2027-02-01").contains("lies after to"));
        assert!(said("2027-02-02", "2027-03-02").contains("today is 2027-03-01"));
        assert!(said("2025-03-30", "2025-04-02").contains("which begin 2025-03-31"));
        assert!(said("2026-02-01", "2027-02-02").contains("has 367"));
        let whole = kept.range(&zone, date("2026-02-01"), date("2027-02-01")).unwrap();
        assert_eq!(whole.len(), 366);
        assert_eq!(
            kept.range(&zone, date("2025-03-31"), date("2025-03-31")).unwrap(),
            [date("2025-03-31")]
        );
    }

    #[test]
    fn a_day_that_the_zone_skipped_is_in_no_range() {
        let apia = Zone::new(chrono_tz::Pacific::Apia, NaiveTime::MIN);
        let kept = kept("2011-10-07", "2012-01-15");
        assert_eq!(
            kept.range(&apia, date("2011-12-29"), date("2011-12-31")).unwrap(),
            [date("2011-12-29"), date("2011-12-31")]
        );
    }

    #[test]
    fn days_of_return_and_tables_are_bounded() {
        assert_eq!(return_days(&[0, 366, 1, 1]), Ok(vec![0, 366, 1, 1]));
        for bad in [&[-1][..], &[367], &[1; 101]] {
            assert!(return_days(bad).is_err(), "{bad:?}");
        }
        assert!(table(20, 100).is_ok() && table(21, 100).is_err());
    }
}
