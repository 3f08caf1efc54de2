//! The turn of the day for rolling windows.
//!
//! Owns which day is in force in each partition, and the building of tomorrow's sets while today is open. A window has a
//! set for the day in force T and one for T+1. Scores keep up both (`score.lua`); the builder walks the days that T+1
//! still holds and writes everybody's whole value (`build_window.lua`), so a turn finds its set complete. A request for a
//! day that is not in force yet is answered STALEDAY, and its caller finishes the set, turns the day and asks again.

use chrono::{DateTime, NaiveDate, Utc};

use super::span::BACKSTOP;
use super::{BOARD, Board, Leaderboards, OpenPeriod, POSITION, ScoreOperator, Span, WINDOW, Window};
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Partition, Request, Script, Unavailable, reply};

static BUILD_WINDOW: Script = Script::new(
    "build_window",
    &[NUMBERS, BOARD, WINDOW, POSITION, include_str!("build_window.lua")],
);
static TURN_DAY: Script = Script::new("turn_day", &[include_str!("turn_day.lua")]);

/// Users that one step of the builder writes, so that no step blocks Redis for long.
const USERS_A_STEP: u32 = 50;

/// Steps that go into one pipeline when a turn has to be finished at once.
const STEPS_AT_ONCE: usize = 20;

impl Leaderboards {
    /// Runs a request that may be about a window; where another day is in force, brings the right one about first.
    pub(super) async fn on_its_day(
        &self,
        board: &Board,
        span: &Span,
        mut ask: impl FnMut(&mut Request),
    ) -> Result<Vec<redis::Value>, Unavailable> {
        for _ in 0..3 {
            let mut request = Request::new();
            ask(&mut request);
            let replies = self.keyspace.run(&request).await?;
            let stale = |value: &redis::Value| matches!(value, redis::Value::ServerError(e) if e.code() == "STALEDAY");
            match span {
                Span::Window(window) if replies.iter().any(stale) => self.turn(board, window.date).await?,
                _ => return Ok(replies),
            }
        }
        Err(Unavailable::StaleDay)
    }

    /// Puts `date` in force for the windows of `board`, finishing their sets first.
    pub(crate) async fn turn(&self, board: &Board, date: NaiveDate) -> Result<(), Unavailable> {
        for p in self.keyspace.partitions() {
            for &days in &board.windows {
                while !self.build(board, p, days, date, STEPS_AT_ONCE).await? {}
            }
            let keys = self.keyspace.keys();
            let names = [keys.generation(p), keys.window_day(p, &board.id)];
            let mut request = Request::new();
            let args = [self.keyspace.generation(), &board.window_day(date)];
            request.script(&TURN_DAY, &names, &args);
            for value in self.keyspace.run(&request).await? {
                reply::<String>(value)?;
            }
        }
        Ok(())
    }

    /// Takes a few steps in building the window of `days` days that ends with `date`; whether it is complete.
    pub(super) async fn build(
        &self,
        board: &Board,
        p: Partition,
        days: u32,
        date: NaiveDate,
        steps: usize,
    ) -> Result<bool, Unavailable> {
        let Some(plan) = board.day_plan() else {
            return Ok(true);
        };
        let (keys, stored) = (self.keyspace.keys(), Window::stored(days, date));
        let mut names = vec![
            keys.generation(p),
            keys.window_progress(p, &board.id, days),
            keys.board(p, &board.id, &stored),
            keys.board_distinct(p, &board.id, &stored),
        ];
        let dates = Window::dates(days, date, &self.zone).rev();
        names.extend(dates.map(|day| keys.board(p, &board.id, &plan.period.span_of(day).key())));
        let args = [
            self.keyspace.generation().to_owned(),
            date.to_string(),
            plan.tie_range().to_string(),
            over_days_operator(board).to_owned(),
            USERS_A_STEP.to_string(),
            window_ttl().to_string(),
        ];
        let mut request = Request::new();
        (0..steps).for_each(|_| {
            request.script(&BUILD_WINDOW, &names, &args);
        });
        let mut complete = false;
        for value in self.keyspace.run(&request).await? {
            complete = reply::<u32>(value)? == 1;
        }
        Ok(complete)
    }

    /// Adds what `score.lua` needs for the windows of `board`: a score dated `at`, written at `now`.
    pub(super) fn windows_part(
        &self,
        call: Call,
        board: &Board,
        periods: &[OpenPeriod],
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Call {
        let call = call.arg(board.windows.len());
        let Some(plan) = board.day_plan().filter(|_| !board.windows.is_empty()) else {
            return call;
        };
        let (keys, p, today) = (self.keyspace.keys(), call.partition(), self.zone.date_of(now));
        let dates: Vec<NaiveDate> = Window::dates(board.longest_window(), today, &self.zone)
            .rev()
            .collect();
        let dated = dates
            .iter()
            .position(|&day| day == self.zone.date_of(at))
            .map_or(0, |place| place + 1);
        let day_period = periods
            .iter()
            .position(|period| period.plan.period == plan.period)
            .map_or(0, |i| i + 1);
        let call = dates
            .iter()
            .fold(call.key(keys.window_day(p, &board.id)), |call, &day| {
                call.key(keys.board(p, &board.id, &plan.period.span_of(day).key()))
            });
        let call = call
            .arg(board.window_day(today))
            .arg(dates.len())
            .arg(dated)
            .arg(day_period)
            .arg(plan.tie_range())
            .arg(over_days_operator(board))
            .arg(window_ttl());
        board.windows.iter().fold(call, |call, &days| {
            let sets = [today, self.zone.day_after(today)].map(|day| Window::stored(days, day));
            sets.iter().fold(call.arg(days), |call, stored| {
                call.key(keys.board(p, &board.id, stored))
                    .key(keys.board_distinct(p, &board.id, stored))
            })
        })
    }

    /// The sets of all windows of `board` at `today`: of the day in force and of the day after.
    pub(super) fn window_sets(&self, board: &Board, today: NaiveDate) -> Vec<String> {
        let days = [today, self.zone.day_after(today)];
        board
            .windows
            .iter()
            .flat_map(|&length| days.map(|day| Window::stored(length, day)))
            .collect()
    }
}

fn over_days_operator(board: &Board) -> &'static str {
    match board.operator {
        ScoreOperator::Best => "BEST",
        ScoreOperator::Increment | ScoreOperator::Set => "INCREMENT",
    }
}

/// The backstop TTL of a window's set, in seconds: it is of use for two days.
fn window_ttl() -> i64 {
    (BACKSTOP * 3).num_seconds()
}
