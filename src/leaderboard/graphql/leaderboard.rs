//! One board over one span, as it is shown.

use std::sync::Arc;

use async_graphql::{Context, ID, Lookahead, Object};
use chrono::{DateTime, Utc};

use super::super::pages::{Begin, Many, Page, Wanted};
use super::super::seen::Seen;
use super::super::standings::Standing;
use super::super::{Board, Span, Version};
use super::first_of;
use super::spans::{BoardPeriod, BoardShown};
use super::standing::{StandingConnection, StandingShown, asks_for_dense, position};
use crate::app::App;
use crate::error::Error;
use crate::graphql::cost;
use crate::graphql::scalars::{Date, SafeInt};
use crate::graphql::shared::shared;
use crate::graphql::{AppContext, access, answer, answer_optional};
use crate::keyspace::Unavailable;

/// How many standings `top` has if nobody says.
const TOP: i32 = 10;

/// How many rows a page of `entries` has if nobody says.
const PAGE: i32 = 50;

/// One board over one span.
#[derive(Clone)]
pub struct Leaderboard {
    board: Arc<Board>,
    span: Arc<Span>,
    epoch: String,
    now: DateTime<Utc>,
    read: usize,
    top: Arc<Page>,
}

impl Leaderboard {
    /// Reads the best `many` with what belongs to them.
    pub async fn read(app: &App, board: Arc<Board>, span: Span, many: usize) -> Result<Leaderboard, Error> {
        let now = app.clock.now();
        let top = app.boards.top(&board, &span, many, now).await?;
        Ok(Leaderboard {
            board,
            span: Arc::new(span),
            epoch: app.keyspace.epoch().into(),
            now,
            read: many,
            top: Arc::new(top),
        })
    }

    /// The board as it was when a user's place was read.
    pub fn around_a_place(
        board: &Arc<Board>,
        span: &Span,
        epoch: &str,
        seen: &Seen,
        now: DateTime<Utc>,
    ) -> Leaderboard {
        Leaderboard {
            board: board.clone(),
            span: Arc::new(span.clone()),
            epoch: epoch.to_owned(),
            now,
            read: 0,
            top: Arc::new(Page {
                version: seen.version.clone(),
                participants: seen.participants,
                ..Page::default()
            }),
        }
    }

    /// The version that was read.
    pub fn version_read(&self) -> &Version {
        &self.top.version
    }

    /// The best `many` of those that were read, with what their DENSE ranks need if `dense`.
    pub async fn best(&self, app: &App, many: usize, dense: bool) -> Result<Vec<StandingShown>, Unavailable> {
        if dense {
            app.boards.count_dense(&self.board, &self.top.standings).await?;
        }
        let shown = |standing: &Standing| StandingShown::new(self.board.clone(), standing.clone());
        Ok(self.top.standings.iter().take(many).map(shown).collect())
    }

    async fn shown(&self, ctx: &Context<'_>, standings: Vec<Standing>) -> Result<Vec<StandingShown>, Error> {
        super::standing::shown(ctx, &self.board, standings).await
    }
}

/// The largest `first` among the `top` fields selected below a board, so that one reading serves them all.
pub fn wanted_of_top(board: Lookahead<'_>) -> usize {
    let first = |field: async_graphql::SelectionField<'_>| {
        let arguments = field.arguments().ok()?;
        let first = arguments.into_iter().find(|(name, _)| name == "first");
        match first {
            Some((_, async_graphql::Value::Number(number))) => {
                first_of(i32::try_from(number.as_i64()?).ok()?).ok()
            }
            Some(_) => None,
            None => first_of(TOP).ok(),
        }
    };
    board
        .field("top")
        .selection_fields()
        .into_iter()
        .filter_map(first)
        .max()
        .unwrap_or(0)
}

/// One board over one span.
#[Object(directive = shared::apply(None))]
impl Leaderboard {
    /// Names the board and the span: `points/2026-W49`, `points/last-7`, `points/heat`.
    async fn id(&self) -> ID {
        ID(format!("{}/{}", self.board.id, self.span.key()))
    }

    /// The board, as configured.
    async fn board(&self) -> BoardShown {
        BoardShown(self.board.clone())
    }

    /// The calendar period; null for windows and heat.
    async fn period(&self) -> Option<BoardPeriod> {
        self.span.period().map(BoardPeriod::from)
    }

    /// Names the span: `2026-11-30`, `2026-W49`, `2026-11`, `all`, `last-7`, `heat`.
    async fn period_key(&self) -> String {
        self.span.key()
    }

    /// When the span began, inclusive; null for ALL_TIME and heat.
    async fn starts_at(&self) -> Option<DateTime<Utc>> {
        self.span.bounds().0
    }

    /// When the span ends, exclusive; null for ALL_TIME and heat.
    async fn ends_at(&self) -> Option<DateTime<Utc>> {
        self.span.bounds().1
    }

    /// Whether the period is over.
    async fn closed(&self) -> bool {
        self.span.is_closed(self.now)
    }

    /// A date of the period before, for `on`; null if there is none or it is no longer kept.
    async fn previous_on(&self, ctx: &Context<'_>) -> Option<Date> {
        let Span::Period(period) = &*self.span else {
            return None;
        };
        ctx.app()
            .boards
            .previous_on(&self.board, period, self.now)
            .map(Date::from)
    }

    /// A date of the period after, for `on`; null if that has not begun.
    async fn next_on(&self, ctx: &Context<'_>) -> Option<Date> {
        let Span::Period(period) = &*self.span else {
            return None;
        };
        ctx.app().boards.next_on(period, self.now).map(Date::from)
    }

    /// How many users stand on the board.
    async fn participants(&self) -> SafeInt {
        self.top.participants.into()
    }

    /// Names the life of the data: versions of different epochs cannot be compared.
    async fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Grows with every change of the board, in whatever span.
    async fn version(&self) -> SafeInt {
        self.top.version.sum().into()
    }

    /// The best of the board, best first.
    #[graphql(complexity = "cost::of_list(first, child_complexity)")]
    async fn top(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "How many, 0 to 500.", default = 10)] first: i32,
    ) -> Option<async_graphql::Result<Vec<StandingShown>>> {
        answer(async {
            let many = first_of(first)?;
            let standings = if many <= self.read {
                self.top.standings.iter().take(many).cloned().collect()
            } else {
                ctx.app()
                    .boards
                    .top(&self.board, &self.span, many, self.now)
                    .await?
                    .standings
            };
            self.shown(ctx, standings).await
        })
        .await
    }

    /// A page of the board, by the Relay cursor connections specification. A walk by `after` (or `before`) shows nobody
    /// twice whose score stays, and leaves none of them out, whatever moves meanwhile.
    #[allow(clippy::too_many_arguments)] // they are the connection's
    #[graphql(complexity = "cost::of_page(first, last, PAGE, child_complexity)")]
    async fn entries(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The first so many, 0 to 500; 50 if neither this nor `last` is given.")]
        first: Option<i32>,
        #[graphql(desc = "Only behind this cursor of an earlier answer.")] after: Option<String>,
        #[graphql(desc = "The last so many, 0 to 500; not together with `first`.")] last: Option<i32>,
        #[graphql(desc = "Only before this cursor of an earlier answer.")] before: Option<String>,
        #[graphql(desc = "Only who has so many points at least; left out: no such bound.")]
        min_points: Option<SafeInt>,
        #[graphql(desc = "Only who has so many points at most; left out: no such bound.")] max_points: Option<
            SafeInt,
        >,
    ) -> Option<async_graphql::Result<StandingConnection>> {
        answer(async {
            let many = match (first, last) {
                (Some(_), Some(_)) => return Err(Error::BadUserInput("give either first or last".into())),
                (None, Some(last)) => Many::Last(first_of(last)?),
                (first, None) => Many::First(first_of(first.unwrap_or(PAGE))?),
            };
            let begin = match after {
                Some(cursor) => Begin::After(position(&cursor)?),
                None => Begin::Start,
            };
            let before = before.map(|cursor| position(&cursor)).transpose()?;
            let (least, most) = (
                min_points.map(|points| points.get()).transpose()?,
                max_points.map(|points| points.get()).transpose()?,
            );
            let wanted = Wanted {
                many,
                begin,
                before,
                least,
                most,
            };
            let page = ctx
                .app()
                .boards
                .page(&self.board, &self.span, &wanted, self.now)
                .await?;
            if asks_for_dense(ctx, &self.board) {
                ctx.app().boards.count_dense(&self.board, &page.standings).await?;
            }
            Ok(StandingConnection::new(&self.board, page))
        })
        .await
    }

    /// A user with up to `radius` neighbours above and below; empty if the user is not there.
    #[graphql(
        directive = shared::apply(Some("userId".into())),
        complexity = "cost::of_list(radius.saturating_mul(2).saturating_add(1), child_complexity)"
    )]
    async fn around(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Who; left out: the viewer.")] user_id: Option<ID>,
        #[graphql(desc = "How many neighbours on each side, 0 to 100.", default = 5)] radius: i32,
    ) -> Option<async_graphql::Result<Vec<StandingShown>>> {
        answer(async {
            let user = access::named(ctx, user_id)?;
            let radius = match usize::try_from(radius) {
                Ok(fits) if fits <= 100 => fits,
                _ => {
                    return Err(Error::BadUserInput(format!(
                        "radius is {radius}; it must lie from 0 to 100"
                    )));
                }
            };
            let around = ctx
                .app()
                .boards
                .around(&self.board, &self.span, &user, radius, self.now)
                .await?;
            self.shown(ctx, around).await
        })
        .await
    }

    /// Where a user stands; null if not there.
    #[graphql(directive = shared::apply(Some("userId".into())))]
    async fn standing(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Who; left out: the viewer.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<StandingShown>> {
        answer_optional(async {
            let user = access::named(ctx, user_id)?;
            let standing = ctx
                .app()
                .boards
                .standing(&self.board, &self.span, &user, self.now)
                .await?;
            Ok(self.shown(ctx, standing.into_iter().collect()).await?.pop())
        })
        .await
    }
}
