//! What a subscriber of a board gets: the state, again whenever it has changed.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::{Enum, SimpleObject};
use futures::{Stream, stream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::{Board, Span};
use super::leaderboard::Leaderboard;
use super::standing::StandingShown;
use crate::app::App;
use crate::error::Error;
use crate::graphql::scalars::SafeInt;
use crate::user::graphql::User;

/// How often the clock is asked whether the period has turned.
const TURN_CHECK: Duration = Duration::from_millis(250);

/// How often heat is shown anew while nothing else changes.
const COOLING: Duration = Duration::from_secs(1);

/// How long to wait before reading again what Redis did not answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// Why an update was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum UpdateCause {
    /// The first, full state.
    Snapshot,
    /// The board has changed.
    Changed,
    /// A new period has begun; the state is full.
    PeriodStarted,
}

/// A board's best after a change.
#[derive(SimpleObject)]
pub struct LeaderboardUpdate {
    /// Why it was sent.
    cause: UpdateCause,
    /// The board: identity, participants, epoch, version, and whatever is selected of it.
    leaderboard: Leaderboard,
    /// The best, as many as were subscribed for.
    top: Vec<StandingShown>,
    /// `moves` lead from this version; null in a full state.
    since_version: Option<SafeInt>,
    /// Who changed place since that version; empty in a full state.
    moves: Vec<RankMove>,
}

/// A user's move between two versions, in ORDINAL places.
#[derive(Debug, SimpleObject)]
pub struct RankMove {
    /// Who.
    user: User,
    /// The place before; null: outside the top.
    from: Option<SafeInt>,
    /// The place after; null: outside the top.
    to: Option<SafeInt>,
}

/// One subscription's memory of what it has sent.
pub struct Watch {
    app: Arc<App>,
    board: Arc<Board>,
    span: Span,
    first: usize,
    dense: bool,
    changes: watch::Receiver<u64>,
    sent: Option<Sent>,
}

struct Sent {
    stored: String,
    version: u64,
    /// Heat changes by itself, so it is shown anew from time to time.
    cools: bool,
    at: Instant,
}

impl Sent {
    fn cooled_down(&self) -> bool {
        self.cools && self.at.elapsed() >= COOLING
    }
}

impl Watch {
    /// Begins to watch the best `first` of `board`, DENSE ranks counted if `dense`, over `span` as time moves it.
    pub fn start(
        app: Arc<App>,
        board: Arc<Board>,
        span: Span,
        first: usize,
        dense: bool,
    ) -> Result<Watch, Error> {
        let changes = app.changes.of_board(&board.id);
        let changes =
            changes.ok_or_else(|| Error::Internal(format!("nobody listens for board {}", board.id)))?;
        Ok(Watch {
            app,
            board,
            span,
            first,
            dense,
            changes,
            sent: None,
        })
    }

    /// The updates, until the server stops.
    pub fn updates(self) -> impl Stream<Item = async_graphql::Result<LeaderboardUpdate>> + use<> {
        stream::unfold(self, |mut watch| async move {
            watch.next().await.map(|update| (Ok(update), watch))
        })
    }

    async fn next(&mut self) -> Option<LeaderboardUpdate> {
        loop {
            let span = self.wait().await?;
            match self.look(&span).await {
                Ok(Some(update)) => return Some(update),
                Ok(None) => {}
                Err(error) => {
                    // The subscriber keeps waiting and gets the true state once Redis answers again.
                    tracing::debug!(?error, board = %self.board.id, "cannot read a watched board; trying on");
                    self.changes.mark_changed();
                    sleep(PATIENCE).await;
                }
            }
        }
    }

    /// Reads the board; an update if there is anything to tell.
    async fn look(&mut self, span: &Span) -> Result<Option<LeaderboardUpdate>, Error> {
        let leaderboard = Leaderboard::read(&self.app, self.board.clone(), span.clone(), self.first).await?;
        let Some(cause) = self.cause(span, leaderboard.counted()) else {
            return Ok(None);
        };
        let top = leaderboard.best(&self.app, self.dense).await?;
        let (version, cools) = (leaderboard.counted(), matches!(span, Span::Heat(_)));
        self.sent = Some(Sent {
            stored: span.stored(),
            version,
            cools,
            at: Instant::now(),
        });
        Ok(Some(LeaderboardUpdate {
            cause,
            leaderboard,
            top,
            since_version: None,
            moves: Vec::new(),
        }))
    }

    /// Waits until there may be something to send; answers with the span as it is now.
    async fn wait(&mut self) -> Option<Span> {
        if let Some(sent) = &self.sent {
            sleep_until(sent.at + Duration::from_millis(self.app.settings.live.interval_ms)).await;
        }
        loop {
            let span = self
                .app
                .boards
                .as_of(&self.board, &self.span, self.app.clock.now())
                .ok()?;
            let due = self
                .sent
                .as_ref()
                .is_none_or(|sent| sent.stored != span.stored() || sent.cooled_down());
            if due || self.changes.has_changed().ok()? {
                self.changes.mark_unchanged();
                return Some(span);
            }
            tokio::select! {
                changed = self.changes.changed() => {
                    changed.ok()?;
                    self.changes.mark_changed();
                }
                () = sleep(TURN_CHECK) => {}
            }
        }
    }

    fn cause(&self, span: &Span, version: u64) -> Option<UpdateCause> {
        match &self.sent {
            None => Some(UpdateCause::Snapshot),
            Some(sent) if sent.stored != span.stored() => Some(UpdateCause::PeriodStarted),
            Some(sent) if sent.version == version && !sent.cooled_down() => None,
            Some(_) => Some(UpdateCause::Changed),
        }
    }
}
