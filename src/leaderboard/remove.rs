//! Taking a user off a board.
//!
//! Owns the call of `remove.lua`: every open span, both sets of each window, and the closed days that windows still hold.

use chrono::{DateTime, Utc};

use super::windows::TRIES;
use super::{BOARD, Board, Leaderboards, OpenPeriod, Span, Window};
use crate::ids::UserId;
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Memory, Script, Unavailable};

static REMOVE: Script = Script::new("remove", &[NUMBERS, MUTATION, BOARD, include_str!("remove.lua")]);

impl Leaderboards {
    /// Takes `user` off every open span of `board` and off the days that windows still hold; whether it was on any.
    /// Other closed periods stay as they are.
    pub async fn remove(
        &self,
        board: &Board,
        user: &UserId,
        now: DateTime<Utc>,
        memory: Memory<'_>,
    ) -> Result<bool, Unavailable> {
        if self.keyspace.row(user).await?.is_none() {
            return Ok(false); // nobody who never wrote stands on a board
        }
        let mut clock = now;
        for _ in 0..TRIES {
            let sets = self.open_sets(board, clock);
            let complete = |call: Call, _| self.remove_call(call, board, &sets, clock);
            match self
                .keyspace
                .mutate(&REMOVE, user, memory.clone(), complete)
                .await
            {
                Err(Unavailable::StaleDay) => clock = self.turned(board, clock).await?,
                answer => return Ok(answer?.text == "REMOVED"),
            }
        }
        Err(Unavailable::StaleDay)
    }

    fn remove_call(&self, call: Call, board: &Board, sets: &[(String, i64)], now: DateTime<Utc>) -> Call {
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let day = match board.windows.is_empty() {
            true => String::new(),
            false => board.window_day(self.zone.date_of(now)),
        };
        let call = call
            .key(keys.board_version(p, &board.id))
            .key(keys.window_day(p, &board.id))
            .arg(&board.id)
            .arg(keys.changes())
            .arg(day);
        sets.iter().fold(call, |call, (stored, range)| {
            call.key(keys.board(p, &board.id, stored))
                .key(keys.board_distinct(p, &board.id, stored))
                .arg(range)
        })
    }

    /// The sets that are open, or that open windows are made of, each with its range.
    fn open_sets(&self, board: &Board, now: DateTime<Utc>) -> Vec<(String, i64)> {
        let today = self.zone.date_of(now);
        let open = board.stored_plans().map(|plan| {
            let period = OpenPeriod::of(board, plan, today, &self.zone, self.retention);
            (period.key, plan.tie_range())
        });
        let closed_days = board.day_plan().into_iter().flat_map(|plan| {
            let days = Window::dates(board.longest_window(), today, &self.zone).skip(1);
            days.map(|day| (plan.period.span_of(day).key(), plan.tie_range()))
        });
        let windows = self
            .window_sets(board, today)
            .into_iter()
            .map(|stored| (stored, 1));
        let heat = self.heat_of(board).map(|heat| (Span::Heat(heat).stored(), 0));
        open.chain(closed_days).chain(windows).chain(heat).collect()
    }
}
