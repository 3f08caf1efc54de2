//! What is kept of a user beside the check-in bits: a few numbers, in one field of a hash. Pure.
//!
//! Owns how they are stored (`check_in.lua` and `wallet.lua` read and write the same numbers) and how history and make-ups
//! change them.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{Days, NaiveDate};

use super::streak::{Run, Streak, runs};
use super::{Reward, Rewards};
use crate::day::{Zone, day_number, from_day_number};
use crate::keyspace::Unavailable;
use crate::keyspace::mutation::Fields;

/// A user's check-ins in numbers, and the wallet. It outlives the years that expire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// `None`: no check-in yet. A wallet may be filled before the first.
    pub done: Option<Done>,
    /// What the user holds.
    pub wallet: Reward,
}

/// A user's check-ins in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The first ever.
    pub first: NaiveDate,
    /// The newest.
    pub last: NaiveDate,
    /// Days in a row that end on `last`.
    pub run: u32,
    /// The longest run ever.
    pub longest: u32,
    /// How many ever.
    pub total: u32,
    /// What the check-in on `last` paid.
    pub paid: Reward,
    /// The last run before the newest that a make-up may still join, if it began where no bits are kept any more.
    pub ended: Option<Ended>,
}

/// A run that is over, as far as only the record still knows it whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its last day.
    pub last: NaiveDate,
    /// How many days.
    pub run: u32,
}

/// What can still be seen and joined, as of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    /// A run that began by then may lose its first days before the last make-up that could join it.
    pub fades: NaiveDate,
    /// The last day of the oldest run that a make-up could join.
    pub joins: NaiveDate,
}

impl Horizon {
    /// Whether what is known of `run` has to outlive its bits.
    fn keeps(&self, run: &Ended) -> bool {
        // The day before the run, or its first day if the zone skipped one of its days.
        let began = run
            .last
            .checked_sub_days(Days::new(run.run.into()))
            .unwrap_or(NaiveDate::MIN);
        began < self.fades && run.last >= self.joins
    }
}

impl Record {
    /// Reads the nine fields that a record is stored as, or eleven if a run is remembered that is over.
    pub fn read(fields: &mut Fields<'_>) -> Result<Record, Unavailable> {
        let (first, last): (i64, i64) = (fields.number()?, fields.number()?);
        let done = Done {
            first: day(if first > 0 { first } else { last + first })?,
            last: day(last)?,
            run: fields.number()?,
            longest: fields.number()?,
            total: fields.number()?,
            paid: reward(fields)?,
            ended: None,
        };
        let wallet = reward(fields)?;
        let ended = match fields.further()? {
            Some(last) => Some(Ended {
                last: day(last)?,
                run: fields.number()?,
            }),
            None => None,
        };
        Ok(Record {
            done: (done.total > 0).then_some(Done { ended, ..done }),
            wallet,
        })
    }

    /// The streak as of `today`.
    pub fn streak(&self, zone: &Zone, today: NaiveDate) -> Streak {
        self.done.map(|done| done.streak(zone, today)).unwrap_or_default()
    }

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
            ended: None,
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
    fn streak(&self, zone: &Zone, today: NaiveDate) -> Streak {
        let checked_in_today = self.last >= today;
        let yesterday = zone.day_before(today);
        let current = if checked_in_today || self.last == yesterday {
            self.run
        } else {
            0
        };
        let ends_at = match current {
            0 => None,
            _ => Some(zone.end_of(zone.day_after(self.last))),
        };
        Streak {
            current,
            longest: self.longest,
            total: self.total,
            checked_in_today,
            at_risk: current > 0 && !checked_in_today,
            ends_at,
            last_date: Some(self.last),
        }
    }

    /// The runs whose length is known without their bits: the newest, and the one that is remembered.
    fn known(&self) -> impl Iterator<Item = Ended> + use<> {
        let newest = Ended {
            last: self.last,
            run: self.run,
        };
        [newest].into_iter().chain(self.ended)
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
        self,
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
        let newest = newest.unwrap_or(Ended {
            last: self.last,
            run: self.run,
        });
        let longest = runs.iter().map(|run| whole(run).run).max().unwrap_or(0);
        // Also a run that was imported or made up, and never was the newest.
        let ended = runs
            .iter()
            .map(whole)
            .chain(self.known().map(joined))
            .filter(|run| run.last < newest.last && horizon.keeps(run));
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
            ended: ended.max_by_key(|run| run.last),
        }
    }
}

/// As stored. Dates are days since 1970-01-01, but the first is written as days from the newest, which is shorter (0 or
/// negative; a positive number is a date). A total of 0 means no check-in yet, and the numbers before it mean nothing then.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.done {
            None => write!(f, "0 0 0 0 0 0 0")?,
            Some(done) => {
                let last = day_number(done.last);
                let first = day_number(done.first) - last;
                let Done {
                    run,
                    longest,
                    total,
                    paid,
                    ..
                } = done;
                write!(
                    f,
                    "{first} {last} {run} {longest} {total} {} {}",
                    paid.points, paid.cards
                )?;
            }
        }
        write!(f, " {} {}", self.wallet.points, self.wallet.cards)?;
        match self.done.and_then(|done| done.ended) {
            Some(ended) => write!(f, " {} {}", day_number(ended.last), ended.run),
            None => Ok(()),
        }
    }
}

fn day(number: i64) -> Result<NaiveDate, Unavailable> {
    from_day_number(number).ok_or_else(|| Unavailable::Fault(format!("{number} is no day")))
}

fn reward(fields: &mut Fields<'_>) -> Result<Reward, Unavailable> {
    Ok(Reward {
        points: fields.number()?,
        cards: fields.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_with_and_without_check_ins() {
        let wallet = Reward { points: 70, cards: 2 };
        let day = |text: &str| text.parse().unwrap();
        let done = Done {
            first: day("2026-01-01"),
            last: day("2026-12-31"),
            run: 7,
            longest: 40,
            total: 300,
            paid: Reward {
                points: 150,
                cards: 0,
            },
            ended: None,
        };
        let ended = Some(Ended {
            last: day("2026-12-20"),
            run: 900,
        });
        for (record, numbers) in [(Some(done), 9), (Some(Done { ended, ..done }), 11), (None, 9)]
            .map(|(done, numbers)| (Record { done, wallet }, numbers))
        {
            let stored = record.to_string();
            assert_eq!(stored.split(' ').count(), numbers, "{stored}");
            assert_eq!(Record::read(&mut Fields::of(&stored)).unwrap(), record);
        }
        let dated = "20454 20818 7 40 300 150 0 70 2";
        let record = Record {
            done: Some(done),
            wallet,
        };
        assert_eq!(Record::read(&mut Fields::of(dated)).unwrap(), record);
        assert_eq!(record.to_string(), "-364 20818 7 40 300 150 0 70 2");
    }
}
