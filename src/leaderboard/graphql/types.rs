//! The shapes in which boards are shown.

use std::sync::Arc;

use async_graphql::{ComplexObject, Context, Enum, ID, InputObject, Object, OneofObject, SimpleObject};
use chrono::{DateTime, Utc};

use super::super::standings::{Standing, Top};
use super::super::{Board, BoardOrder, OpenPeriod, RankMethod, ScoreOperator, TieBreak, ranking};
use super::first_of;
use crate::app::App;
use crate::error::Error;
use crate::graphql::identity::User;
use crate::graphql::scalars::SafeInt;
use crate::graphql::{AppContext, access, answer, answer_optional};

/// How many standings `top` has if nobody says.
const DEFAULT_FIRST: i32 = 10;

/// A calendar period of a board, by the business time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[graphql(remote = "crate::day::Period")]
pub enum BoardPeriod {
    /// One business day.
    Day,
    /// One ISO week, from Monday.
    Week,
    /// One calendar month.
    Month,
    /// From the beginning, for ever.
    AllTime,
}

/// What a board is asked over: exactly one of these.
#[derive(Debug, Clone, OneofObject)]
pub enum BoardSpan {
    /// A calendar period.
    Period(BoardPeriod),
    /// The last so many days, today included.
    LastDays(i32),
    /// What is hot now.
    Heat(bool),
}

/// A board, as configured.
pub struct BoardShown(pub Arc<Board>);

/// A board, as configured.
#[Object(name = "Board")]
impl BoardShown {
    /// Names the board; never changes.
    async fn id(&self) -> ID {
        ID(self.0.id.to_string())
    }

    /// What people read.
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

    /// The rolling windows that the board keeps, in days.
    async fn windows(&self) -> Vec<i32> {
        Vec::new() // boards with windows are refused at start
    }

    /// Points lie within this, both ways.
    async fn max_points(&self) -> SafeInt {
        SafeInt(self.0.max_points)
    }
}

/// One board over one span.
pub struct Leaderboard {
    board: Arc<Board>,
    period: OpenPeriod,
    epoch: String,
    now: DateTime<Utc>,
    read: usize,
    top: Top,
}

impl Leaderboard {
    /// Reads the best `many` with what belongs to them.
    pub async fn read(
        app: &App,
        board: Arc<Board>,
        period: OpenPeriod,
        many: usize,
    ) -> Result<Leaderboard, Error> {
        let now = app.clock.now();
        let top = app.boards.top(&board, &period, many, now).await?;
        Ok(Leaderboard {
            board,
            period,
            epoch: app.keyspace.epoch().into(),
            now,
            read: many,
            top,
        })
    }

    /// What was read.
    pub fn state(&self) -> &Top {
        &self.top
    }

    /// The best that were read.
    pub fn best(&self) -> Vec<StandingShown> {
        self.shown(self.top.standings.clone())
    }

    fn shown(&self, standings: Vec<Standing>) -> Vec<StandingShown> {
        let shown = |standing| StandingShown::new(self.board.clone(), self.period.clone(), standing);
        standings.into_iter().map(shown).collect()
    }
}

/// The largest `first` among the selected `top` fields, so that one reading serves them all.
pub fn wanted_of_top(ctx: &Context<'_>) -> usize {
    let first = |field: async_graphql::SelectionField<'_>| {
        let arguments = field.arguments().ok()?;
        let first = arguments.into_iter().find(|(name, _)| name == "first");
        match first {
            Some((_, async_graphql::Value::Number(number))) => {
                first_of(i32::try_from(number.as_i64()?).ok()?).ok()
            }
            Some(_) => None,
            None => first_of(DEFAULT_FIRST).ok(),
        }
    };
    ctx.look_ahead()
        .field("top")
        .selection_fields()
        .into_iter()
        .filter_map(first)
        .max()
        .unwrap_or(0)
}

/// One board over one span.
#[Object]
impl Leaderboard {
    /// Names the board and the span: `points/2026-W49`.
    async fn id(&self) -> ID {
        ID(format!("{}/{}", self.board.id, self.period.key))
    }

    /// The board.
    async fn board(&self) -> BoardShown {
        BoardShown(self.board.clone())
    }

    /// The calendar period; null for windows and heat.
    async fn period(&self) -> Option<BoardPeriod> {
        Some(self.period.plan.period.into())
    }

    /// Names the span: `2026-11-30`, `2026-W49`, `2026-11`, `all`.
    async fn period_key(&self) -> &str {
        &self.period.key
    }

    /// When the period began; null for ALL_TIME.
    async fn starts_at(&self) -> Option<DateTime<Utc>> {
        self.period.starts_at
    }

    /// When the period ends, exclusive; null for ALL_TIME.
    async fn ends_at(&self) -> Option<DateTime<Utc>> {
        self.period.ends_at
    }

    /// Whether the period is over.
    async fn closed(&self) -> bool {
        self.period.is_closed(self.now)
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
        self.top.version.into()
    }

    /// The best.
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
                    .top(&self.board, &self.period, many, self.now)
                    .await?
                    .standings
            };
            Ok(self.shown(standings))
        })
        .await
    }

    /// Where a user stands; null if not there.
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
                .standing(&self.board, &self.period, &user, self.now)
                .await?;
            Ok(
                standing
                    .map(|standing| StandingShown::new(self.board.clone(), self.period.clone(), standing)),
            )
        })
        .await
    }
}

/// Someone's place on a board.
pub struct StandingShown {
    board: Arc<Board>,
    period: OpenPeriod,
    standing: Standing,
}

impl StandingShown {
    /// A place on `board` in `period`.
    pub fn new(board: Arc<Board>, period: OpenPeriod, standing: Standing) -> StandingShown {
        StandingShown {
            board,
            period,
            standing,
        }
    }
}

/// Someone's place on a board.
#[Object(name = "Standing")]
impl StandingShown {
    /// Who.
    async fn user(&self) -> User {
        User::from(&self.standing.user)
    }

    /// The place, from 1.
    async fn rank(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "How equals are numbered; left out: the board's own way.")] method: Option<
            RankMethod,
        >,
    ) -> async_graphql::Result<SafeInt> {
        let method = method.unwrap_or(self.board.rank_method);
        let rank = match self.standing.ahead.rank(method) {
            Some(rank) => rank,
            None => {
                let better = ctx
                    .app()
                    .boards
                    .distinct_better(&self.board, &self.period, self.standing.points)
                    .await;
                better.map_err(Error::from)? + 1
            }
        };
        Ok(rank.into())
    }

    /// The points.
    async fn points(&self) -> SafeInt {
        SafeInt(self.standing.points)
    }

    /// When the points were reached: approximate, never later than now. Null where ties do not go by time.
    async fn reached_at(&self) -> Option<DateTime<Utc>> {
        self.standing.reached_at
    }

    /// 100 times the share of participants ranked at or below; the best is 100.
    async fn percentile(&self) -> f64 {
        ranking::percentile(
            &self.standing.ahead,
            self.board.rank_method,
            self.standing.participants,
        )
    }
}

/// One score.
#[derive(Debug, InputObject)]
pub struct SubmitScoreInput {
    /// The board's id.
    pub board: ID,
    /// The points; for INCREMENT those to add.
    pub points: SafeInt,
    /// Who; left out: the viewer. Another only for SERVICE.
    pub user_id: Option<ID>,
    /// Instead of the board's operator; only for SERVICE.
    pub operator: Option<ScoreOperator>,
}

/// The answer to `submitScore`.
#[derive(SimpleObject)]
pub struct SubmitScorePayload {
    /// What the score did.
    pub outcome: ScoreOutcome,
    /// The user's place in each of the board's periods; empty if rejected.
    pub standings: Vec<PeriodStanding>,
    /// Why it was rejected; null if it was not.
    pub rejection: Option<Rejection>,
}

impl SubmitScorePayload {
    /// Nothing changed, and why.
    pub fn rejected(rejection: Rejection) -> SubmitScorePayload {
        SubmitScorePayload {
            outcome: ScoreOutcome::Rejected,
            standings: Vec::new(),
            rejection: Some(rejection),
        }
    }
}

/// What a score did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum ScoreOutcome {
    /// Some period changed.
    Applied,
    /// No period changed.
    Unchanged,
    /// It was refused whole; `rejection` says why.
    Rejected,
}

/// A user's place in one period after a score.
#[derive(SimpleObject)]
#[graphql(complex)]
pub struct PeriodStanding {
    /// The period.
    period: BoardPeriod,
    /// Names the period: `2026-11-30`, `2026-W49`, `2026-11`, `all`.
    period_key: String,
    /// The points before; null if the user was not there.
    previous_points: Option<SafeInt>,
    #[graphql(skip)]
    standing: Option<(Arc<Board>, OpenPeriod, Standing)>,
}

impl PeriodStanding {
    /// One period after a score; `standing` may be left out where nobody asks for it.
    pub fn new(
        board: &Arc<Board>,
        period: OpenPeriod,
        previous_points: Option<i64>,
        standing: Option<Standing>,
    ) -> PeriodStanding {
        PeriodStanding {
            period: period.plan.period.into(),
            period_key: period.key.clone(),
            previous_points: previous_points.map(SafeInt),
            standing: standing.map(|standing| (board.clone(), period, standing)),
        }
    }
}

#[ComplexObject]
impl PeriodStanding {
    /// The place now.
    async fn standing(&self) -> Option<StandingShown> {
        let (board, period, standing) = self.standing.clone()?;
        Some(StandingShown::new(board, period, standing))
    }
}

/// Why a score was refused.
#[derive(Debug, SimpleObject)]
pub struct Rejection {
    /// For programs.
    pub code: RejectionCode,
    /// For people.
    pub message: String,
}

/// Why a score was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum RejectionCode {
    /// The points would leave the board's range.
    PointsOutOfRange,
    /// There is no such board.
    UnknownBoard,
}
