//! Scores as they are submitted, and what they did.

use std::sync::Arc;

use async_graphql::{ComplexObject, Context, Enum, ID, InputObject, SimpleObject};

use super::super::submit::{PeriodResult, Score, Submitted};
use super::super::{Board, ScoreOperator};
use super::board;
use super::spans::BoardPeriod;
use super::standing::{StandingShown, asks_for_dense};
use crate::app::App;
use crate::error::Error;
use crate::graphql::scalars::SafeInt;
use crate::graphql::{AppContext, access};
use crate::keyspace::{Operation, Unavailable};

/// One score for one user.
#[derive(Debug, Clone, InputObject)]
pub struct SubmitScoreInput {
    /// The id of the board.
    pub board: ID,
    /// The points; for INCREMENT those to add, negative ones too. The board's `maxPoints` bounds what comes out.
    pub points: SafeInt,
    /// Who; left out: the viewer. Another only for SERVICE.
    pub user_id: Option<ID>,
    /// Instead of the board's operator; only for SERVICE.
    pub operator: Option<ScoreOperator>,
    /// Names this score, so that sending it again within 24 hours does not count it again; 1 to 255 bytes.
    pub idempotency_key: Option<String>,
}

impl SubmitScoreInput {
    /// The score that the caller of `ctx` may submit, and the operation that it is.
    pub fn score<'a>(self, ctx: &Context<'a>) -> Result<(Score<'a>, Operation), Error> {
        let points = self.points.get()?;
        let board: &'a Arc<Board> = board(ctx, &self.board)?;
        let user = access::scoring_for(ctx, board, self.user_id)?;
        if self.operator.is_some() {
            access::choosing_operator(ctx)?;
        }
        let operator = self.operator.unwrap_or(board.operator);
        let arguments = [board.id.as_str(), &format!("{operator:?}"), &points.to_string()];
        let (key, caller) = (self.idempotency_key.as_deref(), access::caller(ctx).name());
        let operation = Operation::keyed(key, &caller, "submitScore", &user, &arguments, ctx.now())?;
        Ok((
            Score {
                board,
                user,
                operator,
                points,
            },
            operation,
        ))
    }
}

/// What a caller asks about the places after a score.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// Whether they are asked for at all.
    standings: bool,
    /// Whether DENSE ranks are.
    dense: bool,
}

impl Places {
    /// What the field of `ctx` selects of them.
    pub fn wanted(ctx: &Context<'_>, board: &Board) -> Places {
        let standings = ctx.look_ahead().field("standings").field("standing").exists();
        Places {
            standings,
            dense: standings && asks_for_dense(ctx, board),
        }
    }
}

/// The answer to `submitScore`.
#[derive(SimpleObject)]
pub struct SubmitScorePayload {
    /// What the score did.
    outcome: ScoreOutcome,
    /// The user's place in each of the board's periods; empty if rejected.
    standings: Vec<PeriodStanding>,
    /// Why it was rejected; null if it was not.
    rejection: Option<Rejection>,
}

impl SubmitScorePayload {
    /// Nothing changed, and why.
    pub fn rejected(code: RejectionCode, message: impl Into<String>) -> SubmitScorePayload {
        let rejection = Rejection {
            code,
            message: message.into(),
        };
        SubmitScorePayload {
            outcome: ScoreOutcome::Rejected,
            standings: Vec::new(),
            rejection: Some(rejection),
        }
    }

    /// A failure as a payload, for `submitScores`.
    pub fn failed(error: Error) -> SubmitScorePayload {
        let code = match &error {
            Error::NotFound(_) => RejectionCode::UnknownBoard,
            Error::Unauthenticated(_) | Error::Forbidden(_) => RejectionCode::Forbidden,
            Error::BadUserInput(_) | Error::PersistedQueryNotFound => RejectionCode::BadUserInput,
            // Rates are weighed for whole documents, before there is any score to answer; all the same it may succeed later.
            Error::Unavailable(_) | Error::Full(_) | Error::RateLimited(_) | Error::Internal(_) => {
                RejectionCode::Unavailable
            }
        };
        SubmitScorePayload::rejected(code, async_graphql::Error::from(error).message)
    }

    /// What a score did; places are completed over all partitions if anybody asks for them.
    pub async fn shown(
        app: &App,
        board: &Arc<Board>,
        submitted: Submitted,
        places: Places,
    ) -> Result<Self, Unavailable> {
        let (outcome, periods) = match submitted {
            Submitted::Counted {
                replayed: true,
                periods,
                ..
            } => (ScoreOutcome::Replayed, periods),
            Submitted::Counted {
                changed: true,
                periods,
                ..
            } => (ScoreOutcome::Applied, periods),
            Submitted::Counted { periods, .. } => (ScoreOutcome::Unchanged, periods),
            Submitted::OutOfRange => {
                let message = format!(
                    "points of board {} lie within {} either way",
                    board.id, board.max_points
                );
                return Ok(SubmitScorePayload::rejected(
                    RejectionCode::PointsOutOfRange,
                    message,
                ));
            }
            Submitted::Conflict => {
                let message = "this idempotencyKey came before with another score; nothing was changed";
                return Ok(SubmitScorePayload::rejected(RejectionCode::KeyConflict, message));
            }
        };
        let mut standings = Vec::with_capacity(periods.len());
        for result in periods {
            standings.push(PeriodStanding::read(app, board, result, outcome, places).await?);
        }
        Ok(SubmitScorePayload {
            outcome,
            standings,
            rejection: None,
        })
    }
}

/// What a score did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum ScoreOutcome {
    /// Some period changed.
    Applied,
    /// No period changed.
    Unchanged,
    /// It was done before under the same `idempotencyKey`: previous points as first, places as now.
    Replayed,
    /// It was refused whole; `rejection` says why.
    Rejected,
}

/// A user's place in one period after a score.
#[derive(SimpleObject)]
#[graphql(complex)]
pub struct PeriodStanding {
    /// Which calendar period it is.
    period: BoardPeriod,
    /// Names the period: `2026-11-30`, `2026-W49`, `2026-11`, `all`.
    period_key: String,
    /// The points before; null if the user was not there.
    previous_points: Option<SafeInt>,
    #[graphql(skip)]
    standing: Option<StandingShown>,
}

impl PeriodStanding {
    async fn read(
        app: &App,
        board: &Arc<Board>,
        result: PeriodResult,
        outcome: ScoreOutcome,
        places: Places,
    ) -> Result<PeriodStanding, Unavailable> {
        let PeriodResult {
            span,
            previous_points,
            standing,
        } = result;
        let standing = match outcome {
            _ if !places.standings => None,
            ScoreOutcome::Replayed => {
                app.boards
                    .standing(board, &span, &standing.user, app.clock.now())
                    .await?
            }
            _ => Some(app.boards.complete(board, &span, standing).await?),
        };
        if let Some(standing) = standing.as_ref().filter(|_| places.dense) {
            app.boards
                .count_dense(board, std::slice::from_ref(standing))
                .await?;
        }
        Ok(PeriodStanding {
            // Scores answer with the places in calendar periods only.
            period: span.period().unwrap_or(crate::day::Period::AllTime).into(),
            period_key: span.key(),
            previous_points: previous_points.map(SafeInt::from),
            standing: standing.map(|standing| StandingShown::new(board.clone(), standing)),
        })
    }
}

#[ComplexObject]
impl PeriodStanding {
    /// The place now; null if the user has been taken off since.
    async fn standing(&self) -> Option<StandingShown> {
        self.standing.clone()
    }
}

/// Why a score was refused.
#[derive(Debug, SimpleObject)]
pub struct Rejection {
    /// The reason as programs read it.
    code: RejectionCode,
    /// The reason as people read it; its words may change.
    message: String,
}

/// Why a score was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum RejectionCode {
    /// The points would leave the board's range.
    PointsOutOfRange,
    /// There is no such board.
    UnknownBoard,
    /// The caller may not submit this score.
    Forbidden,
    /// An argument is wrong.
    BadUserInput,
    /// The `idempotencyKey` came before with other arguments.
    KeyConflict,
    /// The store cannot be reached; the same score may succeed later.
    Unavailable,
}
