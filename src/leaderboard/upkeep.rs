//! What time does to boards: tomorrow's windows are built, closed periods leave, capped boards are trimmed.
//!
//! Owns the keeper's work on boards, in small steps with pauses between, by one node at a time. Everything here may be
//! done twice or left half-way: the next turn goes on. How far it has come is noted under `board PERIOD` (periods before
//! are swept away), `board windows` (sets of days before are), `board PERIOD trimmed` (periods before are cut down).

use chrono::{DateTime, Days, NaiveDate, Utc};

use super::pages::{Begin, Many, Wanted};
use super::plan::PeriodPlan;
use super::ranking::Member;
use super::span;
use super::{BOARD, Board, Leaderboards, OpenPeriod, POSITION, Span, Window};
use crate::day::Period;
use crate::ids::{BoardId, UserId};
use crate::keyspace::keeper::{PAUSE, Reached};
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Partition, Request, Script, Unavailable, reply};

static TRIM: Script = Script::new("trim", &[NUMBERS, BOARD, POSITION, include_str!("trim.lua")]);

/// Members that one step of trimming takes off.
const TRIMMED_A_STEP: u32 = 200;

/// Equals at the edge that are walked at a time.
const EQUALS_A_PAGE: usize = 500;

/// How far back the first sweep of a partition looks for what nobody keeps any more, in days.
const FIRST_SWEEP_DAYS: u64 = 800;

impl Leaderboards {
    /// One turn of the keeper over `partitions`.
    pub async fn look_after(&self, partitions: &[Partition], now: DateTime<Utc>) -> Result<(), Unavailable> {
        for board in self.boards.iter() {
            for &p in partitions {
                // What one board's windows wait for must not keep everything else from being looked after.
                if let Err(error) = self.build_ahead(board, p, now).await {
                    tracing::warn!(%error, board = %board.id, partition = %p, "cannot build windows; trying on");
                }
            }
        }
        for &p in partitions {
            let reached = self.keyspace.reached(p).await?;
            for board in self.boards.iter() {
                self.sweep_periods(board, p, now, &reached).await?;
                self.sweep_windows(board, p, now, &reached).await?;
                // Where the cut lies, all partitions say together; whoever looks after the first makes it.
                if board.cap > 0 && p == Partition::number(0) {
                    self.trim(board, now, &reached).await?;
                }
            }
        }
        Ok(())
    }

    /// Builds the windows of tomorrow, with today in force.
    async fn build_ahead(&self, board: &Board, p: Partition, now: DateTime<Utc>) -> Result<(), Unavailable> {
        if board.windows.is_empty() {
            return Ok(());
        }
        let today = self.zone.date_of(now);
        if self.day_in_force(board, p).await? != Some(board.window_day(today)) {
            self.finish_turn(board, today).await?;
            let in_force = self.day_in_force(board, p).await?;
            if in_force != Some(board.window_day(today)) {
                // Another node's day is a later one; it builds. Two days ahead, somebody's clock is wrong.
                let later = in_force.as_deref().and_then(|day| span::read_window_day(day).0);
                if later.is_some_and(|later| later > self.zone.day_after(today)) {
                    tracing::warn!(board = %board.id, in_force, %today, "the day in force for windows lies in the future");
                }
                return Ok(());
            }
        }
        for &days in &board.windows {
            while !self.build(board, p, days, self.zone.day_after(today), 1).await? {
                self.keyspace.counts().step(0);
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// The sets of a partition that are open at `now`, by board and by what they are kept over; beside each the distinct
    /// points held there.
    pub fn sets_at(&self, p: Partition, now: DateTime<Utc>) -> Vec<(BoardId, String, Vec<String>)> {
        let (keys, today) = (self.keyspace.keys(), self.zone.date_of(now));
        let mut sets = Vec::new();
        for board in self.boards.iter() {
            let periods = board.stored_plans().map(|plan| {
                let period = OpenPeriod::of(board, plan, today, &self.zone, self.retention);
                (plan.period.as_str().to_owned(), period.key)
            });
            let windows = board.windows.iter();
            let windows = windows.map(|&days| (format!("last-{days}"), Window::stored(days, today)));
            let heat = self
                .heat(board)
                .ok()
                .map(|span| ("heat".to_owned(), span.stored()));
            for (span, stored) in periods.chain(windows).chain(heat) {
                let set = keys.board(p, &board.id, &stored);
                sets.push((
                    board.id.clone(),
                    span,
                    vec![set, keys.board_distinct(p, &board.id, &stored)],
                ));
            }
        }
        sets
    }

    /// Takes closed periods away that are kept no longer.
    async fn sweep_periods(
        &self,
        board: &Board,
        p: Partition,
        now: DateTime<Utc>,
        reached: &Reached,
    ) -> Result<(), Unavailable> {
        let today = self.zone.date_of(now);
        for plan in board.stored_plans() {
            let Some(days) = self.retention.days(board, plan.period) else {
                continue;
            };
            let what = format!("{} {}", board.id, plan.period.as_str());
            let earliest = today - Days::new(u64::from(days) + FIRST_SWEEP_DAYS);
            let from = reached.get(&what).copied().unwrap_or(earliest);
            let (gone, until) = self.periods_from(board, plan, from, |period| !period.is_kept(now));
            let spans = gone.into_iter().map(|period| period.key).collect();
            self.take_away(board, p, &what, spans, from, until).await?;
        }
        Ok(())
    }

    /// Takes the sets of windows away whose day is over.
    async fn sweep_windows(
        &self,
        board: &Board,
        p: Partition,
        now: DateTime<Utc>,
        reached: &Reached,
    ) -> Result<(), Unavailable> {
        if board.windows.is_empty() {
            return Ok(());
        }
        let (today, what) = (self.zone.date_of(now), format!("{} windows", board.id));
        let from = reached.get(&what).copied();
        let from = from.unwrap_or(today - Days::new(FIRST_SWEEP_DAYS));
        let over = from.iter_days().take_while(|&day| day < today);
        let stored = |day| board.windows.iter().map(move |&days| Window::stored(days, day));
        let spans = over.flat_map(stored).collect();
        self.take_away(board, p, &what, spans, from, today.max(from))
            .await
    }

    /// The periods from the one of `from` on, as long as `wanted`, and the first date of the one after.
    fn periods_from(
        &self,
        board: &Board,
        plan: &PeriodPlan,
        from: NaiveDate,
        wanted: impl Fn(&OpenPeriod) -> bool,
    ) -> (Vec<OpenPeriod>, NaiveDate) {
        let (mut periods, mut date) = (Vec::new(), from);
        loop {
            let period = OpenPeriod::of(board, plan, date, &self.zone, self.retention);
            match period.dates.last().and_then(|last| last.succ_opt()) {
                Some(next) if wanted(&period) => date = next,
                _ => return (periods, date),
            }
            periods.push(period);
        }
    }

    /// Deletes the sets of `spans`, and notes that `what` has come from `from` to `until`.
    async fn take_away(
        &self,
        board: &Board,
        p: Partition,
        what: &str,
        spans: Vec<String>,
        from: NaiveDate,
        until: NaiveDate,
    ) -> Result<(), Unavailable> {
        let keys = self.keyspace.keys();
        let names = spans.iter().flat_map(|span| {
            [
                keys.board(p, &board.id, span),
                keys.board_distinct(p, &board.id, span),
                keys.window_progress(p, &board.id, span),
            ]
        });
        self.keyspace.unlink(names.collect()).await?;
        match until == from {
            true => Ok(()),
            false => self.keyspace.note_reached(p, what, until).await,
        }
    }

    /// Cuts a capped board down: the periods that are closed, and the running ones where nobody loses what it gathered.
    async fn trim(&self, board: &Board, now: DateTime<Utc>, reached: &Reached) -> Result<(), Unavailable> {
        let today = self.zone.date_of(now);
        for plan in &board.plans {
            // The days that windows are summed from stay whole.
            let whole_days = plan.period == Period::Day && !board.windows.is_empty();
            let running_from = match whole_days {
                true => Window::dates(board.longest_window(), today, &self.zone).next_back(),
                false => plan.period.span_of(today).first(),
            };
            if let Some(running_from) = running_from {
                self.trim_closed(board, plan, running_from, now, reached).await?;
            }
            if board.trims_running() && !whole_days {
                let running = OpenPeriod::of(board, plan, today, &self.zone, self.retention);
                self.trim_span(board, &Span::Period(running)).await?;
            }
        }
        Ok(())
    }

    /// Cuts the closed periods before `until` down. The last one is looked at every time: a score that was on its way
    /// when it closed still comes in.
    async fn trim_closed(
        &self,
        board: &Board,
        plan: &PeriodPlan,
        until: NaiveDate,
        now: DateTime<Utc>,
        reached: &Reached,
    ) -> Result<(), Unavailable> {
        let Some(days) = self.retention.days(board, plan.period) else {
            return Ok(());
        };
        let what = trimmed(board, plan);
        let earliest = self.zone.date_of(now) - Days::new(u64::from(days) + 2);
        let from = reached.get(&what).copied().unwrap_or(earliest).max(earliest);
        let closed = |period: &OpenPeriod| period.dates.last().is_some_and(|last| last < until);
        let (periods, _) = self.periods_from(board, plan, from, closed);
        let last = periods.last().and_then(|last| last.dates.first());
        for period in periods.into_iter().filter(|period| period.is_kept(now)) {
            self.trim_span(board, &Span::Period(period)).await?;
        }
        match last.filter(|&last| reached.get(&what) != Some(&last)) {
            Some(last) => {
                self.keyspace
                    .note_reached(Partition::number(0), &what, last)
                    .await
            }
            None => Ok(()),
        }
    }

    /// Has all closed periods of a capped board looked at again: something was written into them.
    pub async fn trim_anew(&self, board: &Board) -> Result<(), Unavailable> {
        if board.cap == 0 {
            return Ok(());
        }
        let mut forget = redis::cmd("HDEL");
        forget.arg(self.keyspace.keys().swept(Partition::number(0)));
        board.plans.iter().for_each(|plan| {
            forget.arg(trimmed(board, plan));
        });
        let mut request = Request::new();
        request.command(forget);
        for value in self.keyspace.run(&request).await? {
            reply::<u32>(value)?;
        }
        Ok(())
    }

    async fn trim_span(&self, board: &Board, span: &Span) -> Result<(), Unavailable> {
        if self.count_up_to(board, span, None).await? <= board.cap {
            return Ok(());
        }
        let Some(last) = self.last_of_the_best(board, span).await? else {
            return Ok(());
        };
        let keys = self.keyspace.keys();
        for p in self.keyspace.partitions() {
            let names = [
                keys.generation(p),
                keys.board_version(p, &board.id),
                keys.board(p, &board.id, &span.stored()),
                keys.board_distinct(p, &board.id, &span.stored()),
            ];
            let args = [
                self.keyspace.generation().to_owned(),
                last.key.to_string(),
                last.user.to_string(),
                span.range().to_string(),
                TRIMMED_A_STEP.to_string(),
                board.id.to_string(),
                keys.changes(),
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

    /// Whoever stands last among the best `cap`, over all partitions: the key is found by bisecting, and among equals of
    /// that key the user by walking them from the first.
    async fn last_of_the_best(&self, board: &Board, span: &Span) -> Result<Option<Member>, Unavailable> {
        let most = board.max_points.saturating_add(1).saturating_mul(span.range());
        let (mut low, mut high) = (-most, most);
        while low < high {
            let middle = low + (high - low).div_euclid(2);
            match self.count_up_to(board, span, Some(middle)).await? >= board.cap {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let better = self.count_up_to(board, span, Some(low - 1)).await?;
        let mut left = board.cap.saturating_sub(better) as usize;
        let key = low as f64;
        let mut begin = Begin::At(Member {
            key,
            user: UserId::first(),
        });
        let mut last = None;
        while left > 0 {
            let wanted = Wanted {
                many: Many::First(left.min(EQUALS_A_PAGE)),
                begin,
                ..Wanted::default()
            };
            let page = self
                .page(board, span, &wanted, DateTime::UNIX_EPOCH)
                .await?
                .standings;
            let Some(end) = page.last().filter(|end| end.key == key) else {
                break;
            };
            left -= page.len();
            last = Some(Member {
                key,
                user: end.user.clone(),
            });
            begin = Begin::After(Member {
                key,
                user: end.user.clone(),
            });
        }
        Ok(last)
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

fn trimmed(board: &Board, plan: &PeriodPlan) -> String {
    format!("{} {} trimmed", board.id, plan.period.as_str())
}
