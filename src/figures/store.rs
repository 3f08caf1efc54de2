//! What the day bitmaps and counters say.
//!
//! Owns which bitmaps answer which question. The days are checked before, by [`super::range`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, Utc};

use super::bitmaps::{Bitmaps, Segment};
use super::range::Kept;
use super::{Activity, DayMatch};
use crate::checkin::keep::Keep;
use crate::checkin::rows;
use crate::day::Zone;
use crate::ids::UserId;
use crate::keyspace::{Keyspace, Request, Unavailable, reply};

/// The figures.
#[derive(Clone)]
pub struct Figures {
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) bitmaps: Bitmaps,
    zone: Zone,
    keep: Keep,
}

/// What is counted of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    /// Which day.
    pub date: NaiveDate,
    /// Users who checked in for it.
    pub check_ins: u64,
    /// Users who were active on it.
    pub active: u64,
    /// Users who have ever been written about, now.
    pub known_users: u64,
}

/// How many of those who were active on one day were active again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returns {
    /// The day on which all of them were active.
    pub cohort: NaiveDate,
    /// How many they are.
    pub size: u64,
    /// For each asked number of days after it: how many were active then; `None` for a day that has not come yet.
    pub returned: Vec<(u64, Option<u64>)>,
}

impl Figures {
    /// The figures of this configuration in that keyspace.
    pub fn new(keyspace: Arc<Keyspace>, zone: Zone, keep: Keep) -> Figures {
        Figures {
            bitmaps: Bitmaps::new(keyspace.clone()),
            keyspace,
            zone,
            keep,
        }
    }

    /// The days that can be asked for at `now`.
    pub fn kept(&self, now: DateTime<Utc>) -> Kept {
        let today = self.zone.date_of(now);
        Kept {
            today,
            since: self.keep.days_since(today),
        }
    }

    /// The business zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// What is counted of each of `dates`, in one round trip.
    pub async fn days(&self, dates: &[NaiveDate]) -> Result<Vec<Day>, Unavailable> {
        let day = |&date: &NaiveDate| Day {
            date,
            check_ins: 0,
            active: 0,
            known_users: 0,
        };
        let mut days: Vec<Day> = dates.iter().map(day).collect();
        if dates.is_empty() {
            return Ok(days);
        }
        let keys = self.keyspace.keys();
        let mut request = Request::new();
        for p in self.keyspace.partitions() {
            let (mut counts, mut rows) = (redis::cmd("MGET"), redis::cmd("HGET"));
            for &date in dates {
                counts
                    .arg(keys.day_count(p, date))
                    .arg(keys.active_count(p, date));
            }
            rows.arg(keys.generation(p)).arg("rows");
            request.command(counts).command(rows);
        }
        let mut replies = self.keyspace.run(&request).await?.into_iter();
        while let (Some(counts), Some(rows)) = (replies.next(), replies.next()) {
            let counts: Vec<Option<u64>> = reply(counts)?;
            let rows: Option<u64> = reply(rows)?;
            for (day, counts) in days.iter_mut().zip(counts.chunks(2)) {
                day.check_ins += counts.first().copied().flatten().unwrap_or(0);
                day.active += counts.get(1).copied().flatten().unwrap_or(0);
                day.known_users += rows.unwrap_or(0);
            }
        }
        Ok(days)
    }

    /// How many users were active on `dates`.
    pub async fn active(
        &self,
        dates: &[NaiveDate],
        activity: Activity,
        wanted: DayMatch,
    ) -> Result<u64, Unavailable> {
        let segments = self.bitmaps.segments().await?;
        let keys = |segment| self.keys(segment, activity, dates.iter().copied());
        self.bitmaps.count(&segments, wanted, keys).await
    }

    /// How many of `users` were active on `dates`; whoever is named twice counts once.
    pub async fn active_among(
        &self,
        dates: &[NaiveDate],
        activity: Activity,
        wanted: DayMatch,
        users: impl IntoIterator<Item = UserId>,
    ) -> Result<u64, Unavailable> {
        let users: BTreeSet<UserId> = users.into_iter().collect();
        let users: Vec<UserId> = users.into_iter().collect();
        let known = self.keyspace.known_rows(&users).await?;
        let mut bits: BTreeMap<Segment, Vec<u32>> = BTreeMap::new();
        for (user, row) in users.iter().zip(known) {
            if let Some(row) = row {
                let segment = Segment {
                    partition: self.keyspace.partition_of(user),
                    number: rows::day_segment(row),
                };
                bits.entry(segment).or_default().push(rows::day_bit(row));
            }
        }
        let mut sum = 0;
        for (segment, bits) in bits {
            let keys = self.keys(segment, activity, dates.iter().copied());
            sum += self.bitmaps.count_among(segment, wanted, keys, &bits).await?;
        }
        Ok(sum)
    }

    /// For each of `cohorts`, how many of those who were active on it were active so many days later, each as of `today`.
    /// All of it takes at most the configured time.
    pub async fn returns(
        &self,
        cohorts: &[NaiveDate],
        after: &[u64],
        activity: Activity,
        today: NaiveDate,
    ) -> Result<Vec<Returns>, Unavailable> {
        let at_leisure = self.returns_at_leisure(cohorts, after, activity, today);
        self.keyspace.in_time(at_leisure).await
    }

    async fn returns_at_leisure(
        &self,
        cohorts: &[NaiveDate],
        after: &[u64],
        activity: Activity,
        today: NaiveDate,
    ) -> Result<Vec<Returns>, Unavailable> {
        let segments = self.bitmaps.segments().await?;
        let on = |cohort: NaiveDate, days| {
            let on = cohort.checked_add_days(Days::new(days));
            on.filter(|on| *on <= today)
        };
        // Of each cohort its size, and who came back on each day that has come.
        let cells = cohorts.iter().flat_map(|&cohort| {
            let later = after.iter().filter_map(move |&days| on(cohort, days));
            std::iter::once(vec![cohort]).chain(later.map(move |on| vec![cohort, on]))
        });
        let cells: Vec<Vec<NaiveDate>> = cells.collect();
        let keys = |cell: usize, segment| self.keys(segment, activity, cells[cell].iter().copied());
        let counts = self
            .bitmaps
            .count_each(cells.len(), &segments, DayMatch::Every, keys);
        let mut counts = counts.await?.into_iter();
        let mut next = || counts.next().unwrap_or(0);
        let rows = cohorts.iter().map(|&cohort| Returns {
            cohort,
            size: next(),
            returned: after
                .iter()
                .map(|&days| (days, on(cohort, days).map(|_| next())))
                .collect(),
        });
        Ok(rows.collect())
    }

    /// The bitmaps of `dates` in `segment`.
    pub(super) fn keys(
        &self,
        segment: Segment,
        activity: Activity,
        dates: impl Iterator<Item = NaiveDate>,
    ) -> Vec<String> {
        let Segment { partition, number } = segment;
        let keys = self.keyspace.keys();
        let key = |date| match activity {
            Activity::CheckIn => keys.day(partition, date, number),
            Activity::Online => keys.active(partition, date, number),
        };
        dates.map(key).collect()
    }
}
