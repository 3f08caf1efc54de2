//! Taking a user off a board.
//!
//! Owns the call of `remove.lua`: every open span, both sets of each window, and the closed days that windows still hold.

use chrono::{DateTime, Utc};

use super::{BOARD, Board, Leaderboards, OpenPeriod, Span, Window};
use crate::ids::UserId;
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Memory, Script, Unavailable};

static REMOVE: Script = Script::new("remove", &[NUMBERS, MUTATION, BOARD, include_str!("remove.lua")]);

impl Leaderboards {
    /// Takes `user` off every open span of `board`; whether it was on any. Closed periods stay as they are.
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
        let sets = self.open_sets(board, now);
        let complete = |call: Call, _| {
            let (keys, p) = (self.keyspace.keys(), call.partition());
            let call = call
                .key(keys.board_version(p, &board.id))
                .arg(&board.id)
                .arg(keys.changes());
            sets.iter().fold(call, |call, (stored, range)| {
                call.key(keys.board(p, &board.id, stored))
                    .key(keys.board_distinct(p, &board.id, stored))
                    .arg(range)
            })
        };
        let answer = self.keyspace.mutate(&REMOVE, user, memory, complete).await?;
        Ok(answer.text == "REMOVED")
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
