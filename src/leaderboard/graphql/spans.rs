//! Boards and spans as arguments and answers name them.

use std::sync::Arc;

use async_graphql::{Enum, ID, Object, OneofObject};

use super::super::{Board, BoardOrder, RankMethod, ScoreOperator, TieBreak};
use crate::graphql::scalars::{SafeInt, int};
use crate::graphql::shared::shared;

/// A calendar period of a board, by the business time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "crate::day::Period")]
pub enum BoardPeriod {
    /// One business day, such as `2026-11-30`.
    Day,
    /// One ISO week, from Monday, such as `2026-W49`.
    Week,
    /// One calendar month, such as `2026-11`.
    Month,
    /// From the beginning, for ever.
    AllTime,
}

/// What a board is asked over: exactly one of these.
#[derive(Debug, Clone, OneofObject)]
pub enum BoardSpan {
    /// A calendar period.
    Period(BoardPeriod),
    /// The last so many days, today included: one of the board's `windows`, which lie within 1 to 366.
    LastDays(i32),
    /// What is hot now, if `true`; for boards with a half-life.
    Heat(bool),
}

/// A board, as configured.
pub struct BoardShown(pub Arc<Board>);

/// A board, as configured.
#[Object(name = "Board", directive = shared::apply(None))]
impl BoardShown {
    /// Names the board, in 1 to 64 characters of `a-z`, `0-9`, `_` and `-`; never changes.
    async fn id(&self) -> ID {
        ID(self.0.id.to_string())
    }

    /// What people read; the id, if none is configured.
    async fn title(&self) -> &str {
        &self.0.title
    }

    /// Which end is best.
    async fn order(&self) -> BoardOrder {
        self.0.order
    }

    /// How a score changes the points.
    async fn operator(&self) -> ScoreOperator {
        self.0.operator
    }

    /// Who stands first among equal points.
    async fn tie_break(&self) -> TieBreak {
        self.0.tie_break
    }

    /// The ranks that are shown unless asked otherwise.
    async fn rank_method(&self) -> RankMethod {
        self.0.rank_method
    }

    /// The calendar periods that the board keeps; the first is the default span.
    async fn periods(&self) -> Vec<BoardPeriod> {
        self.0.plans.iter().map(|plan| plan.period.into()).collect()
    }

    /// The rolling windows that the board keeps, each in days, 1 to 366; today is the last of them.
    async fn windows(&self) -> Vec<i32> {
        self.0.windows.iter().map(|&days| int(days)).collect()
    }

    /// Points lie within this, both ways; a score that would lead beyond is rejected whole.
    async fn max_points(&self) -> SafeInt {
        SafeInt::from(self.0.max_points)
    }
}
