//! Runs that are over and yet have to be remembered. Pure; `check_in.lua` decides the same.
//!
//! Owns which those are. Bits show a run only as far back as years are kept: of a run that goes on beyond, somebody has to
//! know how long it was, as long as a make-up may join it. Most users have none, so most records bear none.

use std::fmt;

use chrono::{Datelike, Days, NaiveDate};

use crate::day::{Zone, day_number};

/// How much further than the window reaches a run is remembered: a day for another node whose clock is behind, and one for
/// a date that the zone skipped.
const SLACK: u64 = 2;

/// A run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ended {
    /// Its last day.
    pub last: NaiveDate,
    /// How many days.
    pub run: u32,
}

/// What can still be joined, and where bits end, as of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Horizon {
    /// The last day of the oldest run that a make-up could join.
    joins: NaiveDate,
    /// The last days before kept years begin, now or before the last make-up that could join a run of today.
    cuts: Vec<NaiveDate>,
}

impl Horizon {
    /// Seen from `today`, where days can be made up `window_days` back and check-ins are kept since what `since` says of a
    /// day.
    pub fn of(
        zone: &Zone,
        today: NaiveDate,
        window_days: u32,
        since: impl Fn(NaiveDate) -> NaiveDate,
    ) -> Horizon {
        let reach = Days::new(u64::from(window_days) + SLACK);
        let (oldest, newest) = (since(today - Days::new(1)), since(today + reach));
        let begins = |year| NaiveDate::from_ymd_opt(year, 1, 1);
        let later = (oldest.year() + 1..=newest.year()).filter_map(begins);
        Horizon {
            joins: today - reach - Days::new(1),
            cuts: [oldest]
                .into_iter()
                .chain(later)
                .map(|begin| zone.day_before(begin))
                .collect(),
        }
    }

    /// Whether `run` has to be remembered. Only a run that has days on both sides of a cut, or ends right before it, shows
    /// less than it is while it can be joined.
    pub fn keeps(&self, run: &Ended) -> bool {
        // The day before the run, or its first day if the zone skipped one of its days.
        let began = run.last.checked_sub_days(Days::new(run.run.into()));
        let began = began.unwrap_or(NaiveDate::MIN);
        run.last >= self.joins && self.cuts.iter().any(|cut| (began..=run.last).contains(cut))
    }

    /// As `check_in.lua` is told: by when a run ended at the earliest.
    pub fn joins(&self) -> i64 {
        day_number(self.joins)
    }

    /// As `check_in.lua` is told: the cuts, separated by spaces.
    pub fn cuts(&self) -> impl fmt::Display {
        let cuts = self.cuts.iter().map(|cut| day_number(*cut).to_string());
        cuts.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::NaiveTime;
    use proptest::prelude::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn horizon(today: NaiveDate, window_days: u32, keep_years: i32) -> Horizon {
        let zone = Zone::new(chrono_tz::UTC, NaiveTime::MIN);
        Horizon::of(&zone, today, window_days, |day| {
            NaiveDate::from_ymd_opt(day.year() - keep_years, 1, 1).unwrap()
        })
    }

    #[test]
    fn a_run_is_remembered_while_it_can_be_joined_and_goes_on_beyond_the_kept_years() {
        let run = |first: &str, last: &str| Ended {
            last: date(last),
            run: (date(last) - date(first)).num_days() as u32 + 1,
        };
        let in_january = horizon(date("2028-01-05"), 7, 0);
        assert!(in_january.keeps(&run("2027-12-31", "2028-01-03")));
        assert!(in_january.keeps(&run("2020-01-01", "2027-12-31")));
        assert!(!in_january.keeps(&run("2028-01-02", "2028-01-03")), "wholly kept");
        assert!(
            !in_january.keeps(&run("2020-01-01", "2027-12-30")),
            "no day after it is kept"
        );
        let in_march = horizon(date("2028-03-01"), 7, 0);
        assert!(in_march.keeps(&run("2027-12-31", "2028-02-25")));
        assert!(!in_march.keeps(&run("2027-12-31", "2028-02-15")), "out of reach");
        // Kept for another year: what began in the year before that is cut.
        let kept = horizon(date("2028-03-01"), 7, 1);
        assert!(!kept.keeps(&run("2027-12-31", "2028-02-25")));
        assert!(kept.keeps(&run("2026-12-31", "2028-02-25")));
        // By the time that it is joined for the last time, another year is gone.
        assert!(horizon(date("2028-12-28"), 7, 1).keeps(&run("2027-12-31", "2028-12-26")));
        assert!(!horizon(date("2028-12-20"), 7, 1).keeps(&run("2027-12-31", "2028-12-18")));
    }

    proptest! {
        /// Records stay small, whatever is configured.
        #[test]
        fn no_more_than_three_are_ever_remembered(
            gaps in prop::collection::vec((1_i64..400, 1_u32..800), 1..60),
            window in 0_u32..=366, keep in 0_i32..4, today in 0_u64..1_000,
        ) {
            let today = date("2027-06-01") + Days::new(today);
            let horizon = horizon(today, window, keep);
            let (mut last, mut remembered) = (today, 0);
            for (gap, run) in gaps {
                last -= chrono::TimeDelta::days(gap);
                let ended = Ended { last, run };
                remembered += u32::from(horizon.keeps(&ended));
                last -= chrono::TimeDelta::days(run.into());
            }
            prop_assert!(remembered <= 3, "{remembered}");
        }
    }
}
