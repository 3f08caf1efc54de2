//! What history and make-ups make of a record: days come in between, and runs become one. Pure.
//!
//! Owns how long a run is of which the bits show only a part.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::ended::{Ended, Horizon};
use super::record::{Done, Record};
use super::streak::{Run, runs};
use super::{Reward, Rewards};
use crate::day::Zone;

impl Record {
    /// The record after history was written: `kept` are all check-ins of the kept years, the new ones included;
    /// `added` is how many are new.
    pub fn with_history(
        self,
        zone: &Zone,
        horizon: &Horizon,
        kept: &BTreeSet<NaiveDate>,
        added: u32,
    ) -> Record {
        let runs = runs(zone, kept.iter().copied());
        let (Some(newest), Some(&first)) = (runs.last(), kept.first()) else {
            return self;
        };
        let done = self.done.unwrap_or(Done {
            first,
            last: newest.last,
            run: newest.length,
            longest: 0,
            total: 0,
            paid: Reward::default(),
            ended: Vec::new(),
        });
        Record {
            done: Some(done.with(zone, horizon, kept, &runs, added)),
            ..self
        }
    }

    /// The record after `date` was made up, and what that earned beside the card that it cost; `None` before the first
    /// check-in. `kept` are all check-ins of the kept years before it.
    pub fn with_make_up(
        self,
        zone: &Zone,
        horizon: &Horizon,
        rewards: &Rewards,
        kept: &BTreeSet<NaiveDate>,
        date: NaiveDate,
    ) -> Option<(Record, Reward)> {
        let old = self.done?;
        let before = old.longest_beside(zone, kept, date);
        let mut kept = kept.clone();
        kept.insert(date);
        let runs = runs(zone, kept.iter().copied());
        let joined = runs.iter().find(|run| run.contains(date))?;
        let reward = rewards.for_reaching(before, joined.length + old.unseen_of(zone, joined, &kept));
        let left = Reward {
            cards: self.wallet.cards.saturating_sub(1),
            ..self.wallet
        };
        let record = Record {
            done: Some(old.with(zone, horizon, &kept, &runs, 1)),
            wallet: left.plus(reward),
        };
        Some((record, reward))
    }
}

impl Done {
    /// The runs whose length is known without their bits: the newest, and those that are remembered.
    pub(super) fn known(&self) -> impl Iterator<Item = Ended> + use<'_> {
        self.ended.iter().copied().chain([self.newest()])
    }

    /// The days of `run`, one of the kept bits, that they no longer show: a run may begin before the kept years, or follow
    /// right after one that lies before them whole.
    pub fn unseen_of(&self, zone: &Zone, run: &Run, kept: &BTreeSet<NaiveDate>) -> u32 {
        let unseen = |known: Ended| {
            if zone.day_before(run.first) == known.last {
                known.run
            } else if run.contains(known.last) {
                let seen = kept.range(run.first..=known.last).count() as u32;
                known.run.saturating_sub(seen)
            } else {
                0
            }
        };
        self.known().map(unseen).max().unwrap_or(0)
    }

    /// The longer of the runs that `date` lies between, 0 where there is none.
    fn longest_beside(&self, zone: &Zone, kept: &BTreeSet<NaiveDate>, date: NaiveDate) -> u32 {
        let (before, after) = (zone.day_before(date), zone.day_after(date));
        let runs = runs(zone, kept.iter().copied());
        let beside = runs.iter().filter(|run| run.last == before || run.first == after);
        let seen = beside.map(|run| run.length + self.unseen_of(zone, run, kept));
        let faded = self
            .known()
            .filter(|known| known.last == before)
            .map(|known| known.run);
        seen.chain(faded).max().unwrap_or(0)
    }

    /// After `added` days have come to the kept ones, which are `kept` and run in `runs` now.
    fn with(
        &self,
        zone: &Zone,
        horizon: &Horizon,
        kept: &BTreeSet<NaiveDate>,
        runs: &[Run],
        added: u32,
    ) -> Done {
        let whole = |run: &Run| Ended {
            last: run.last,
            run: run.length + self.unseen_of(zone, run, kept),
        };
        // Where the bits show nothing of a known run any more, it stands as it was.
        let joined = |known: Ended| {
            let run = runs
                .iter()
                .find(|run| run.contains(known.last) || zone.day_before(run.first) == known.last);
            run.map_or(known, whole)
        };
        let newest = runs.last().map(whole).filter(|newest| newest.last >= self.last);
        let newest = newest.unwrap_or(self.newest());
        let longest = runs.iter().map(|run| whole(run).run).max().unwrap_or(0);
        // Also runs that were imported or made up, and never were the newest.
        let all = runs.iter().map(whole).chain(self.known().map(joined));
        let ended: BTreeMap<NaiveDate, Ended> = all
            .filter(|run| run.last < newest.last && horizon.keeps(run))
            .map(|run| (run.last, run))
            .collect();
        Done {
            first: kept.first().map_or(self.first, |&first| first.min(self.first)),
            last: newest.last,
            run: newest.run,
            longest: longest.max(self.longest),
            total: self.total + added,
            paid: if newest.last > self.last {
                Reward::default()
            } else {
                self.paid
            },
            ended: ended.into_values().collect(),
        }
    }
}
