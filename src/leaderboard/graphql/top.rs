//! What a subscriber of a board gets: its best, again whenever the board has changed.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::{Context, SimpleObject};
use tokio::sync::watch;

use super::super::heat::COOLING;
use super::super::moves::{self, Move};
use super::super::{Board, Span, Version};
use super::leaderboard::{Leaderboard, wanted_of_top};
use super::standing::{StandingShown, asks_for_dense};
use crate::app::App;
use crate::error::Error;
use crate::graphql::scalars::SafeInt;
use crate::graphql::shared::shared;
use crate::live::{Followed, Listener, Pulse, Step, UpdateCause};
use crate::user::graphql::User;

/// A board's best after a change.
#[derive(SimpleObject)]
#[graphql(directive = shared::apply(None))]
pub struct LeaderboardUpdate {
    /// Why it was sent.
    cause: UpdateCause,
    /// The board: identity, participants, epoch, version, and whatever is selected of it.
    leaderboard: Leaderboard,
    /// The best, as many as were subscribed for.
    top: Vec<StandingShown>,
    /// `moves` lead from the top of this version to this one; null in a full state.
    since_version: Option<SafeInt>,
    /// Who came, changed place or left the top since that version; empty in a full state.
    moves: Vec<RankMove>,
}

/// A user's move between two versions, in ORDINAL places.
#[derive(Debug, SimpleObject)]
#[graphql(directive = shared::apply(None))]
pub struct RankMove {
    /// Who has moved.
    user: User,
    /// The place before, from 1; null: outside the top.
    from: Option<SafeInt>,
    /// The place after, from 1; null: outside the top.
    to: Option<SafeInt>,
}

impl From<Move> for RankMove {
    fn from(step: Move) -> RankMove {
        RankMove {
            user: User::from(&step.user),
            from: step.from.map(SafeInt::from),
            to: step.to.map(SafeInt::from),
        }
    }
}

/// Follows the best of a board.
pub struct Top {
    app: Arc<App>,
    board: Arc<Board>,
    span: Span,
    /// How many of the best are shown, and how many are read for what else is selected.
    first: usize,
    read: usize,
    dense: bool,
    listener: Listener,
}

/// The best of a board as of one reading.
pub struct BestNow {
    stored: String,
    version: Version,
    leaderboard: Leaderboard,
    top: Vec<StandingShown>,
}

impl Top {
    /// The best `first` of `board` over `span` as time moves it, with what the subscription selects.
    pub fn new(ctx: &Context<'_>, board: &Arc<Board>, span: Span, first: usize) -> Result<Top, Error> {
        let app = ctx.data_unchecked::<Arc<App>>();
        Ok(Top {
            app: app.clone(),
            listener: super::listener_of(app, board)?,
            board: board.clone(),
            span,
            first,
            read: first.max(wanted_of_top(ctx.look_ahead().field("leaderboard"))),
            dense: asks_for_dense(ctx, board),
        })
    }
}

impl Followed for Top {
    type State = BestNow;
    type Update = LeaderboardUpdate;

    fn pulses(&self) -> watch::Receiver<Pulse> {
        self.listener.pulses()
    }

    fn drifts(&self) -> Option<Duration> {
        matches!(self.span, Span::Heat(_)).then_some(COOLING)
    }

    async fn read(&self, _before: Option<(&BestNow, u64)>, pulse: &Pulse) -> Result<BestNow, Error> {
        let span = super::span_now(&self.app, &self.board, &self.span)?;
        let stored = span.stored();
        let leaderboard = Leaderboard::read(&self.app, self.board.clone(), span, self.read).await?;
        let top = leaderboard.best(&self.app, self.first, self.dense).await?;
        let version = leaderboard.version_read().clone();
        self.listener.saw(&version, pulse);
        Ok(BestNow {
            stored,
            version,
            leaderboard,
            top,
        })
    }

    fn step(&self, before: &BestNow, now: &BestNow) -> Step {
        let cools = self.drifts().is_some() && !now.top.is_empty();
        if now.version.is_behind(&before.version) {
            Step::Back
        } else if now.stored != before.stored {
            Step::Anew(UpdateCause::PeriodStarted)
        } else if now.version != before.version || cools {
            Step::Changed
        } else {
            Step::Same
        }
    }

    fn update(&self, cause: UpdateCause, before: Option<&BestNow>, now: &BestNow) -> LeaderboardUpdate {
        fn users(state: &BestNow) -> impl Iterator<Item = &crate::ids::UserId> {
            state.top.iter().map(StandingShown::user_id)
        }
        let moved = before.map(|before| moves::between(users(before), users(now)));
        LeaderboardUpdate {
            cause,
            leaderboard: now.leaderboard.clone(),
            top: now.top.clone(),
            since_version: before.map(|before| before.version.sum().into()),
            moves: moved.unwrap_or_default().into_iter().map(Into::into).collect(),
        }
    }
}
