//! What is still known of the past. Pure.
//!
//! Owns which days are unknown, and the streak as it stood on a past day.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use chrono::NaiveDate;

use super::Record;
use super::record::Done;
use super::streak::{Run, Streak, runs};
use crate::day::Zone;

impl Record {
    /// The days of which nobody knows any more whether there was a check-in, if check-ins are kept `since` then. Before the
    /// first check-in and after the newest there was none, however long ago that is.
    pub fn unknown(&self, since: NaiveDate) -> Option<RangeInclusive<NaiveDate>> {
        let done = self.done.as_ref()?;
        let last = done.last.min(since.pred_opt()?);
        (done.first <= last).then_some(done.first..=last)
    }

    /// The streak at the end of `day`, without the grace that an open day has; days that were made up since count. `kept`
    /// are all check-ins from `since` on. `None`: the day is unknown.
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
        if day >= done.last {
            let streak = Streak {
                current: if day == done.last { done.run } else { 0 },
                longest: done.longest,
                total: done.total,
                last_date: Some(done.last),
                ..Streak::default()
            };
            return Some(streak.at_the_end_of(zone, day));
        }
        if day < since {
            return None;
        }
        let (current, longest, at_least) = done.lengths_on(zone, since, kept, day);
        let after = kept.iter().rev().take_while(|&&date| date > day).count() as u32;
        let streak = Streak {
            current,
            longest,
            total: done.total.saturating_sub(after),
            last_date: kept.range(..=day).next_back().copied(),
            at_least,
            ..Streak::default()
        };
        Some(streak.at_the_end_of(zone, day))
    }
}

impl Streak {
    fn at_the_end_of(self, zone: &Zone, day: NaiveDate) -> Streak {
        Streak {
            checked_in_today: self.current > 0,
            ends_at: (self.current > 0).then(|| zone.end_of(zone.day_after(day))),
            ..self
        }
    }
}

impl Done {
    /// Current and longest at the end of `day`, a kept day before the newest check-in; and whether they are only at least so
    /// much, since it is not known what was before the kept years.
    fn lengths_on(
        &self,
        zone: &Zone,
        since: NaiveDate,
        kept: &BTreeSet<NaiveDate>,
        day: NaiveDate,
    ) -> (u32, u32, bool) {
        let runs = runs(zone, kept.iter().copied());
        // How long a run was on `day`, its days before the kept years included as far as they are known.
        let length_on = |run: &Run| {
            let seen = kept.range(run.first..=run.last.min(day)).count() as u32;
            seen + self.unseen_of(zone, run, kept)
        };
        let open = runs.iter().find(|run| run.contains(day));
        let begun = runs.iter().filter(|run| run.first <= day);
        let longest = begun.map(length_on).max().unwrap_or(0);
        let current = open.map_or(0, length_on);
        let whole = open.is_none_or(|run| self.knows_whole(zone, since, run));
        if whole && (self.first >= since || longest == self.longest) {
            return (current, longest, false);
        }
        // The longest of all lies before the kept years if they show none like it, and so before `day`.
        let shown = |run: &Run| run.length + self.unseen_of(zone, run, kept) >= self.longest;
        match whole && !runs.iter().any(shown) {
            true => (current, self.longest, false),
            false => (current, longest, true),
        }
    }

    /// Whether it is known how long `run` is, one of the bits that are kept `since` then.
    fn knows_whole(&self, zone: &Zone, since: NaiveDate, run: &Run) -> bool {
        let before = zone.day_before(run.first);
        let known = |last: NaiveDate| last == before || run.contains(last);
        self.first >= since || before >= since || self.known().any(|run| known(run.last))
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
            prop_assert!(!streak.at_least);
        }
    }

    #[test]
    fn unknown_is_what_lies_between_the_first_check_in_and_the_kept_years() {
        let zone = Zone::new(chrono_tz::UTC, NaiveTime::MIN);
        let date = |text: &str| text.parse::<NaiveDate>().unwrap();
        let all = BTreeSet::from([date("2025-03-01"), date("2026-05-01")]);
        let horizon = crate::checkin::ended::Horizon::of(&zone, date("2026-05-01"), 7, |day| day);
        let record = Record::default().with_history(&zone, &horizon, &all, 2);
        let since = |since: &str| record.unknown(date(since));
        assert_eq!(since("2025-01-01"), None);
        assert_eq!(since("2025-03-01"), None);
        assert_eq!(since("2026-01-01"), Some(date("2025-03-01")..=date("2025-12-31")));
        assert_eq!(since("2027-01-01"), Some(date("2025-03-01")..=date("2026-05-01")));
        assert_eq!(Record::default().unknown(date("2027-01-01")), None);
    }
}
