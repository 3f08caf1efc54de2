//! What a board is: its configuration, checked and planned.
//!
//! Owns the kinds of boards and the refusal of impossible ones at start. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::plan::{self, PeriodPlan};
use super::span;
use crate::config::{self, ConfigError, Settings};
use crate::day::Period;
use crate::ids::{BoardId, MAX_SAFE_INT};

/// Which end of a board is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, async_graphql::Enum)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BoardOrder {
    /// Most points first.
    HighestFirst,
    /// Fewest points first, as for lap times.
    LowestFirst,
}

/// How a score changes a user's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, async_graphql::Enum)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScoreOperator {
    /// Adds to the points.
    Increment,
    /// Replaces the points.
    Set,
    /// Replaces the points if it is better in the board's order.
    Best,
}

/// Who stands first among equal points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, async_graphql::Enum)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TieBreak {
    /// Whoever reached the points first.
    FirstToReach,
    /// By user id, bytes ascending.
    None,
}

/// How places are numbered among equal points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, async_graphql::Enum)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RankMethod {
    /// 1, 2, 3, 4: each place once.
    Ordinal,
    /// 1, 2, 2, 4: equals share a place, and places are left out after them.
    Competition,
    /// 1, 2, 2, 3: equals share a place, and none is left out.
    Dense,
}

/// One board, checked and planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Board {
    /// Part of key names and ids; never changes.
    pub id: BoardId,
    /// What people read.
    pub title: String,
    /// Which end is best.
    pub order: BoardOrder,
    /// How a score changes the points, unless a backend says otherwise.
    pub operator: ScoreOperator,
    /// Who stands first among equals.
    pub tie_break: TieBreak,
    /// The ranks that are shown unless asked otherwise.
    pub rank_method: RankMethod,
    /// Points lie within this, both ways.
    pub max_points: i64,
    /// Whether users may submit their own scores.
    pub user_writes: bool,
    /// How each configured period is encoded, in the configured order; never empty.
    pub plans: Vec<PeriodPlan>,
    /// Rolling windows, in days.
    pub windows: Vec<u32>,
    /// Above 0: the board also has heat that halves in so many hours.
    pub half_life_hours: f64,
    /// Above 0: only the best so many are kept, see [`Board::trims_running`].
    pub cap: u64,
    /// The day sets that windows are summed from, where DAY is no period of the board.
    hidden_day: Option<PeriodPlan>,
}

/// The longest window, in days: a year.
const LONGEST_WINDOW: u32 = 366;

impl Board {
    /// Checks and plans one `[[board]]`.
    pub fn plan(board: &config::Board) -> Result<Board, ConfigError> {
        let id =
            BoardId::parse(&board.id).map_err(|bad| ConfigError::unusable("board.id", bad.to_string()))?;
        let unusable = |reason: String| ConfigError::unusable(format!("board {id}"), reason);
        check_windows(board).map_err(unusable)?;
        check_heat(board).map_err(unusable)?;
        if board.periods.is_empty() {
            return Err(unusable(
                "periods is empty; it needs one of DAY, WEEK, MONTH, ALL_TIME".into(),
            ));
        }
        if let Some(twice) = board
            .periods
            .iter()
            .enumerate()
            .find(|(i, p)| board.periods[..*i].contains(p))
        {
            return Err(unusable(format!("periods names {} twice", twice.1.as_str())));
        }
        let plan_period = |&period: &Period| match board.tie_break {
            TieBreak::FirstToReach => plan::first_to_reach(period, board.max_points, board.max_tick_ms),
            TieBreak::None => plan::by_user_id(period, board.max_points),
        };
        let plans = board.periods.iter().map(plan_period).collect::<Result<_, _>>();
        let needs_days = !board.windows.is_empty() && !board.periods.contains(&Period::Day);
        let hidden_day = needs_days
            .then(|| plan::by_user_id(Period::Day, board.max_points))
            .transpose();
        Ok(Board {
            title: if board.title.is_empty() {
                board.id.clone()
            } else {
                board.title.clone()
            },
            order: board.order,
            operator: board.operator,
            tie_break: board.tie_break,
            rank_method: board.rank_method,
            max_points: board.max_points.min(MAX_SAFE_INT),
            user_writes: board.user_writes,
            plans: plans.map_err(|error| unusable(error.to_string()))?,
            windows: board.windows.clone(),
            half_life_hours: board.half_life_hours,
            cap: board.cap,
            hidden_day: hidden_day.map_err(|error| unusable(error.to_string()))?,
            id,
        })
    }

    /// How everything that is stored by period is encoded: the configured ones, then the days that only windows need.
    pub fn stored_plans(&self) -> impl Iterator<Item = &PeriodPlan> {
        self.plans.iter().chain(&self.hidden_day)
    }

    /// Whether a write of so many points may stay within the board's range, whatever the user holds. What is added may be
    /// twice the largest points: that leads from one end to the other. It also keeps the scripts' sums exact.
    pub fn can_take(&self, operator: ScoreOperator, points: i64) -> bool {
        let most = match operator {
            ScoreOperator::Increment => self.max_points.saturating_mul(2),
            ScoreOperator::Set | ScoreOperator::Best => self.max_points,
        };
        points.unsigned_abs() <= most.unsigned_abs()
    }

    /// Whether a plan is of the days that only windows need.
    pub fn is_hidden(&self, plan: &PeriodPlan) -> bool {
        self.hidden_day.as_ref() == Some(plan) && !self.plans.contains(plan)
    }

    /// How the day sets of windows are encoded.
    pub fn day_plan(&self) -> Option<&PeriodPlan> {
        self.stored_plans().find(|plan| plan.period == Period::Day)
    }

    /// Days of the longest window; 0 without windows.
    pub fn longest_window(&self) -> u32 {
        self.windows.iter().copied().max().unwrap_or(0)
    }

    /// The day `date` as the scripts of this board's windows compare it.
    pub fn window_day(&self, date: NaiveDate) -> String {
        span::window_day(date, &self.windows)
    }

    /// Whether running periods are cut down to `cap` as well. Not with INCREMENT: whoever was cut off would lose what
    /// it had gathered.
    pub fn trims_running(&self) -> bool {
        self.cap > 0 && self.operator != ScoreOperator::Increment
    }

    /// Everything by which stored scores are read, in words that only need to be compared.
    pub fn encoding(&self) -> String {
        let order = match self.order {
            BoardOrder::HighestFirst => "HIGHEST_FIRST",
            BoardOrder::LowestFirst => "LOWEST_FIRST",
        };
        let mut words = format!("order={order} max_points={}", self.max_points);
        for plan in self.stored_plans() {
            let (period, bits, tick) = (plan.period.as_str(), plan.tie_bits, plan.tick_ms);
            words += &format!(" {period}={bits} bits of {tick} ms");
        }
        if !self.windows.is_empty() {
            words += match self.operator {
                ScoreOperator::Best => " windows=best",
                ScoreOperator::Increment | ScoreOperator::Set => " windows=sum",
            };
        }
        if self.half_life_hours > 0.0 {
            words += &format!(" half_life_hours={}", self.half_life_hours);
        }
        words
    }
}

fn check_windows(board: &config::Board) -> Result<(), String> {
    for (i, &days) in board.windows.iter().enumerate() {
        if !(1..=LONGEST_WINDOW).contains(&days) {
            return Err(format!(
                "windows: {days} is not within 1 to {LONGEST_WINDOW} days"
            ));
        }
        if board.windows[..i].contains(&days) {
            return Err(format!("windows names {days} twice"));
        }
        if board
            .max_points
            .checked_mul(days.into())
            .is_none_or(|most| most > MAX_SAFE_INT)
        {
            let fits = MAX_SAFE_INT / i64::from(days);
            return Err(format!(
                "the sum of {days} days would not be exact; max_points up to {fits} would fit"
            ));
        }
    }
    if !board.windows.is_empty() && board.operator == ScoreOperator::Set {
        return Err("windows need INCREMENT (they sum) or BEST (they take the best); SET has none".into());
    }
    Ok(())
}

fn check_heat(board: &config::Board) -> Result<(), String> {
    let hours = board.half_life_hours;
    if !(hours == 0.0 || (0.01..=1_000_000.0).contains(&hours)) {
        return Err(format!("half_life_hours = {hours} is not within 0.01 to 1000000"));
    }
    if hours > 0.0 && board.operator != ScoreOperator::Increment {
        return Err("half_life_hours needs an INCREMENT board".into());
    }
    Ok(())
}

/// All boards, in the configured order.
#[derive(Debug, Default)]
pub struct Boards {
    list: Vec<Arc<Board>>,
    by_id: HashMap<BoardId, Arc<Board>>,
}

impl Boards {
    /// Checks and plans every `[[board]]`, and the boards that check-ins feed.
    pub fn plan(settings: &Settings) -> Result<Boards, ConfigError> {
        let mut boards = Boards::default();
        for configured in &settings.board {
            let board = Arc::new(Board::plan(configured)?);
            if boards.by_id.insert(board.id.clone(), board.clone()).is_some() {
                return Err(ConfigError::unusable(
                    format!("board {}", board.id),
                    "is configured twice",
                ));
            }
            boards.list.push(board);
        }
        for (key, id) in [
            ("checkin.points_board", &settings.checkin.points_board),
            ("checkin.count_board", &settings.checkin.count_board),
        ] {
            boards.check_fed(key, id)?;
        }
        let (points, count) = (&settings.checkin.points_board, &settings.checkin.count_board);
        if points == count && !points.is_empty() {
            return Err(ConfigError::unusable(
                "checkin.count_board",
                format!(
                    "board {count} is checkin.points_board already, and points and check-ins in one sum say nothing: name \
                     another board, or leave one of the two empty"
                ),
            ));
        }
        Ok(boards)
    }

    /// All boards, as configured.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Board>> {
        self.list.iter()
    }

    /// The board with this id; an id that could be none is none.
    pub fn get(&self, id: &str) -> Option<&Arc<Board>> {
        self.by_id.get(&BoardId::parse(id).ok()?)
    }

    fn check_fed(&self, key: &str, id: &str) -> Result<(), ConfigError> {
        match self.get(id) {
            _ if id.is_empty() => Ok(()),
            None => Err(ConfigError::unusable(key, format!("there is no board {id:?}"))),
            Some(board) if board.operator != ScoreOperator::Increment => {
                Err(ConfigError::unusable(key, format!("board {id} is not INCREMENT")))
            }
            Some(_) => Ok(()),
        }
    }
}
