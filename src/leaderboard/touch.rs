//! What others see of a user has changed: the boards that show the user count it as a change.
//!
//! Owns the boards' part of such a write's call (`touch.lua`).

use chrono::{DateTime, Utc};

use super::{Leaderboards, OpenPeriod, Span, Window};
use crate::keyspace::Call;

/// The Lua part that notes it.
pub const TOUCH: &str = include_str!("touch.lua");

impl Leaderboards {
    /// Completes a call with what `touch.lua` needs: every board with its spans that can be followed now.
    pub fn touch_call(&self, call: Call, now: DateTime<Utc>) -> Call {
        let (keys, p, today) = (self.keyspace.keys(), call.partition(), self.zone.date_of(now));
        let call = call.arg(keys.changes());
        self.boards.iter().fold(call, |call, board| {
            let periods = board
                .plans
                .iter()
                .map(|plan| OpenPeriod::of(board, plan, today, &self.zone, self.retention).key);
            let windows = board.windows.iter().map(|&days| Window::stored(days, today));
            let heat = self.heat_of(board).map(|heat| Span::Heat(heat).stored());
            let spans: Vec<String> = periods.chain(windows).chain(heat).collect();
            let call = call
                .key(keys.board_version(p, &board.id))
                .arg(&board.id)
                .arg(spans.len());
            spans
                .iter()
                .fold(call, |call, span| call.key(keys.board(p, &board.id, span)))
        })
    }
}
