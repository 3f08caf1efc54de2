//! The face of boards: the fields of the roots.
//!
//! [`spans`], [`leaderboard`], [`standing`] and [`scores`] are the shapes, [`top`] and [`rank`] what subscribers get.

mod leaderboard;
mod rank;
mod scores;
mod spans;
mod standing;
mod top;

use std::sync::Arc;

use async_graphql::{Context, ID, Object, SimpleObject, Subscription};
use futures::Stream;
use futures::future::join_all;

use super::{Board, NoSuchSpan, Span};
use crate::app::App;
use crate::error::Error;
use crate::graphql::cost;
use crate::graphql::rules::{Askers, allowed};
use crate::graphql::scalars::Date;
use crate::graphql::shared::shared;
use crate::graphql::{AppContext, access, answer, answer_optional};
use crate::ids::UserId;
use crate::keyspace::{Memory, Operation};
use crate::live::{Listener, follow};
use leaderboard::{Leaderboard, wanted_of_top};
use rank::{Rank, RankUpdate};
use scores::{Places, RejectionCode, SubmitScoreInput, SubmitScorePayload};
use spans::{BoardShown, BoardSpan};
use standing::StandingShown;
use top::{LeaderboardUpdate, Top};

/// The most standings that one field answers with.
const MAX_FIRST: i32 = 500;

/// The most scores that one `submitScores` takes.
const MAX_SCORES: usize = 500;

fn board<'a>(ctx: &Context<'a>, id: &str) -> Result<&'a Arc<Board>, Error> {
    let app = ctx.data_unchecked::<Arc<App>>();
    app.boards
        .boards()
        .get(id)
        .ok_or_else(|| Error::NotFound(format!("there is no board {id:?}")))
}

fn first_of(first: i32) -> Result<usize, Error> {
    match usize::try_from(first) {
        Ok(many) if first <= MAX_FIRST => Ok(many),
        _ => Err(Error::BadUserInput(format!(
            "a page has 0 to {MAX_FIRST} rows, and {first} were asked for"
        ))),
    }
}

/// The span that `span` and `on` name; without `span` the board's first period.
fn span(ctx: &Context<'_>, board: &Board, span: Option<BoardSpan>, on: Option<Date>) -> Result<Span, Error> {
    let (app, now) = (ctx.app(), ctx.now());
    let today = app.zone.date_of(now);
    let on = on.map(|on| on.get()).transpose()?;
    if let Some(date) = on.filter(|date| *date > today) {
        return Err(Error::BadUserInput(format!(
            "on ({date}) lies in the future: today is {today}"
        )));
    }
    let span = match (span, on) {
        (Some(BoardSpan::LastDays(_) | BoardSpan::Heat(_)), Some(_)) => {
            return Err(Error::BadUserInput("on goes with calendar periods only".into()));
        }
        (Some(BoardSpan::Heat(false)), None) => {
            return Err(Error::BadUserInput("heat is true or left out".into()));
        }
        (Some(BoardSpan::Heat(true)), None) => app.boards.heat(board),
        (Some(BoardSpan::LastDays(days)), None) => app.boards.window(board, days.into(), now),
        (Some(BoardSpan::Period(period)), on) => {
            app.boards.period(board, period.into(), on.unwrap_or(today), now)
        }
        (None, on) => {
            let first = board.plans.first().map(|plan| plan.period);
            let first = first.ok_or_else(|| Error::Internal(format!("board {} has no period", board.id)))?;
            app.boards.period(board, first, on.unwrap_or(today), now)
        }
    };
    span.map_err(|none| match none {
        NoSuchSpan::NotKept(..) => Error::BadUserInput(none.to_string()),
        NoSuchSpan::Gone(..) => Error::NotFound(none.to_string()),
    })
}

/// The ear of a follower of a board.
fn listener_of(app: &App, board: &Board) -> Result<Listener, Error> {
    let listener = app.changes.of_board(&board.id);
    listener.ok_or_else(|| Error::Internal(format!("nobody listens for board {}", board.id)))
}

/// A followed span as it is now.
fn span_now(app: &App, board: &Board, span: &Span) -> Result<Span, Error> {
    let now = app.boards.as_of(board, span, app.clock.now());
    now.map_err(|none| Error::Internal(format!("a span that was there before: {none}")))
}

/// Reading boards. Anybody may, unless `auth.public_reads` is off.
#[derive(Default)]
pub struct BoardQuery;

#[Object]
impl BoardQuery {
    /// All boards, in the configured order. For anybody.
    #[graphql(directive = allowed::apply(Askers::Anybody))]
    async fn boards(&self, ctx: &Context<'_>) -> Vec<BoardShown> {
        ctx.app()
            .boards
            .boards()
            .iter()
            .cloned()
            .map(BoardShown)
            .collect()
    }

    /// One board over one span. For anybody, unless `auth.public_reads` is off.
    #[graphql(directive = allowed::apply(Askers::Readers))]
    async fn leaderboard(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The id of the board.")] board: ID,
        #[graphql(desc = "Which span; left out: the board's first period.")] span: Option<BoardSpan>,
        #[graphql(
            desc = "A date of the wanted period, today or before; left out: today. Not with `lastDays` or `heat`."
        )]
        on: Option<Date>,
    ) -> Option<async_graphql::Result<Leaderboard>> {
        answer(async {
            access::allowed(ctx)?;
            let board = self::board(ctx, &board)?;
            let span = self::span(ctx, board, span, on)?;
            Leaderboard::read(ctx.app(), board.clone(), span, wanted_of_top(ctx.look_ahead())).await
        })
        .await
    }

    /// Where a user stands on a board; null if not there. For anybody, unless `auth.public_reads` is off.
    #[graphql(directive = allowed::apply(Askers::Readers))]
    async fn rank(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The id of the board.")] board: ID,
        #[graphql(desc = "Who; left out: the viewer.")] user_id: Option<ID>,
        #[graphql(desc = "Which span; left out: the board's first period.")] span: Option<BoardSpan>,
        #[graphql(
            desc = "A date of the wanted period, today or before; left out: today. Not with `lastDays` or `heat`."
        )]
        on: Option<Date>,
    ) -> Option<async_graphql::Result<StandingShown>> {
        answer_optional(async {
            access::allowed(ctx)?;
            let user = access::named(ctx, user_id)?;
            let board = self::board(ctx, &board)?;
            let span = self::span(ctx, board, span, on)?;
            let standing = ctx.app().boards.standing(board, &span, &user, ctx.now()).await?;
            let shown = standing::shown(ctx, board, standing.into_iter().collect()).await?;
            Ok(shown.into_iter().next())
        })
        .await
    }
}

/// The answer to `removeFromBoard`.
#[derive(Debug, SimpleObject)]
pub struct RemovePayload {
    /// Whether the user was there.
    removed: bool,
}

/// Scoring.
#[derive(Default)]
pub struct BoardMutation;

#[Object]
impl BoardMutation {
    /// Score for a user: all spans of the board change together or not at all. For SERVICE, and for users on boards
    /// that take their own scores.
    #[graphql(directive = allowed::apply(Askers::Scorers))]
    async fn submit_score(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The score, and whose it is.")] input: SubmitScoreInput,
    ) -> Option<async_graphql::Result<SubmitScorePayload>> {
        answer(async {
            let Ok(board) = self::board(ctx, &input.board) else {
                access::acting_for(ctx, input.user_id)?;
                return Ok(unknown_board(&input.board));
            };
            let (score, operation) = input.score(ctx)?;
            let submitted = ctx.app().boards.submit(&score, ctx.now(), &operation).await?;
            let places = Places::wanted(ctx, board);
            Ok(SubmitScorePayload::shown(ctx.app(), board, submitted, places).await?)
        })
        .await
    }

    /// Up to 500 scores in one go, applied in their order; each has an outcome of its own, failures included. For
    /// SERVICE, and for users on boards that take their own scores.
    #[graphql(directive = allowed::apply(Askers::Scorers))]
    async fn submit_scores(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The scores, at most 500.")] inputs: Vec<SubmitScoreInput>,
    ) -> Option<async_graphql::Result<Vec<SubmitScorePayload>>> {
        answer(async {
            access::allowed(ctx)?;
            if inputs.len() > MAX_SCORES {
                let many = inputs.len();
                return Err(Error::BadUserInput(format!(
                    "at most {MAX_SCORES} scores at once, these are {many}"
                )));
            }
            let (scores, refused): (Vec<_>, Vec<_>) = inputs
                .into_iter()
                .map(|input| input.score(ctx))
                .enumerate()
                .partition(|(_, score)| score.is_ok());
            let (places, scores): (Vec<usize>, Vec<_>) = scores
                .into_iter()
                .filter_map(|(place, score)| score.ok().map(|score| (place, score)))
                .unzip();
            let submitted = ctx.app().boards.submit_many(&scores, ctx.now()).await;
            let shown = scores
                .iter()
                .zip(submitted)
                .map(|((score, _), submitted)| async move {
                    let board = self::board(ctx, score.board.id.as_str())?;
                    let places = Places::wanted(ctx, board);
                    Ok(SubmitScorePayload::shown(ctx.app(), board, submitted?, places).await?)
                });
            let shown = join_all(shown)
                .await
                .into_iter()
                .map(|shown| shown.unwrap_or_else(SubmitScorePayload::failed));
            let refused = refused
                .into_iter()
                .filter_map(|(place, score)| Some((place, SubmitScorePayload::failed(score.err()?))));
            let mut all: Vec<(usize, SubmitScorePayload)> =
                places.into_iter().zip(shown).chain(refused).collect();
            all.sort_by_key(|(place, _)| *place);
            Ok(all.into_iter().map(|(_, payload)| payload).collect())
        })
        .await
    }

    /// Take a user off every open span of a board, and off the closed days that its windows still hold; other closed
    /// periods stay as they are. For SERVICE.
    #[graphql(directive = allowed::apply(Askers::Backends))]
    async fn remove_from_board(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The id of the board.")] board: ID,
        #[graphql(desc = "Who is taken off.")] user_id: ID,
    ) -> Option<async_graphql::Result<RemovePayload>> {
        answer(async {
            access::allowed(ctx)?;
            let user = UserId::parse(&user_id)?;
            let (board, now) = (self::board(ctx, &board)?, ctx.now());
            let operation = Operation::unique(now);
            let removed = ctx
                .app()
                .boards
                .remove(board, &user, now, Memory::Operation(&operation))
                .await?;
            Ok(RemovePayload { removed })
        })
        .await
    }
}

fn unknown_board(id: &str) -> SubmitScorePayload {
    SubmitScorePayload::rejected(RejectionCode::UnknownBoard, format!("there is no board {id:?}"))
}

/// Watching boards. Anybody may, unless `auth.public_reads` is off.
#[derive(Default)]
pub struct BoardSubscription;

#[Subscription]
impl BoardSubscription {
    /// The best of a board: a full state first, then one after each change, at most every `live.interval_ms`. For
    /// anybody, unless `auth.public_reads` is off.
    #[graphql(directive = allowed::apply(Askers::Readers), directive = shared::apply(None), complexity = "cost::of_list(first, child_complexity)")]
    async fn leaderboard_changed(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The id of the board.")] board: ID,
        #[graphql(desc = "Which span; left out: the board's first period.")] span: Option<BoardSpan>,
        #[graphql(desc = "How many of the best, 0 to 500.", default = 10)] first: i32,
    ) -> async_graphql::Result<impl Stream<Item = LeaderboardUpdate> + use<>> {
        access::allowed(ctx)?;
        let board = self::board(ctx, &board)?;
        let span = self::span(ctx, board, span, None)?;
        Ok(follow(ctx, Top::new(ctx, board, span, first_of(first)?)?))
    }

    /// Where a user stands: a full state first, then one whenever the user's place or points, or whoever stands right
    /// before, has changed, at most every `live.interval_ms`. For anybody, unless `auth.public_reads` is off.
    #[graphql(directive = allowed::apply(Askers::Readers), directive = shared::apply(Some("userId".into())))]
    async fn rank_changed(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The id of the board.")] board: ID,
        #[graphql(desc = "Who; left out: the viewer.")] user_id: Option<ID>,
        #[graphql(desc = "Which span; left out: the board's first period.")] span: Option<BoardSpan>,
    ) -> async_graphql::Result<impl Stream<Item = RankUpdate> + use<>> {
        access::allowed(ctx)?;
        let user = access::named(ctx, user_id)?;
        let board = self::board(ctx, &board)?;
        let span = self::span(ctx, board, span, None)?;
        Ok(follow(ctx, Rank::new(ctx, board, span, user)?))
    }
}
