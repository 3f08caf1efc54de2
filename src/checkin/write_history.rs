//! Writing past check-ins without rewards.
//!
//! Owns the keys and arguments of `write_history.lua`. Files are read by [`crate::import`].

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::making_up::{TRIES, give_way};
use super::rows::DAY;
use super::store::read_record;
use super::{CheckIns, Record, rows};
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
}
