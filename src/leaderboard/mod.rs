//! Leaderboards: boards by configuration, their spans, scores and places.
//!
//! Read [`plan`] (how points and ties fit into 53 bits), [`score`] and [`heat`] (what keys mean), [`span`] (which sets a
//! question is about), then the store: [`submit`] and [`remove`] (writing), [`standings`] and [`pages`] (reading),
//! [`windows`] (the turn of the day), [`upkeep`] (what time does to boards). [`ranking`] has the rules of places. What
//! followers need is [`version`] (has it changed), [`seen`] (many users' places at once), [`moves`] (from one top to the
//! next) and [`touch`] (profiles that are shown). [`graphql`] is the face.

pub mod board;
mod described;
pub mod graphql;
pub mod heat;
pub mod moves;
pub mod pages;
pub mod plan;
pub mod ranking;
pub mod remove;
pub mod score;
pub mod seen;
pub mod span;
pub mod standings;
pub mod submit;
pub mod touch;
pub mod upkeep;
pub mod version;
pub mod windows;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};

pub use board::{Board, BoardOrder, Boards, RankMethod, ScoreOperator, TieBreak};
pub use span::{OpenPeriod, Retention, Span, Window};
pub use version::Version;

use crate::day::{Period, Zone};
use crate::ids::BoardId;
use crate::keyspace::Keyspace;
use heat::Heat;

/// The Lua part about a board's sets; needs [`crate::keyspace::scripts::NUMBERS`] before it.
pub(crate) const BOARD: &str = include_str!("board.lua");
/// The Lua part about values over several days.
pub(crate) const WINDOW: &str = include_str!("window.lua");
/// The Lua part that puts a score into all spans of a board.
pub(crate) const SCORE: &str = include_str!("score.lua");
/// The Lua part that finds positions.
pub(crate) const POSITION: &str = include_str!("position.lua");

/// The boards' store: what they are and where their scores lie.
#[derive(Clone)]
pub struct Leaderboards {
    keyspace: Arc<Keyspace>,
    zone: Zone,
    boards: Arc<Boards>,
    retention: Retention,
    /// From when each board's heat counts.
    heat_bases: Arc<HashMap<BoardId, DateTime<Utc>>>,
}

/// Why a board cannot be asked over a span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchSpan {
    /// The board does not keep it.
    #[error("board {0} keeps no {1}")]
    NotKept(BoardId, String),
    /// It is no longer kept.
    #[error("{0}/{1} is no longer kept")]
    Gone(BoardId, String),
}

impl Leaderboards {
    /// The boards of this configuration in that keyspace; `now` is the base of heat that begins with this start.
    pub async fn open(
        keyspace: Arc<Keyspace>,
        zone: Zone,
        boards: Arc<Boards>,
        retention: Retention,
        now: DateTime<Utc>,
    ) -> Result<Leaderboards, crate::keyspace::Unavailable> {
        let hot = boards.iter().filter(|board| board.half_life_hours > 0.0);
        let fields: Vec<(BoardId, String)> = hot
            .map(|board| (board.id.clone(), format!("heat-base:{}", board.id)))
            .collect();
        let mut heat_bases = HashMap::new();
        for (board, field) in fields {
            let base: i64 = keyspace.settle(&field, now.timestamp_millis()).await?;
            heat_bases.insert(board, DateTime::from_timestamp_millis(base).unwrap_or(now));
        }
        let boards = Leaderboards {
            keyspace,
            zone,
            boards,
            retention,
            heat_bases: Arc::new(heat_bases),
        };
        boards.forget_windows().await?;
        Ok(boards)
    }

    /// All boards, as configured.
    pub fn boards(&self) -> &Boards {
        &self.boards
    }

    /// The calendar period of `board` that `date` lies in.
    pub fn period(
        &self,
        board: &Board,
        period: Period,
        date: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Span, NoSuchSpan> {
        let no_such = || NoSuchSpan::NotKept(board.id.clone(), format!("period {}", period.as_str()));
        let plan = board
            .plans
            .iter()
            .find(|plan| plan.period == period)
            .ok_or_else(no_such)?;
        let period = OpenPeriod::of(board, plan, date, &self.zone, self.retention);
        match period.is_kept(now) {
            true => Ok(Span::Period(period)),
            false => Err(NoSuchSpan::Gone(board.id.clone(), period.key)),
        }
    }

    /// The window of `board` over the last `days` days.
    pub fn window(&self, board: &Board, days: i64, now: DateTime<Utc>) -> Result<Span, NoSuchSpan> {
        let kept = board.windows.iter().find(|&&kept| i64::from(kept) == days);
        let days = kept.ok_or_else(|| {
            NoSuchSpan::NotKept(board.id.clone(), format!("window of the last {days} days"))
        })?;
        Ok(Span::Window(Window::ending(
            *days,
            self.zone.date_of(now),
            &self.zone,
        )))
    }

    /// The heat of `board`.
    pub fn heat(&self, board: &Board) -> Result<Span, NoSuchSpan> {
        let heat = self
            .heat_of(board)
            .ok_or_else(|| NoSuchSpan::NotKept(board.id.clone(), "heat".into()))?;
        Ok(Span::Heat(heat))
    }

    /// The same kind of span as it is at `now`.
    pub fn as_of(&self, board: &Board, span: &Span, now: DateTime<Utc>) -> Result<Span, NoSuchSpan> {
        match span {
            Span::Period(period) => self.period(board, period.plan.period, self.zone.date_of(now), now),
            Span::Window(window) => self.window(board, window.days.into(), now),
            Span::Heat(_) => self.heat(board),
        }
    }

    fn heat_of(&self, board: &Board) -> Option<Heat> {
        self.heat_bases
            .get(&board.id)
            .map(|&base| Heat::new(board.half_life_hours, base))
    }

    /// A date that lies in the period before the given one, if Redis still keeps that.
    pub fn previous_on(&self, board: &Board, period: &OpenPeriod, now: DateTime<Utc>) -> Option<NaiveDate> {
        let before = self.zone.day_before(period.dates.first()?);
        self.period(board, period.plan.period, before, now)
            .is_ok()
            .then_some(before)
    }

    /// A date that lies in the period after the given one, if that has begun.
    pub fn next_on(&self, period: &OpenPeriod, now: DateTime<Utc>) -> Option<NaiveDate> {
        let after = self.zone.day_after(period.dates.last()?);
        (after <= self.zone.date_of(now)).then_some(after)
    }
}
