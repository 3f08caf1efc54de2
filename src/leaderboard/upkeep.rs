//! What time does to boards: tomorrow's windows are built, closed periods leave, capped boards are trimmed.
//!
//! Owns the keeper's work on boards, in small steps with pauses between, by one node at a time. Everything here may be
//! done twice or left half-way: the next turn goes on.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};

use super::{BOARD, Board, Leaderboards, OpenPeriod, Span, Window};
use crate::day::Period;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Partition, Request, Script, Unavailable, reply};

static TRIM: Script = Script::new("trim", &[NUMBERS, BOARD, include_str!("trim.lua")]);

/// Members that one step of trimming takes off.
const TRIMMED_A_STEP: u32 = 200;

/// The pause between two steps.
const PAUSE: Duration = Duration::from_millis(5);

/// How far back the first sweep of a partition looks for closed periods, in days.
const FIRST_SWEEP_DAYS: u64 = 800;

impl Leaderboards {
    /// One turn of the keeper over `partitions`.
    pub async fn look_after(&self, partitions: &[Partition], now: DateTime<Utc>) -> Result<(), Unavailable> {
        for board in self.boards.iter() {
            for &p in partitions {
                self.build_ahead(board, p, now).await?;
            }
            if board.cap > 0 {
                self.trim(board, partitions, now).await?;
            }
        }
        for &p in partitions {
            self.sweep(p, now).await?;
        }
        Ok(())
    }

    /// Builds the windows of tomorrow, once today is in force.
    async fn build_ahead(&self, board: &Board, p: Partition, now: DateTime<Utc>) -> Result<(), Unavailable> {
        if board.windows.is_empty() {
            return Ok(());
        }
        let today = self.zone.date_of(now);
        let mut get = redis::cmd("GET");
        get.arg(self.keyspace.keys().window_day(p, &board.id));
        let mut request = Request::new();
        request.command(get);
        let in_force: Option<String> = match self.keyspace.run(&request).await?.pop() {
            Some(value) => reply(value)?,
            None => None,
        };
        if in_force != Some(board.window_day(today)) {
            return self.turn(board, today).await;
        }
        for &days in &board.windows {
            while !self.build(board, p, days, self.zone.day_after(today), 1).await? {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// Takes closed periods away that are kept no longer, date by date from where the last sweep ended.
    async fn sweep(&self, p: Partition, now: DateTime<Utc>) -> Result<(), Unavailable> {
        let today = self.zone.date_of(now);
        let key = self.keyspace.keys().swept(p);
        for board in self.boards.iter() {
            for plan in board.stored_plans() {
                let Some(days) = self.retention.days(board, plan.period) else {
                    continue;
                };
                let field = format!("{} {}", board.id, plan.period.as_str());
                let mut get = redis::cmd("HGET");
                get.arg(&key).arg(&field);
                let mut request = Request::new();
                request.command(get);
                let swept: Option<String> = match self.keyspace.run(&request).await?.pop() {
                    Some(value) => reply(value)?,
                    None => None,
                };
                let swept = swept.and_then(|date| date.parse::<NaiveDate>().ok());
                let kept_from = today - chrono::Days::new(u64::from(days) + 1);
                let from = swept.unwrap_or(kept_from - chrono::Days::new(FIRST_SWEEP_DAYS));
                if from >= kept_from {
                    continue;
                }
                self.unlink_periods(board, plan.period, p, from, kept_from, now)
                    .await?;
                let mut set = redis::cmd("HSET");
                set.arg(&key).arg(&field).arg(kept_from.to_string());
                let mut request = Request::new();
                request.command(set);
                for value in self.keyspace.run(&request).await? {
                    reply::<u32>(value)?;
                }
            }
        }
        Ok(())
    }

    async fn unlink_periods(
        &self,
        board: &Board,
        period: Period,
        p: Partition,
        from: NaiveDate,
        until: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<(), Unavailable> {
        let Some(plan) = board.stored_plans().find(|plan| plan.period == period) else {
            return Ok(());
        };
        let keys = self.keyspace.keys();
        let mut request = Request::new();
        for date in from.iter_days().take_while(|&date| date < until) {
            let closed = OpenPeriod::of(board, plan, date, &self.zone, self.retention);
            if closed.is_kept(now) {
                continue;
            }
            let mut unlink = redis::cmd("UNLINK");
            unlink
                .arg(keys.board(p, &board.id, &closed.key))
                .arg(keys.board_distinct(p, &board.id, &closed.key));
            if period == Period::Day {
                for &days in &board.windows {
                    let stored = Window::stored(days, date);
                    unlink
                        .arg(keys.board(p, &board.id, &stored))
                        .arg(keys.board_distinct(p, &board.id, &stored));
                }
            }
            request.command(unlink);
        }
        if request.is_empty() {
            return Ok(());
        }
        for value in self.keyspace.run(&request).await? {
            reply::<u32>(value)?;
        }
        Ok(())
    }

    /// Cuts a capped board down: the period that closed last, and the running ones where nobody loses what it gathered.
    async fn trim(
        &self,
        board: &Board,
        partitions: &[Partition],
        now: DateTime<Utc>,
    ) -> Result<(), Unavailable> {
        if partitions.len() < self.keyspace.partition_count() {
            return Ok(()); // where the cut lies, all partitions say together; whoever keeps them all makes it
        }
        let today = self.zone.date_of(now);
        for plan in &board.plans {
            let running = OpenPeriod::of(board, plan, today, &self.zone, self.retention);
            let closed = running.dates.first().map(|first| {
                OpenPeriod::of(
                    board,
                    plan,
                    self.zone.day_before(first),
                    &self.zone,
                    self.retention,
                )
            });
            // The days that windows are summed from stay whole.
            let closed = closed.filter(|_| plan.period != Period::Day || board.windows.is_empty());
            let running = Some(running).filter(|_| board.trims_running() && board.windows.is_empty());
            for period in closed.into_iter().chain(running) {
                self.trim_span(board, &Span::Period(period)).await?;
            }
        }
        Ok(())
    }

    async fn trim_span(&self, board: &Board, span: &Span) -> Result<(), Unavailable> {
        if self.count_up_to(board, span, None).await? <= board.cap {
            return Ok(());
        }
        let bound = self.bound_of_the_best(board, span).await?;
        let keys = self.keyspace.keys();
        for p in self.keyspace.partitions() {
            let names = [
                keys.generation(p),
                keys.board_version(p, &board.id),
                keys.board(p, &board.id, &span.stored()),
                keys.board_distinct(p, &board.id, &span.stored()),
            ];
            let (bound, range, step) = (
                bound.to_string(),
                span.range().to_string(),
                TRIMMED_A_STEP.to_string(),
            );
            let args = [
                self.keyspace.generation(),
                &bound,
                &range,
                &step,
                board.id.as_str(),
                &keys.changes(),
            ];
            loop {
                let mut request = Request::new();
                request.script(&TRIM, &names, &args);
                let taken: u32 = match self.keyspace.run(&request).await?.pop() {
                    Some(value) => reply(value)?,
                    None => 0,
                };
                if taken < TRIMMED_A_STEP {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// The smallest key up to which at least `cap` members stand, over all partitions: found by bisecting the keys.
    /// Whoever holds this very key stays, so equals at the edge all do.
    async fn bound_of_the_best(&self, board: &Board, span: &Span) -> Result<i64, Unavailable> {
        let most = board.max_points.saturating_add(1).saturating_mul(span.range());
        let (mut low, mut high) = (-most, most);
        while low < high {
            let middle = low + (high - low).div_euclid(2);
            match self.count_up_to(board, span, Some(middle)).await? >= board.cap {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Ok(low)
    }

    async fn count_up_to(&self, board: &Board, span: &Span, key: Option<i64>) -> Result<u64, Unavailable> {
        let (keys, key) = (
            self.keyspace.keys(),
            key.map_or("+inf".into(), |key| key.to_string()),
        );
        let counts: Vec<u64> = self
            .keyspace
            .gather(|request, p| {
                let mut count = redis::cmd("ZCOUNT");
                count
                    .arg(keys.board(p, &board.id, &span.stored()))
                    .arg("-inf")
                    .arg(&key);
                request.command(count);
            })
            .await?;
        Ok(counts.into_iter().sum())
    }
}
