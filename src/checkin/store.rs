//! Checking in, and reading the record: one script, one round trip.
//!
//! Owns the keys and arguments of `check_in.lua`. Years of history are [`super::history`]'s.

use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::keep::Keep;
use super::rewards::{MAX_CARDS, MAX_POINTS};
use super::rows::DAY;
use super::stored::RECORD;
use super::{Record, Reward, Rewards, rows};
use crate::config;
use crate::day::{Zone, day_number};
use crate::ids::UserId;
use crate::keyspace::mutation::{Fields, MUTATION};
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Answer, Call, Keyspace, Memory, Operation, Request, Row, Script, Unavailable, reply};
use crate::leaderboard::{BOARD, Board, Leaderboards, SCORE, WINDOW};

static CHECK_IN: Script = Script::new(
    "check_in",
    &[
        NUMBERS,
        MUTATION,
        DAY,
        RECORD,
        BOARD,
        WINDOW,
        SCORE,
        include_str!("check_in.lua"),
    ],
);

/// The same where no boards are fed: what is not called need not be brought into being at each call.
static CHECK_IN_ALONE: Script = Script::new(
    "check_in",
    &[NUMBERS, MUTATION, DAY, RECORD, include_str!("check_in.lua")],
);

/// How often a check-in is sent again when the day of a fed board turns meanwhile.
const TRIES: usize = 5;

/// The store of check-ins.
#[derive(Clone)]
pub struct CheckIns {
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) zone: Zone,
    pub(super) rewards: Rewards,
    pub(super) keep: Keep,
    /// How many days before today can be made up.
    pub(super) make_up_days: u32,
    pub(super) boards: Leaderboards,
    pub(super) points_board: Option<Arc<Board>>,
    pub(super) count_board: Option<Arc<Board>>,
}

/// What a check-in did.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Whether this is the first check-in of the day.
    pub fresh: bool,
    /// The day that it counts for.
    pub date: NaiveDate,
    /// What that day's check-in paid.
    pub paid: Reward,
    /// The record after it.
    pub record: Record,
}

impl CheckIns {
    /// The check-ins of this configuration in that keyspace.
    pub fn new(
        keyspace: Arc<Keyspace>,
        zone: Zone,
        settings: &config::Settings,
        keep: Keep,
        boards: Leaderboards,
    ) -> CheckIns {
        let fed = |id: &str| boards.boards().get(id).cloned();
        CheckIns {
            keyspace,
            zone,
            rewards: Rewards::from(&settings.checkin),
            keep,
            make_up_days: settings.makeup.window_days,
            points_board: fed(&settings.checkin.points_board),
            count_board: fed(&settings.checkin.count_board),
            boards,
        }
    }

    /// What check-ins earn.
    pub fn rewards(&self) -> &Rewards {
        &self.rewards
    }

    /// The business zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Checks `user` in for the day of `now`. A second time the same day changes nothing and says so.
    pub async fn check_in(
        &self,
        user: &UserId,
        now: DateTime<Utc>,
        operation: &Operation,
    ) -> Result<Receipt, Unavailable> {
        self.keyspace
            .in_time(self.check_in_at_leisure(user, now, operation))
            .await
    }

    async fn check_in_at_leisure(
        &self,
        user: &UserId,
        now: DateTime<Utc>,
        operation: &Operation,
    ) -> Result<Receipt, Unavailable> {
        let today = self.zone.date_of(now);
        let mut clock = now;
        let script = match (&self.points_board, &self.count_board) {
            (None, None) => &CHECK_IN_ALONE,
            _ => &CHECK_IN,
        };
        for _ in 0..TRIES {
            let complete = |call: Call, row: Row| self.check_in_call(call, row, today, now, clock);
            match self
                .keyspace
                .mutate(script, user, Memory::Operation(operation), complete)
                .await
            {
                Err(Unavailable::StaleDay) => clock = self.boards_turned(clock).await?,
                answer => return receipt(&answer?),
            }
        }
        Err(Unavailable::StaleDay)
    }

    /// The record of `user`; `None` before the first check-in and before anything was in the wallet.
    pub async fn record(&self, user: &UserId) -> Result<Option<Record>, Unavailable> {
        let Some(row) = self.keyspace.row(user).await? else {
            return Ok(None);
        };
        let mut request = Request::new();
        request.command(self.record_command(user, row));
        match self.keyspace.run(&request).await?.pop() {
            Some(value) => read_record(reply(value)?),
            None => Ok(None),
        }
    }

    /// Brings the day of `now` in force for the boards that check-ins feed; answers with `now`, or with the start of the
    /// day in force if that is a later one.
    pub(super) async fn boards_turned(&self, mut now: DateTime<Utc>) -> Result<DateTime<Utc>, Unavailable> {
        for board in self.points_board.iter().chain(&self.count_board) {
            now = self.boards.turned(board, now).await?;
        }
        Ok(now)
    }

    pub(super) fn record_command(&self, user: &UserId, row: Row) -> redis::Cmd {
        let mut get = redis::cmd("HGET");
        get.arg(
            self.keyspace
                .keys()
                .record(self.keyspace.partition_of(user), row.bucket()),
        )
        .arg(row.field());
        get
    }

    /// A check-in at `now`, while `clock` is what the fed boards go by.
    fn check_in_call(
        &self,
        call: Call,
        row: Row,
        today: NaiveDate,
        now: DateTime<Utc>,
        clock: DateTime<Utc>,
    ) -> Call {
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let (segment, horizon) = (rows::day_segment(row), self.horizon(today));
        let call = call
            .key(keys.record(p, row.bucket()))
            .key(keys.year(p, today.year(), rows::year_segment(row)))
            .key(keys.day(p, today, segment))
            .key(keys.day_count(p, today))
            .key(keys.active(p, today, segment))
            .key(keys.active_count(p, today))
            .arg(day_number(today))
            .arg(day_number(self.zone.day_before(today)))
            .arg(rows::year_bit(row, today))
            .arg(rows::LAST_YEAR_BIT)
            .arg(row.get())
            .arg(self.keep.year_ttl(&self.zone, today.year(), now))
            .arg(self.keep.day_ttl(&self.zone, today, now))
            .arg(horizon.joins())
            .arg(horizon.cuts())
            .arg(MAX_POINTS)
            .arg(MAX_CARDS)
            .arg(self.rewards.weekly_bonus);
        self.fed_boards(self.reward_rules(call), now, clock)
    }

    fn reward_rules(&self, call: Call) -> Call {
        let Rewards {
            cycle, milestones, ..
        } = &self.rewards;
        let call = cycle.iter().fold(call.arg(cycle.len()), Call::arg);
        milestones
            .iter()
            .fold(call.arg(milestones.len()), |call, (streak, reward)| {
                call.arg(streak).arg(reward.points).arg(reward.cards)
            })
    }

    fn fed_boards(&self, call: Call, now: DateTime<Utc>, clock: DateTime<Utc>) -> Call {
        let fed = [("points", &self.points_board), ("count", &self.count_board)];
        let fed = fed
            .into_iter()
            .filter_map(|(what, board)| board.as_ref().map(|board| (what, board)));
        fed.clone().fold(call.arg(fed.count()), |call, (what, board)| {
            let periods = self.boards.periods_at(board, now, now);
            self.boards
                .board_part(call.arg(what), board, &periods, now, clock)
        })
    }
}

fn receipt(answer: &Answer) -> Result<Receipt, Unavailable> {
    let mut fields = answer.fields();
    let fresh = fields.text()? == "CHECKED_IN";
    let record = Record::read(&mut fields)?;
    match &record.done {
        Some(done) => Ok(Receipt {
            fresh,
            date: done.last,
            paid: done.paid,
            record,
        }),
        None => Err(Unavailable::Fault("a check-in left no record".into())),
    }
}

pub(super) fn read_record(stored: Option<String>) -> Result<Option<Record>, Unavailable> {
    stored
        .map(|text| Record::read(&mut Fields::of(&text)))
        .transpose()
}
