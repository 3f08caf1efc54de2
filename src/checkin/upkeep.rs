//! What time does to check-ins: years and days that are kept no longer leave.
//!
//! Owns which keys those are. Everything here may be done twice or left half-way: the next turn goes on. A Redis TTL is
//! the backstop behind it.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};

use super::{CheckIns, rows};
use crate::keyspace::keeper::Reached;
use crate::keyspace::{Keys, Partition, Row, Unavailable};

/// How far back the first sweep of a partition looks for what nobody keeps any more.
const FIRST_SWEEP_YEARS: i32 = 10;
const FIRST_SWEEP_DAYS: u64 = 800;

/// What the keeper notes about how far it has come: rows of years before that date are gone, and bitmaps of days.
const YEARS: &str = "check-in years";
const DAYS: &str = "check-in days";

impl CheckIns {
    /// One turn of the keeper over `partitions`.
    pub async fn look_after(&self, partitions: &[Partition], now: DateTime<Utc>) -> Result<(), Unavailable> {
        let mut outcome = Ok(());
        // One partition's trouble, or that of the years, is not the others': all are tried, and the first failure told.
        for &p in partitions {
            outcome = outcome.and(self.sweep(p, self.zone.date_of(now)).await);
        }
        outcome
    }

    async fn sweep(&self, p: Partition, today: NaiveDate) -> Result<(), Unavailable> {
        let reached = self.keyspace.reached(p).await?;
        let years = self.sweep_years(p, today, &reached).await;
        let days = self.sweep_days(p, today, &reached).await;
        years.and(days)
    }

    /// Takes the rows of years away that are kept no longer.
    async fn sweep_years(
        &self,
        p: Partition,
        today: NaiveDate,
        reached: &Reached,
    ) -> Result<(), Unavailable> {
        let (keys, since) = (self.keyspace.keys(), self.kept_since(today));
        let from = match reached.get(YEARS) {
            Some(&from) if from == since => return Ok(()),
            Some(&from) => from.year(),
            None => since.year() - FIRST_SWEEP_YEARS,
        };
        let last_row = self.keyspace.last_row(p).await?;
        let names = (from..since.year()).flat_map(|year| year_names(keys, p, year, last_row));
        self.keyspace.unlink(names.collect()).await?;
        // Also where more years are kept than before: what is written into them now has to be swept again.
        self.keyspace.note_reached(p, YEARS, since).await
    }

    /// Takes the bitmaps and counters of days away that are kept no longer.
    async fn sweep_days(&self, p: Partition, today: NaiveDate, reached: &Reached) -> Result<(), Unavailable> {
        let (keys, since) = (self.keyspace.keys(), self.keep.days_since(today));
        let from = match reached.get(DAYS) {
            Some(&from) if from == since => return Ok(()),
            Some(&from) => from,
            None => since - Days::new(FIRST_SWEEP_DAYS),
        };
        let last_row = self.keyspace.last_row(p).await?;
        let gone = from.iter_days().take_while(|&date| date < since);
        let names = gone.flat_map(|date| day_names(keys, p, date, last_row));
        self.keyspace.unlink(names.collect()).await?;
        self.keyspace.note_reached(p, DAYS, since).await
    }

    /// The bitmaps of a partition that are kept at `now`, by what they are for.
    pub async fn bitmaps(
        &self,
        p: Partition,
        now: DateTime<Utc>,
    ) -> Result<[(&'static str, Vec<String>); 4], Unavailable> {
        let (keys, today) = (self.keyspace.keys(), self.zone.date_of(now));
        let last_row = self.keyspace.last_row(p).await?;
        let (in_days, in_years) = (0..=rows::day_segment(last_row), 0..=rows::year_segment(last_row));
        let days = || {
            let kept = self.keep.days_since(today).iter_days();
            kept.take_while(|day| *day <= today)
        };
        let years = || self.kept_since(today).year()..=today.year();
        let of_days = |name: &dyn Fn(NaiveDate, u32) -> String| -> Vec<String> {
            let named = days().flat_map(|day| in_days.clone().map(move |segment| name(day, segment)));
            named.collect()
        };
        let of_years = |name: &dyn Fn(i32, u32) -> String| -> Vec<String> {
            let named = years().flat_map(|year| in_years.clone().map(move |segment| name(year, segment)));
            named.collect()
        };
        Ok([
            ("day", of_days(&|day, segment| keys.day(p, day, segment))),
            ("active", of_days(&|day, segment| keys.active(p, day, segment))),
            ("year", of_years(&|year, segment| keys.year(p, year, segment))),
            (
                "makeup",
                of_years(&|year, segment| keys.make_ups(p, year, segment)),
            ),
        ])
    }
}

/// All keys of a year, where `last_row` is the partition's.
pub(super) fn year_names(
    keys: &Keys,
    p: Partition,
    year: i32,
    last_row: Row,
) -> impl Iterator<Item = String> + use<'_> {
    let segments = 0..=rows::year_segment(last_row);
    segments.flat_map(move |segment| [keys.year(p, year, segment), keys.make_ups(p, year, segment)])
}

/// All keys of a day, where `last_row` is the partition's.
pub(super) fn day_names(
    keys: &Keys,
    p: Partition,
    date: NaiveDate,
    last_row: Row,
) -> impl Iterator<Item = String> + use<'_> {
    let segments = 0..=rows::day_segment(last_row);
    let bitmaps =
        segments.flat_map(move |segment| [keys.day(p, date, segment), keys.active(p, date, segment)]);
    bitmaps.chain([keys.day_count(p, date), keys.active_count(p, date)])
}
