//! The turn of the day for rolling windows.
//!
//! Owns which day is in force in each partition, and the building of tomorrow's sets while today is open. A window has a
//! set for the day in force T and one for T+1. Scores keep up both (`score.lua`); the builder walks the days that T+1
//! still holds and writes everybody's whole value (`build_window.lua`), so a turn finds its set complete. A request for a
//! day that is not in force yet is answered STALEDAY, and its caller finishes the set, turns the day and asks again. Whoever
//! comes with a day that is over already (a request under way at midnight, a clock that is behind) goes by the one in
//! force: reads see its windows, and a score counts for the day that it is dated.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, Utc};

use super::span::{self, BACKSTOP};
use super::{BOARD, Board, Leaderboards, OpenPeriod, POSITION, ScoreOperator, Span, WINDOW, Window};
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Partition, Request, Script, Unavailable, reply};

static BUILD_WINDOW: Script = Script::new(
    "build_window",
    &[
        NUMBERS,
        BOARD,
        WINDOW,
        POSITION,
        PROGRESS,
        include_str!("build_window.lua"),
    ],
);
static TURN_DAY: Script = Script::new("turn_day", &[PROGRESS, include_str!("turn_day.lua")]);

/// The Lua part about how far sets are built.
const PROGRESS: &str = include_str!("progress.lua");

/// Users that one step of the builder writes at most, and looks into their days: so no step blocks Redis for long (a few
/// milliseconds), however long the window.
const USERS_A_STEP: u32 = 50;
const LOOKS_A_STEP: u32 = 1_000;

/// Steps that go into one pipeline when a turn has to be finished at once.
const STEPS_AT_ONCE: usize = 20;

/// How often a request is asked again for another day; each time somebody else has turned it meanwhile.
pub(super) const TRIES: usize = 5;

impl Leaderboards {
    /// Runs a request that may be about a window; where an earlier day is in force, brings the right one about first.
    /// Answers with the replies and the span that they are about: where a later day is in force, its window.
    pub(super) async fn on_its_day<'s>(
        &self,
        board: &Board,
        span: &'s Span,
        mut ask: impl FnMut(&mut Request, &Span),
    ) -> Result<(Vec<redis::Value>, Cow<'s, Span>), Unavailable> {
        let mut span = Cow::Borrowed(span);
        for _ in 0..TRIES {
            let mut request = Request::new();
            ask(&mut request, &span);
            let replies = self.keyspace.run(&request).await?;
            let stale = |value: &redis::Value| matches!(value, redis::Value::ServerError(e) if e.code() == "STALEDAY");
            let (days, date) = match &*span {
                Span::Window(window) if replies.iter().any(stale) => (window.days, window.date),
                _ => return Ok((replies, span)),
            };
            let in_force = self.turn(board, date).await?;
            if in_force != date {
                span = Cow::Owned(Span::Window(Window::ending(days, in_force, &self.zone)));
            }
        }
        Err(Unavailable::StaleDay)
    }

    /// Brings the day of `now` in force for the windows of `board`; answers with `now`, or with the start of the day in
    /// force if that is a later one.
    pub(crate) async fn turned(
        &self,
        board: &Board,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, Unavailable> {
        let date = self.zone.date_of(now);
        let in_force = self.turn(board, date).await?;
        Ok(if in_force > date {
            self.zone.start_of(in_force)
        } else {
            now
        })
    }

    /// As [`Leaderboards::finish_turn`], but not longer than a request may take; what was built by then stays built.
    async fn turn(&self, board: &Board, date: NaiveDate) -> Result<NaiveDate, Unavailable> {
        match tokio::time::timeout(self.keyspace.patience(), self.finish_turn(board, date)).await {
            Ok(turned) => turned,
            Err(_) => Err(Unavailable::Refused(
                "the windows of the new day are still being built".into(),
            )),
        }
    }

    /// Puts `date` in force for the windows of `board`, finishing their sets first, unless a later one is. Answers with
    /// the latest day in force.
    pub(super) async fn finish_turn(&self, board: &Board, date: NaiveDate) -> Result<NaiveDate, Unavailable> {
        let (mut latest, mut trouble) = (date, None);
        for p in self.keyspace.partitions().filter(|_| !board.windows.is_empty()) {
            // A partition in trouble must not keep the others from their day.
            match self.turn_partition(board, p, date).await {
                Ok(in_force) => latest = latest.max(in_force),
                Err(cause) => trouble = Some(cause),
            }
        }
        match trouble {
            None => Ok(latest),
            Some(cause) => Err(cause),
        }
    }

    async fn turn_partition(
        &self,
        board: &Board,
        p: Partition,
        date: NaiveDate,
    ) -> Result<NaiveDate, Unavailable> {
        let wanted = board.window_day(date);
        let mut in_force = self.day_in_force(board, p).await?;
        for _ in 0..TRIES {
            let (day, lengths) = match in_force.as_deref() {
                Some(text) if text == wanted => return Ok(date),
                Some(text) => span::read_window_day(text),
                None => (None, Vec::new()),
            };
            match day {
                Some(later) if later > date => return Ok(later),
                _ => {}
            }
            for &days in &board.windows {
                if day == Some(date) && lengths.contains(&days) {
                    continue; // only the lengths change, and this one is kept up as it is
                }
                while !self.build(board, p, days, date, STEPS_AT_ONCE).await? {}
            }
            in_force = Some(self.put_in_force(board, p, date).await?);
        }
        Err(Unavailable::StaleDay)
    }

    /// The day in force in a partition, as [`Board::window_day`] spells it.
    pub(super) async fn day_in_force(
        &self,
        board: &Board,
        p: Partition,
    ) -> Result<Option<String>, Unavailable> {
        let mut get = redis::cmd("GET");
        get.arg(self.keyspace.keys().window_day(p, &board.id));
        let mut request = Request::new();
        request.command(get);
        match self.keyspace.run(&request).await?.pop() {
            Some(value) => reply(value),
            None => Ok(None),
        }
    }

    async fn put_in_force(
        &self,
        board: &Board,
        p: Partition,
        date: NaiveDate,
    ) -> Result<String, Unavailable> {
        let keys = self.keyspace.keys();
        let mut names = vec![
            keys.generation(p),
            keys.window_day(p, &board.id),
            keys.board_version(p, &board.id),
        ];
        let mut args = vec![self.keyspace.generation().to_owned(), board.window_day(date)];
        for &days in &board.windows {
            names.push(keys.window_progress(p, &board.id, &Window::stored(days, date)));
            args.push(days.to_string());
        }
        let mut request = Request::new();
        request.script(&TURN_DAY, &names, &args);
        match self.keyspace.run(&request).await?.pop() {
            Some(value) => reply(value),
            None => Err(Unavailable::Fault("no reply".into())),
        }
    }

    /// Forgets that days were in force for boards that have no windows: scores go by without keeping any up.
    pub(super) async fn forget_windows(&self) -> Result<(), Unavailable> {
        let boards: Vec<_> = self
            .boards
            .iter()
            .filter(|board| board.windows.is_empty())
            .collect();
        let mut request = Request::new();
        for p in self.keyspace.partitions() {
            for board in &boards {
                let mut unlink = redis::cmd("UNLINK");
                unlink.arg(self.keyspace.keys().window_day(p, &board.id));
                request.command(unlink);
            }
        }
        if request.is_empty() {
            return Ok(());
        }
        for value in self.keyspace.run(&request).await? {
            reply::<u32>(value)?;
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
        let keys = self.keyspace.keys();
        let [stored, ahead] = [date, self.zone.day_after(date)].map(|day| Window::stored(days, day));
        let mut names = vec![
            keys.generation(p),
            keys.window_progress(p, &board.id, &stored),
            keys.board(p, &board.id, &stored),
            keys.board_distinct(p, &board.id, &stored),
            keys.window_progress(p, &board.id, &ahead),
            keys.board(p, &board.id, &ahead),
            keys.board_distinct(p, &board.id, &ahead),
            keys.window_day(p, &board.id),
            keys.board_version(p, &board.id),
        ];
        let dates = Window::dates(days, date, &self.zone).rev();
        names.extend(dates.map(|day| keys.board(p, &board.id, &plan.period.span_of(day).key())));
        let args = [
            self.keyspace.generation().to_owned(),
            plan.tie_range().to_string(),
            over_days_operator(board).to_owned(),
            (LOOKS_A_STEP / days).clamp(1, USERS_A_STEP).to_string(),
            window_ttl().to_string(),
            days.to_string(),
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
