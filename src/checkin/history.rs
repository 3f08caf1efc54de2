//! Reading a user's kept years.
//!
//! Owns how they are asked for, and what is answered where they are gone.

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate};

use super::store::read_record;
use super::streak::Streak;
use super::{CheckIns, Record, rows};
use crate::day::Month;
use crate::ids::UserId;
use crate::keyspace::{Request, Row, Unavailable, reply};

/// How a check-in came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, async_graphql::Enum)]
pub enum CheckInKind {
    /// On the day itself.
    Normal,
    /// Made up later, for a card.
    MakeUp,
}

impl CheckIns {
    /// The first date whose check-ins Redis still holds at `today`.
    pub fn kept_since(&self, today: NaiveDate) -> NaiveDate {
        self.keep.since(today)
    }

    /// The check-ins of `user` from `from` to `to`, both included, ascending; `None` if any of those days is unknown on
    /// `today`.
    pub async fn dates(
        &self,
        user: &UserId,
        from: NaiveDate,
        to: NaiveDate,
        today: NaiveDate,
    ) -> Result<Option<BTreeMap<NaiveDate, CheckInKind>>, Unavailable> {
        let Some(row) = self.keyspace.row(user).await? else {
            return Ok(Some(BTreeMap::new()));
        };
        let since = self.kept_since(today);
        let years: Vec<i32> = (from.max(since).year()..=to.year()).collect();
        let (record, mut dates) = self.record_and_kinds(user, row, &years).await?;
        dates.retain(|date, _| (from.max(since)..=to).contains(date));
        let unknown = record.and_then(|record| record.unknown(since));
        let touched = unknown.is_some_and(|unknown| from <= *unknown.end() && to >= *unknown.start());
        Ok((!touched).then_some(dates))
    }

    /// The record of `user` and the check-ins of `month`, in one round trip, as far as they are kept on `today`.
    pub async fn month(
        &self,
        user: &UserId,
        month: Month,
        today: NaiveDate,
    ) -> Result<(Option<Record>, BTreeMap<NaiveDate, CheckInKind>), Unavailable> {
        let Some(row) = self.keyspace.row(user).await? else {
            return Ok(Default::default());
        };
        // What is kept no longer may still be there, until the keeper comes by.
        let kept = month.first() >= self.kept_since(today);
        let years: Vec<i32> = kept.then_some(month.first().year()).into_iter().collect();
        let (record, mut dates) = self.record_and_kinds(user, row, &years).await?;
        dates.retain(|date, _| (month.first()..=month.last()).contains(date));
        Ok((record, dates))
    }

    /// The record of `user` and the check-ins of `years`. Whoever checks in meanwhile may be in the one and not in the other.
    async fn record_and_kinds(
        &self,
        user: &UserId,
        row: Row,
        years: &[i32],
    ) -> Result<(Option<Record>, BTreeMap<NaiveDate, CheckInKind>), Unavailable> {
        let mut request = Request::new();
        request.command(self.record_command(user, row));
        self.ask_kinds(&mut request, user, row, years);
        let mut replies = self.keyspace.run(&request).await?;
        let record = read_record(reply(replies.remove(0))?)?;
        Ok((record, read_kinds(years, replies)?))
    }

    /// The streak of `user` as it stood at the end of `day`, a day before `today`; `None` if that is no longer known.
    pub async fn streak_on(
        &self,
        user: &UserId,
        day: NaiveDate,
        today: NaiveDate,
    ) -> Result<Option<Streak>, Unavailable> {
        let Some(row) = self.keyspace.row(user).await? else {
            return Ok(Some(Streak::default()));
        };
        let since = self.kept_since(today);
        let years: Vec<i32> = (since.year()..=today.year() + 1).collect();
        let mut request = Request::new();
        request.command(self.record_command(user, row));
        self.ask_years(&mut request, user, row, &years);
        let mut replies = self.keyspace.run(&request).await?;
        let record = read_record(reply(replies.remove(0))?)?.unwrap_or_default();
        let kept = rows::dates_of(&years, replies)?.into_iter().collect();
        Ok(record.streak_on(&self.zone, since, &kept, day))
    }

    /// Since when each day of `user` is known on `today`; `None` if nothing was lost.
    pub async fn known_since(
        &self,
        user: &UserId,
        today: NaiveDate,
    ) -> Result<Option<NaiveDate>, Unavailable> {
        let record = self.record(user).await?;
        let unknown = record.and_then(|record| record.unknown(self.kept_since(today)));
        Ok(unknown.map(|unknown| self.zone.day_after(*unknown.end())))
    }

    /// Adds a GETRANGE for each year.
    pub(super) fn ask_years(&self, request: &mut Request, user: &UserId, row: Row, years: &[i32]) {
        let (keys, p) = (self.keyspace.keys(), self.keyspace.partition_of(user));
        for &year in years {
            request.command(row_of(keys.year(p, year, rows::year_segment(row)), row));
        }
    }

    /// As [`CheckIns::ask_years`], and then one more for the make-ups of each.
    fn ask_kinds(&self, request: &mut Request, user: &UserId, row: Row, years: &[i32]) {
        self.ask_years(request, user, row, years);
        let (keys, p) = (self.keyspace.keys(), self.keyspace.partition_of(user));
        for &year in years {
            request.command(row_of(keys.make_ups(p, year, rows::year_segment(row)), row));
        }
    }
}

fn row_of(segment: String, row: Row) -> redis::Cmd {
    let (first, last) = rows::year_bytes(row);
    let mut range = redis::cmd("GETRANGE");
    range.arg(segment).arg(first).arg(last);
    range
}

/// Reads what [`CheckIns::ask_kinds`] asked for.
fn read_kinds(
    years: &[i32],
    mut replies: Vec<redis::Value>,
) -> Result<BTreeMap<NaiveDate, CheckInKind>, Unavailable> {
    let make_ups = replies.split_off(years.len().min(replies.len()));
    let mut kinds: BTreeMap<NaiveDate, CheckInKind> = rows::dates_of(years, replies)?
        .into_iter()
        .map(|date| (date, CheckInKind::Normal))
        .collect();
    for date in rows::dates_of(years, make_ups)? {
        kinds.insert(date, CheckInKind::MakeUp);
    }
    Ok(kinds)
}
