//! A user's kept years: reading them, and writing history without rewards.
//!
//! Owns the keys and arguments of `write_history.lua`. Files are read by [`crate::import`].

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::making_up::{TRIES, give_way};
use super::rows::DAY;
use super::store::read_record;
use super::streak::Streak;
use super::{CheckIns, Record, rows};
use crate::day::Month;
use crate::ids::UserId;
use crate::keyspace::mutation::{MUTATION, NotDone};
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Memory, Request, Row, Script, Unavailable, reply};

static WRITE_HISTORY: Script = Script::new(
    "write_history",
    &[NUMBERS, MUTATION, DAY, include_str!("write_history.lua")],
);

/// Dates that one script call writes for a user, so that none blocks Redis for long.
const DATES_A_CALL: usize = 200;

/// How a check-in came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, async_graphql::Enum)]
pub enum CheckInKind {
    /// On the day itself.
    Normal,
    /// Made up later, for a card.
    MakeUp,
}

/// Past check-ins that are to be written.
#[derive(Debug, Default)]
pub struct History {
    left: Vec<(UserId, Vec<NaiveDate>)>,
    new: Option<u64>,
}

impl History {
    /// Of these users, on these dates.
    pub fn of(users: impl IntoIterator<Item = (UserId, BTreeSet<NaiveDate>)>) -> History {
        let users = users.into_iter();
        History {
            left: users
                .map(|(user, dates)| (user, dates.into_iter().collect()))
                .collect(),
            new: None,
        }
    }

    /// How many were new when they were first looked at. A write whose answer got lost is found done when it is tried
    /// again, and still was new.
    pub fn new_dates(&self) -> u64 {
        self.new.unwrap_or(0)
    }

    fn dates_left(&self) -> usize {
        self.left.iter().map(|(_, dates)| dates.len()).sum()
    }
}

/// What is kept of one user.
struct Kept {
    stored: Option<String>,
    record: Option<Record>,
    dates: BTreeSet<NaiveDate>,
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

    /// Writes past check-ins without rewards, none after the day of `now` or before the kept years. After a failure it
    /// may be called again and goes on; repeating it changes nothing.
    pub async fn write_history(&self, history: &mut History, now: DateTime<Utc>) -> Result<(), Unavailable> {
        let mut in_vain = 0;
        while !history.left.is_empty() && in_vain < TRIES {
            let before = history.dates_left();
            self.write_once(history, now).await?;
            if history.dates_left() < before {
                in_vain = 0;
            } else {
                give_way(in_vain).await;
                in_vain += 1;
            }
        }
        match history.left.is_empty() {
            true => Ok(()),
            false => Err(Unavailable::Refused("the users' records keep changing".into())),
        }
    }

    /// Writes a first part of everybody's dates; what is left is the rest, and those whose record changed meanwhile.
    async fn write_once(&self, history: &mut History, now: DateTime<Utc>) -> Result<(), Unavailable> {
        let users = &history.left;
        let names: Vec<UserId> = users.iter().map(|(user, _)| user.clone()).collect();
        let assigned = self.keyspace.rows_for(&names).await?;
        let kept = self.kept(users, &assigned, self.zone.date_of(now)).await?;
        let mut calls = Vec::new();
        let mut sent = Vec::new();
        for (((user, dates), &row), kept) in users.iter().zip(&assigned).zip(kept) {
            let fresh: Vec<NaiveDate> = dates
                .iter()
                .copied()
                .filter(|date| !kept.dates.contains(date))
                .collect();
            if !fresh.is_empty() {
                let part = &fresh[..fresh.len().min(DATES_A_CALL)];
                calls.push(self.history_call(user, row, kept, part, now));
                sent.push((user.clone(), fresh));
            }
        }
        let new = sent.iter().map(|(_, fresh)| fresh.len() as u64).sum();
        history.new.get_or_insert(new);
        history.left.clear();
        if calls.is_empty() {
            return Ok(());
        }
        let outcomes = self.keyspace.send(&WRITE_HISTORY, &calls).await;
        let outcomes = outcomes.inspect_err(|_| history.left.clone_from(&sent))?;
        let mut failed = None;
        for ((user, mut fresh), outcome) in sent.into_iter().zip(outcomes) {
            match outcome {
                Ok(answer) if answer.text == "WRITTEN" => {
                    fresh.drain(..fresh.len().min(DATES_A_CALL));
                }
                Ok(_changed) => {}
                Err(NotDone::RowGone) => self.keyspace.forget_rows([&user]),
                Err(NotDone::Gap) => failed = Some(Unavailable::Fault("history has no places".into())),
                Err(NotDone::Unavailable(cause)) => failed = Some(cause),
            }
            if !fresh.is_empty() {
                history.left.push((user, fresh));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn history_call(
        &self,
        user: &UserId,
        row: Row,
        kept: Kept,
        new: &[NaiveDate],
        now: DateTime<Utc>,
    ) -> Call {
        let today = self.zone.date_of(now);
        let mut dates = kept.dates;
        dates.extend(new);
        let record = kept.record.unwrap_or_default();
        let record = record.with_history(&self.zone, &self.horizon(today), &dates, new.len() as u32);
        let keys = self.keyspace.keys();
        let call = self.keyspace.call(user, row, &Memory::None);
        let p = call.partition();
        let call = call
            .key(keys.record(p, row.bucket()))
            .arg(kept.stored.unwrap_or_default())
            .arg(record)
            .arg(rows::LAST_YEAR_BIT)
            .arg(row.get());
        new.iter().fold(call, |call, &date| {
            let call = call
                .key(keys.year(p, date.year(), rows::year_segment(row)))
                .arg(rows::year_bit(row, date))
                .arg(self.keep.year_ttl(&self.zone, date.year(), now));
            if !self.keep.keeps_day(date, today) {
                return call.arg("");
            }
            let segment = rows::day_segment(row);
            call.key(keys.day(p, date, segment))
                .key(keys.day_count(p, date))
                .key(keys.active(p, date, segment))
                .key(keys.active_count(p, date))
                .arg(self.keep.day_ttl(&self.zone, date, now))
        })
    }

    /// What is kept of `users`, in the years that they and their new dates touch.
    async fn kept(
        &self,
        users: &[(UserId, Vec<NaiveDate>)],
        rows: &[Row],
        today: NaiveDate,
    ) -> Result<Vec<Kept>, Unavailable> {
        // The records before the bits: whoever writes in between changes the record, which the script notices.
        let mut request = Request::new();
        for ((user, _), &row) in users.iter().zip(rows) {
            request.command(self.record_command(user, row));
        }
        let since = self.kept_since(today);
        let mut all = Vec::with_capacity(users.len());
        for ((_, new), value) in users.iter().zip(self.keyspace.run(&request).await?) {
            let stored: Option<String> = reply(value)?;
            let record = read_record(stored.clone())?;
            let done = record.as_ref().and_then(|record| record.done.as_ref());
            let known = done.map(|done| [done.first.max(since), done.last.max(since)]);
            let touched = new.iter().chain(known.iter().flatten()).map(Datelike::year);
            let (first, last) = touched.fold((today.year(), since.year()), |(first, last), year| {
                (first.min(year), last.max(year))
            });
            all.push((stored, record, (first..=last).collect::<Vec<i32>>()));
        }
        let mut request = Request::new();
        for (((user, _), &row), (_, _, years)) in users.iter().zip(rows).zip(&all) {
            self.ask_years(&mut request, user, row, years);
        }
        let mut replies = self.keyspace.run(&request).await?.into_iter();
        let kept = all.into_iter().map(|(stored, record, years)| {
            let dates = rows::dates_of(&years, replies.by_ref().take(years.len()).collect())?;
            Ok(Kept {
                stored,
                record,
                dates: dates.into_iter().collect(),
            })
        });
        kept.collect()
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
