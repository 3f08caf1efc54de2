//! Making a missed day up: read, decide by the rules, write if what was read still stands.
//!
//! Owns the keys and arguments of `make_up.lua`. Which days can be made up is [`super::make_up`]'s.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::ended::Horizon;
use super::make_up::{MakeUpOutcome, MakeUpWindow};
use super::rows::DAY;
use super::store::read_record;
use super::{CheckIns, Record, Reward, rows};
use crate::ids::UserId;
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Memory, Operation, Request, Row, Script, Unavailable, reply};
use crate::leaderboard::{BOARD, SCORE, WINDOW};
use crate::random::jittered;

static MAKE_UP: Script = Script::new(
    "make_up",
    &[
        NUMBERS,
        MUTATION,
        DAY,
        BOARD,
        WINDOW,
        SCORE,
        include_str!("make_up.lua"),
    ],
);

/// How often it is decided anew when the user's record has changed meanwhile, or the day of a fed board.
pub(super) const TRIES: u32 = 20;

/// The pause after the first time that a record has changed meanwhile, and the longest.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);

/// What a make-up did.
#[derive(Debug, Clone)]
pub struct MakeUpReceipt {
    /// Whether it was made, and why not.
    pub outcome: MakeUpOutcome,
    /// What it earned; nothing unless it was made.
    pub reward: Reward,
    /// The record as of now.
    pub record: Option<Record>,
}

/// What is read before it is decided.
struct Read {
    stored: String,
    record: Record,
    kept: BTreeSet<NaiveDate>,
}

/// A make-up that the rules allow.
struct Made<'r> {
    date: NaiveDate,
    stored: &'r str,
    record: Record,
    reward: Reward,
}

/// Somebody else wrote the record first, and what they did may change what this comes to. Those who want the same at once
/// come back at different times, so that they do not keep each other from it for ever.
pub(super) async fn give_way(tried: u32) {
    let pause = SHORTEST.saturating_mul(1 << tried.min(10)).min(LONGEST);
    tokio::time::sleep(jittered(pause)).await;
}

impl CheckIns {
    /// From when to when days can be made up on `today`.
    pub fn make_up_window(&self, today: NaiveDate) -> MakeUpWindow {
        MakeUpWindow::before(&self.zone, today, self.make_up_days, self.kept_since(today))
    }

    /// What can still be seen and joined on `today`.
    pub(super) fn horizon(&self, today: NaiveDate) -> Horizon {
        Horizon::of(&self.zone, today, self.make_up_days, |day| self.keep.since(day))
    }

    /// Makes `date` up for `user`, for one card, if the rules allow it on the day of `now`.
    pub async fn make_up(
        &self,
        user: &UserId,
        date: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<MakeUpReceipt, Unavailable> {
        self.keyspace
            .in_time(self.make_up_at_leisure(user, date, now))
            .await
    }

    async fn make_up_at_leisure(
        &self,
        user: &UserId,
        date: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<MakeUpReceipt, Unavailable> {
        let today = self.zone.date_of(now);
        let (window, mut clock) = (self.make_up_window(today), now);
        for tried in 0..TRIES {
            let read = self.read_to_make_up(user, today).await?;
            let (record, done) = match &read {
                Some(read) => (Some(&read.record), read.kept.contains(&date)),
                None => (None, false),
            };
            let outcome = window.outcome(date, record, done);
            let made = match (outcome, &read) {
                (MakeUpOutcome::MadeUp, Some(read)) => self.made(read, date, today),
                _ => None,
            };
            let Some(made) = made else {
                return Ok(MakeUpReceipt {
                    outcome,
                    reward: Reward::default(),
                    record: record.cloned(),
                });
            };
            match self.write_make_up(user, &made, now, clock).await {
                Err(Unavailable::StaleDay) => clock = self.boards_turned(clock).await?,
                Ok(false) => give_way(tried).await,
                Ok(true) => {
                    return Ok(MakeUpReceipt {
                        outcome,
                        reward: made.reward,
                        record: Some(made.record),
                    });
                }
                Err(cause) => return Err(cause),
            }
        }
        Err(Unavailable::Refused("the user's record keeps changing".into()))
    }

    fn made<'r>(&self, read: &'r Read, date: NaiveDate, today: NaiveDate) -> Option<Made<'r>> {
        let horizon = self.horizon(today);
        let (record, reward) =
            read.record
                .clone()
                .with_make_up(&self.zone, &horizon, &self.rewards, &read.kept, date)?;
        Some(Made {
            date,
            stored: &read.stored,
            record,
            reward,
        })
    }

    /// The record of `user` and all kept check-ins, in one round trip; `None` before the first write.
    async fn read_to_make_up(&self, user: &UserId, today: NaiveDate) -> Result<Option<Read>, Unavailable> {
        let Some(row) = self.keyspace.row(user).await? else {
            return Ok(None);
        };
        // Another node's clock may be in the next year already.
        let years: Vec<i32> = (self.kept_since(today).year()..=today.year() + 1).collect();
        let mut request = Request::new();
        // The record before the bits: whoever writes in between changes the record, which the script notices.
        request.command(self.record_command(user, row));
        self.ask_years(&mut request, user, row, &years);
        let mut replies = self.keyspace.run(&request).await?;
        let Some(stored) = reply::<Option<String>>(replies.remove(0))? else {
            return Ok(None);
        };
        let kept = rows::dates_of(&years, replies)?.into_iter().collect();
        Ok(read_record(Some(stored.clone()))?.map(|record| Read { stored, record, kept }))
    }

    /// Whether it was written; else the record is another by now.
    async fn write_make_up(
        &self,
        user: &UserId,
        made: &Made<'_>,
        now: DateTime<Utc>,
        clock: DateTime<Utc>,
    ) -> Result<bool, Unavailable> {
        // What was decided anew is another operation; our own sending again of the same call is not.
        let operation = Operation::unique(now);
        let complete = |call: Call, row: Row| self.make_up_call(call, row, made, now, clock);
        let answer = self
            .keyspace
            .mutate(&MAKE_UP, user, Memory::Operation(&operation), complete)
            .await?;
        Ok(answer.text == "MADE_UP")
    }

    fn make_up_call(
        &self,
        call: Call,
        row: Row,
        made: &Made<'_>,
        now: DateTime<Utc>,
        clock: DateTime<Utc>,
    ) -> Call {
        let (keys, p, date) = (self.keyspace.keys(), call.partition(), made.date);
        let segment = rows::year_segment(row);
        let call = call
            .key(keys.record(p, row.bucket()))
            .key(keys.year(p, date.year(), segment))
            .key(keys.make_ups(p, date.year(), segment))
            .arg(made.stored)
            .arg(&made.record)
            .arg(rows::year_bit(row, date))
            .arg(rows::LAST_YEAR_BIT)
            .arg(self.keep.year_ttl(&self.zone, date.year(), now))
            .arg(row.get());
        // The day's activity stays as it was: a day that is made up is one on which the user was not there.
        let call = match self.keep.keeps_day(date, self.zone.date_of(now)) {
            true => call
                .key(keys.day(p, date, rows::day_segment(row)))
                .key(keys.day_count(p, date))
                .arg(self.keep.day_ttl(&self.zone, date, now)),
            false => call.arg(""),
        };
        self.fed_by_make_up(call, made, now, clock)
    }

    /// Points are earned now; the check-in counts for its day, in what is still open of it.
    fn fed_by_make_up(&self, call: Call, made: &Made<'_>, now: DateTime<Utc>, clock: DateTime<Utc>) -> Call {
        let points = self.points_board.as_ref().filter(|_| made.reward.points > 0);
        let count = self.count_board.as_ref().map(|board| {
            let open = self.boards.open_periods_of(board, made.date, now);
            (board, open)
        });
        let count = count.filter(|(_, open)| !open.is_empty());
        let mut call = call.arg(usize::from(points.is_some()) + usize::from(count.is_some()));
        if let Some(board) = points {
            let periods = self.boards.periods_at(board, now, now);
            call = self
                .boards
                .board_part(call.arg(made.reward.points), board, &periods, now, clock);
        }
        if let Some((board, open)) = count {
            call = self.boards.periods_part(call.arg(1), board, &open, now);
        }
        call
    }
}
