//! What a follower of one user's rank gets: where the user stands, who stands right before, and who went past.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::dataloader::DataLoader;
use async_graphql::{Context, SimpleObject};
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::heat::COOLING;
use super::super::ranking::Member;
use super::super::seen::{PlaceLoader, Seen, Wanted};
use super::super::standings::Standing;
use super::super::{Board, BoardOrder, Span};
use super::leaderboard::Leaderboard;
use super::standing::{StandingShown, asks_for_dense};
use crate::app::App;
use crate::error::Error;
use crate::graphql::scalars::{SafeInt, int};
use crate::graphql::shared::shared;
use crate::ids::UserId;
use crate::live::listener::AfterMoves;
use crate::live::{Followed, Listener, Pulse, Step, UpdateCause};

/// How many of those who went past are shown.
const SHOWN: usize = 3;

/// How often a place is read until it holds still; what is wrong with the last is put right by the next pulse.
const TRIES: usize = 3;

/// Where a user stands after a change.
#[derive(SimpleObject)]
#[graphql(directive = shared::apply(None))]
pub struct RankUpdate {
    /// Why it was sent.
    cause: UpdateCause,
    /// The board: identity, participants, epoch, version, and whatever is selected of it.
    leaderboard: Leaderboard,
    /// Where the user stands; null if not there.
    standing: Option<StandingShown>,
    /// The rank before, by the board's own method; null in a full state, or if the user was not there.
    previous_rank: Option<SafeInt>,
    /// Who stands right before the user; null at the top, or if the user is not there.
    above: Option<StandingShown>,
    /// How many points the user lacks to stand level with `above`.
    points_to_above: Option<SafeInt>,
    /// Up to 3 that went past since the update before, the best first; empty in a full state.
    overtaken_by: Vec<StandingShown>,
    /// How many went past since the update before; 0 in a full state.
    overtaken_count: i32,
}

/// Follows the rank of a user.
pub struct Rank {
    app: Arc<App>,
    places: Arc<DataLoader<PlaceLoader>>,
    board: Arc<Board>,
    span: Span,
    user: UserId,
    dense: bool,
    listener: Listener,
    _moves: Option<AfterMoves>,
}

/// A user's place as of one reading.
pub struct RankNow {
    stored: String,
    seen: Seen,
    rank: Option<u64>,
    above: Option<Standing>,
    overtaken_by: Vec<Standing>,
    overtaken_count: usize,
    /// Whether the name or picture of somebody shown has changed since the state before.
    looks_different: bool,
    /// When the reading began, if this is the first state or the first after a gap: what was heard before that and is
    /// told only later is in it. (A score of just then, heard a moment after, may be in it and still be told.)
    anew: Option<Instant>,
    span: Span,
    epoch: String,
    at: chrono::DateTime<chrono::Utc>,
}

impl Rank {
    /// The rank of `user` on `board` over `span` as time moves it.
    pub fn new(ctx: &Context<'_>, board: &Arc<Board>, span: Span, user: UserId) -> Result<Rank, Error> {
        let app = ctx.data_unchecked::<Arc<App>>();
        Ok(Rank {
            app: app.clone(),
            places: ctx.data_unchecked::<Arc<DataLoader<PlaceLoader>>>().clone(),
            listener: super::listener_of(app, board)?,
            _moves: app.changes.tell_moves(&board.id),
            board: board.clone(),
            span,
            user,
            dense: asks_for_dense(ctx, board),
        })
    }

    /// Where users stand now; those who do not are left out.
    async fn standings(&self, span: &Arc<Span>, users: Vec<UserId>) -> Result<Vec<Standing>, Error> {
        let wanted = users.iter().map(|user| self.wanted(span, user.clone()));
        let mut seen = self.places.load_many(wanted).await?;
        let places = users
            .into_iter()
            .filter_map(|user| seen.remove(&self.wanted(span, user))?.standing);
        let places: Vec<Standing> = places.collect();
        if self.dense {
            for place in &places {
                self.app
                    .boards
                    .count_dense(&self.board, std::slice::from_ref(place))
                    .await?;
            }
        }
        Ok(places)
    }

    /// The user's place, and where whoever is right before stands. Those are two readings: if the second finds something else
    /// than the first, both are made again.
    async fn place(&self, span: &Arc<Span>) -> Result<(Seen, Option<Standing>), Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let seen = self.places.load_one(self.wanted(span, self.user.clone())).await?;
            let seen =
                seen.ok_or_else(|| Error::Internal("a place was asked for and not answered".into()))?;
            let before = seen.above.iter().map(|above| above.user.clone()).collect();
            let above = self.standings(span, before).await?.pop();
            let fits = above.as_ref().map(|above| above.key) == seen.above.as_ref().map(|above| above.key);
            if fits || tries == TRIES {
                return Ok((seen, above));
            }
        }
    }

    fn wanted(&self, span: &Arc<Span>, user: UserId) -> Wanted {
        Wanted {
            board: self.board.clone(),
            span: span.clone(),
            user,
        }
    }

    /// Those who moved past the user: behind it as of `before`, before it now, the best first; `None` if that is not known.
    /// (Who stood still while the user fell has not gone past.)
    fn overtakers(
        &self,
        before: (&RankNow, u64),
        now: &Seen,
        stored: &str,
        pulse: &Pulse,
    ) -> Option<Vec<UserId>> {
        let (before, number) = before;
        let moved = pulse.moved_since(number, stored, before.anew)?;
        let (Some(was), Some(is)) = (before.seen.member(), now.member()) else {
            return Some(Vec::new());
        };
        if before.stored != stored {
            return Some(Vec::new());
        }
        let at = |key, user: &UserId| Member {
            key,
            user: user.clone(),
        };
        let mut past: Vec<Member> = moved
            .into_iter()
            .filter(|(user, from, _)| **user != self.user && from.is_none_or(|from| at(from, user) > was))
            .map(|(user, _, to)| at(to, user))
            .filter(|past| *past < is)
            .collect();
        past.sort();
        Some(past.into_iter().map(|past| past.user).collect())
    }

    fn shown(&self, standing: &Standing) -> StandingShown {
        StandingShown::new(self.board.clone(), standing.clone())
    }
}

impl Seen {
    fn member(&self) -> Option<Member> {
        self.standing.as_ref().map(|standing| Member {
            key: standing.key,
            user: standing.user.clone(),
        })
    }

    /// Whether somebody who follows the rank would see no difference.
    fn shows_the_same(&self, other: &Seen) -> bool {
        let place = |seen: &Seen| {
            let standing = seen.standing.as_ref()?;
            Some((standing.key, standing.points, standing.ahead))
        };
        place(self) == place(other) && self.above == other.above
    }
}

impl Followed for Rank {
    type State = RankNow;
    type Update = RankUpdate;

    fn pulses(&self) -> watch::Receiver<Pulse> {
        self.listener.pulses()
    }

    fn drifts(&self) -> Option<Duration> {
        matches!(self.span, Span::Heat(_)).then_some(COOLING)
    }

    async fn read(&self, before: Option<(&RankNow, u64)>, pulse: &Pulse) -> Result<RankNow, Error> {
        let span = Arc::new(super::span_now(&self.app, &self.board, &self.span)?);
        let stored = span.stored();
        let begun = Instant::now();
        let (seen, above) = self.place(&span).await?;
        self.listener.saw(&seen.version, pulse);
        let past = before.and_then(|before| self.overtakers(before, &seen, &stored, pulse));
        let anew = past.is_none().then_some(begun);
        let past = past.unwrap_or_default();
        let seen_users: Vec<&UserId> = std::iter::once(&self.user)
            .chain(above.as_ref().map(|above| &above.user))
            .collect();
        let looks_different = before.is_some_and(|(_, number)| pulse.looks_different(number, &seen_users));
        let shown = past.iter().take(SHOWN).cloned().collect();
        let rank = match &seen.standing {
            Some(standing) => Some(
                self.app
                    .boards
                    .rank(&self.board, standing, self.board.rank_method)
                    .await?,
            ),
            None => None,
        };
        if let Some(standing) = seen.standing.as_ref().filter(|_| self.dense) {
            self.app
                .boards
                .count_dense(&self.board, std::slice::from_ref(standing))
                .await?;
        }
        Ok(RankNow {
            overtaken_by: self.standings(&span, shown).await?,
            above,
            overtaken_count: past.len(),
            looks_different,
            anew,
            stored,
            rank,
            seen,
            span: Arc::unwrap_or_clone(span),
            epoch: self.app.keyspace.epoch().to_owned(),
            at: self.app.clock.now(),
        })
    }

    fn step(&self, before: &RankNow, now: &RankNow) -> Step {
        // Heat cools: whoever stands right before may have other points under the same key.
        let points = |state: &RankNow| state.above.as_ref().map(|above| above.points);
        if now.seen.version.is_behind(&before.seen.version) {
            Step::Back
        } else if now.stored != before.stored {
            Step::Anew(UpdateCause::PeriodStarted)
        } else if now.overtaken_count == 0
            && !now.looks_different
            && now.rank == before.rank
            && now.seen.shows_the_same(&before.seen)
            && points(now) == points(before)
        {
            Step::Same
        } else {
            Step::Changed
        }
    }

    fn update(&self, cause: UpdateCause, before: Option<&RankNow>, now: &RankNow) -> RankUpdate {
        let standing = now.seen.standing.as_ref();
        let (overtaken_by, overtaken_count) = match before {
            Some(_) => (&now.overtaken_by[..], now.overtaken_count),
            None => (&[][..], 0),
        };
        RankUpdate {
            cause,
            leaderboard: Leaderboard::around_a_place(&self.board, &now.span, &now.epoch, &now.seen, now.at),
            standing: standing.map(|standing| self.shown(standing)),
            previous_rank: before.and_then(|before| before.rank).map(SafeInt::from),
            above: now.above.as_ref().map(|above| self.shown(above)),
            points_to_above: standing.zip(now.above.as_ref()).map(|(own, above)| {
                let lacking = match self.board.order {
                    BoardOrder::HighestFirst => above.points - own.points,
                    BoardOrder::LowestFirst => own.points - above.points,
                };
                SafeInt::from(lacking.max(0))
            }),
            overtaken_by: overtaken_by.iter().map(|past| self.shown(past)).collect(),
            overtaken_count: int(u32::try_from(overtaken_count).unwrap_or(u32::MAX)),
        }
    }
}
