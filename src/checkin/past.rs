//! A streak as it stood on a past day. Pure.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::Record;
use super::streak::{Run, Streak, runs};
use crate::day::Zone;

impl Record {
    /// The streak at the end of `day`, without the grace that an open day has; days that were made up since count. `kept`
    /// are all check-ins from `since` on. `None`: the day lies before the kept years and nothing of it is known.
    pub fn streak_on(
        &self,
        zone: &Zone,
        since: NaiveDate,
        kept: &BTreeSet<NaiveDate>,
        day: NaiveDate,
    ) -> Option<Streak> {
        let done = match &self.done {
            Some(done) if day >= done.first => done,
            _ => return Some(Streak::default()),
        };
        if day < done.last && day < since {
            return None;
        }
        let runs = runs(zone, kept.iter().copied());
        // How long a run was on `day`, its days before the kept years included as far as they are known.
        let length_on = |run: &Run| {
            let seen = kept.range(run.first..=run.last.min(day)).count() as u32;
            seen + done.unseen_of(zone, run, kept)
        };
        let begun = || runs.iter().filter(|run| run.first <= day);
        let current = match day >= done.last {
            true if day == done.last => done.run,
            true => 0,
            false => runs.iter().find(|run| run.contains(day)).map_or(0, length_on),
        };
        // The longest of all lies before the kept years if they show none like it.
        let longest_seen = runs
            .iter()
            .map(|run| run.length + done.unseen_of(zone, run, kept))
            .max();
        let longest = match longest_seen {
            Some(seen) if seen >= done.longest && day < done.last => {
                begun().map(length_on).max().unwrap_or(0)
            }
            _ => done.longest,
        };
        let after = kept.iter().rev().take_while(|&&date| date > day).count() as u32;
        let last_date = match day >= done.last {
            true => Some(done.last),
            false => kept.range(..=day).next_back().copied(),
        };
        let total = done.total.saturating_sub(after);
        Some(Streak {
            current,
            longest: longest.min(total), // a later run may be longer than all that was then
            total,
            checked_in_today: current > 0,
            at_risk: false,
            ends_at: (current > 0).then(|| zone.end_of(zone.day_after(day))),
            last_date,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkin::streak;
    use chrono::{Days, NaiveTime};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_past_day_stands_as_if_it_were_the_last(days in prop::collection::btree_set(0_u64..60, 1..50), on in 0_u64..60) {
            let zone = Zone::new(chrono_tz::UTC, NaiveTime::MIN);
            let first: NaiveDate = "2027-12-01".parse().unwrap();
            let date = |day: u64| first + Days::new(day);
            let all: BTreeSet<NaiveDate> = days.iter().map(|&day| date(day)).collect();
            let horizon = crate::checkin::ended::Horizon::of(&zone, first, 7, |day| day);
            let record = Record::default().with_history(&zone, &horizon, &all, all.len() as u32);
            let then: BTreeSet<NaiveDate> = all.range(..=date(on)).copied().collect();
            let streak = record.streak_on(&zone, first, &all, date(on)).unwrap();
            let runs = streak::runs(&zone, then.iter().copied());
            let current = runs.last().filter(|run| run.last == date(on)).map_or(0, |run| run.length);
            prop_assert_eq!(streak.current, current);
            prop_assert_eq!(streak.longest, runs.iter().map(|run| run.length).max().unwrap_or(0));
            prop_assert_eq!(streak.total, then.len() as u32);
            prop_assert_eq!(streak.last_date, then.last().copied());
            prop_assert_eq!((streak.checked_in_today, streak.at_risk), (current > 0, false));
        }
    }
}
