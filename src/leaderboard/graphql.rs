//! The face of boards: `boards`, `leaderboard`, `rank`, `submitScore`, `leaderboardChanged`.
//!
//! [`types`] are the shapes, [`watch`] is what a subscriber gets; here are the fields of the roots.

mod types;
mod watch;

use std::sync::Arc;

use async_graphql::{Context, ID, Object, Subscription};
use futures::Stream;

use super::submit::Submitted;
use super::{Board, OpenPeriod};
use crate::day::Period;
use crate::error::Error;
use crate::graphql::scalars::Date;
use crate::graphql::{AppContext, access, answer, answer_optional};
use crate::keyspace::{Memory, Operation};
use types::{
    BoardShown, BoardSpan, Leaderboard, PeriodStanding, Rejection, RejectionCode, ScoreOutcome,
    StandingShown, SubmitScoreInput, SubmitScorePayload,
};
use watch::{LeaderboardUpdate, Watch};

/// The most standings that one field answers with.
const MAX_FIRST: i32 = 500;

fn board<'a>(ctx: &Context<'a>, id: &str) -> Result<&'a Arc<Board>, Error> {
    let app = ctx.data_unchecked::<Arc<crate::app::App>>();
    app.boards
        .boards()
        .get(id)
        .ok_or_else(|| Error::NotFound(format!("there is no board {id:?}")))
}

fn first_of(first: i32) -> Result<usize, Error> {
    match usize::try_from(first) {
        Ok(many) if first <= MAX_FIRST => Ok(many),
        _ => Err(Error::BadUserInput(format!(
            "first is {first}; it must lie from 0 to {MAX_FIRST}"
        ))),
    }
}

/// The period that `span` and `on` name.
fn period(
    ctx: &Context<'_>,
    board: &Board,
    span: Option<BoardSpan>,
    on: Option<Date>,
) -> Result<OpenPeriod, Error> {
    let wanted: Period = match span {
        None => board
            .plans
            .first()
            .map(|plan| plan.period)
            .ok_or_else(|| Error::Internal("a board without periods".into()))?,
        Some(BoardSpan::Period(period)) => period.into(),
        Some(BoardSpan::LastDays(days)) => {
            return Err(Error::BadUserInput(format!(
                "board {} keeps no window of the last {days} days",
                board.id
            )));
        }
        Some(BoardSpan::Heat(_)) => {
            return Err(Error::BadUserInput(format!("board {} keeps no heat", board.id)));
        }
    };
    let plan = board.plan_of(wanted).ok_or_else(|| {
        Error::BadUserInput(format!("board {} keeps no period {}", board.id, wanted.as_str()))
    })?;
    let (app, now) = (ctx.app(), ctx.now());
    let today = app.zone.date_of(now);
    let date = on.map_or(today, |on| on.0);
    if date > today {
        return Err(Error::BadUserInput(format!(
            "on ({date}) lies in the future: today is {today}"
        )));
    }
    let period = OpenPeriod::of(plan, date, &app.zone, app.boards.retention);
    match period.is_kept(now) {
        true => Ok(period),
        false => Err(Error::NotFound(format!(
            "{}/{} is no longer kept",
            board.id, period.key
        ))),
    }
}

/// Reading boards. Anybody may, unless `auth.public_reads` is off.
#[derive(Default)]
pub struct BoardQuery;

#[Object]
impl BoardQuery {
    /// All boards, in the configured order.
    async fn boards(&self, ctx: &Context<'_>) -> Vec<BoardShown> {
        ctx.app()
            .boards
            .boards()
            .iter()
            .cloned()
            .map(BoardShown)
            .collect()
    }

    /// One board over one span.
    async fn leaderboard(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The board's id.")] board: ID,
        #[graphql(desc = "Which span; left out: the board's first period.")] span: Option<BoardSpan>,
        #[graphql(desc = "A date of the wanted period; left out: today.")] on: Option<Date>,
    ) -> Option<async_graphql::Result<Leaderboard>> {
        answer(async {
            access::reading_publicly(ctx, ctx.app().settings.auth.public_reads)?;
            let board = self::board(ctx, &board)?;
            let period = period(ctx, board, span, on)?;
            Leaderboard::read(ctx.app(), board.clone(), period, types::wanted_of_top(ctx)).await
        })
        .await
    }

    /// Where a user stands on a board; null if not there.
    async fn rank(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The board's id.")] board: ID,
        #[graphql(desc = "Who; left out: the viewer.")] user_id: Option<ID>,
        #[graphql(desc = "Which span; left out: the board's first period.")] span: Option<BoardSpan>,
        #[graphql(desc = "A date of the wanted period; left out: today.")] on: Option<Date>,
    ) -> Option<async_graphql::Result<StandingShown>> {
        answer_optional(async {
            access::reading_publicly(ctx, ctx.app().settings.auth.public_reads)?;
            let user = access::named(ctx, user_id)?;
            let board = self::board(ctx, &board)?;
            let period = period(ctx, board, span, on)?;
            let standing = ctx
                .app()
                .boards
                .standing(board, &period, &user, ctx.now())
                .await?;
            Ok(standing.map(|standing| StandingShown::new(board.clone(), period, standing)))
        })
        .await
    }
}

/// Scoring.
#[derive(Default)]
pub struct BoardMutation;

#[Object]
impl BoardMutation {
    /// Score for a user: all periods of the board change together or not at all. For SERVICE, and for users on boards
    /// that take their own scores.
    async fn submit_score(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The score.")] input: SubmitScoreInput,
    ) -> Option<async_graphql::Result<SubmitScorePayload>> {
        answer(async {
            let Ok(board) = self::board(ctx, &input.board) else {
                access::acting_for(ctx, input.user_id)?;
                return Ok(unknown_board(&input.board));
            };
            let user = access::scoring_for(ctx, board, input.user_id)?;
            if input.operator.is_some() {
                access::choosing_operator(ctx)?;
            }
            let operator = input.operator.unwrap_or(board.operator);
            let (operation, now) = (Operation::unique(), ctx.now());
            let memory = Memory::Operation(&operation);
            let submitted = ctx
                .app()
                .boards
                .submit(board, &user, operator, input.points.0, now, memory)
                .await?;
            shown(ctx, board, submitted).await
        })
        .await
    }
}

fn unknown_board(id: &str) -> SubmitScorePayload {
    let message = format!("there is no board {id:?}");
    SubmitScorePayload::rejected(Rejection {
        code: RejectionCode::UnknownBoard,
        message,
    })
}

async fn shown(
    ctx: &Context<'_>,
    board: &Arc<Board>,
    submitted: Submitted,
) -> Result<SubmitScorePayload, Error> {
    let (changed, periods) = match submitted {
        Submitted::Counted { changed, periods } => (changed, periods),
        Submitted::OutOfRange => {
            let message = format!(
                "points of board {} lie within {} either way",
                board.id, board.max_points
            );
            let rejection = Rejection {
                code: RejectionCode::PointsOutOfRange,
                message,
            };
            return Ok(SubmitScorePayload::rejected(rejection));
        }
    };
    let wanted = ctx.look_ahead().field("standings").field("standing").exists();
    let mut standings = Vec::with_capacity(periods.len());
    for result in periods {
        let standing = match wanted {
            true => Some(
                ctx.app()
                    .boards
                    .complete(board, &result.period, result.standing)
                    .await?,
            ),
            false => None,
        };
        standings.push(PeriodStanding::new(
            board,
            result.period,
            result.previous_points,
            standing,
        ));
    }
    let outcome = if changed {
        ScoreOutcome::Applied
    } else {
        ScoreOutcome::Unchanged
    };
    Ok(SubmitScorePayload {
        outcome,
        standings,
        rejection: None,
    })
}

/// Watching boards. Anybody may, unless `auth.public_reads` is off.
#[derive(Default)]
pub struct BoardSubscription;

#[Subscription]
impl BoardSubscription {
    /// The best of a board: a full state first, then one after each change, at most every `live.interval_ms`.
    async fn leaderboard_changed(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The board's id.")] board: ID,
        #[graphql(desc = "Which span; left out: the board's first period.")] span: Option<BoardSpan>,
        #[graphql(desc = "How many of the best, 0 to 500.", default = 10)] first: i32,
    ) -> async_graphql::Result<impl Stream<Item = async_graphql::Result<LeaderboardUpdate>> + use<>> {
        access::reading_publicly(ctx, ctx.app().settings.auth.public_reads)?;
        let board = self::board(ctx, &board)?;
        let plan = period(ctx, board, span, None)?.plan;
        let app = ctx.data_unchecked::<Arc<crate::app::App>>();
        Ok(Watch::start(app.clone(), board.clone(), plan, first_of(first)?)?.updates())
    }
}
