//! Scoring: one script puts a score into all spans of a board.
//!
//! Owns the call of `submit_score.lua`, the board's part of other features' scripts (check-ins that feed boards), and
//! the reading of its answer.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};

use super::heat;
use super::ranking::Ahead;
use super::standings::Standing;
use super::windows::TRIES;
use super::{BOARD, Board, Leaderboards, OpenPeriod, SCORE, ScoreOperator, Span, WINDOW, score};
use crate::ids::{BoardId, UserId};
use crate::keyspace::mutation::{Fields, MUTATION, NotDone};
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Answer, Call, Memory, Operation, Script, Unavailable};

pub(crate) static SUBMIT_SCORE: Script = Script::new(
    "submit_score",
    &[
        NUMBERS,
        MUTATION,
        BOARD,
        WINDOW,
        SCORE,
        include_str!("submit_score.lua"),
    ],
);

/// What a score did.
#[derive(Debug)]
pub enum Submitted {
    /// It changed some period, or none.
    Counted {
        /// Whether any period changed.
        changed: bool,
        /// Whether the client has sent this before under the same key; the standings are as they were then.
        replayed: bool,
        /// Points before and place after, for each period.
        periods: Vec<PeriodResult>,
    },
    /// It would have left the board's range; nothing changed.
    OutOfRange,
    /// The operation's key was used before with other arguments; nothing changed.
    Conflict,
}

/// One period after a score.
#[derive(Debug)]
pub struct PeriodResult {
    /// Which; always a [`Span::Period`].
    pub span: Span,
    /// `None`: the user was not there.
    pub previous_points: Option<i64>,
    /// Where the user stands; with several partitions counted in its own only, see [`Leaderboards::complete`].
    pub standing: Standing,
}

/// A score to submit.
#[derive(Debug, Clone)]
pub struct Score<'a> {
    /// Where.
    pub board: &'a Board,
    /// Who.
    pub user: UserId,
    /// How it changes the points.
    pub operator: ScoreOperator,
    /// How many.
    pub points: i64,
}

impl Score<'_> {
    /// Whether it lies beyond the board whatever the user holds. Those of a client's own operation are left to the script,
    /// which knows whether they came before.
    fn is_hopeless(&self, operation: &Operation) -> bool {
        !operation.is_clients() && !self.board.can_take(self.operator, self.points)
    }
}

impl Leaderboards {
    /// Submits a score at `now`.
    pub async fn submit(
        &self,
        score: &Score<'_>,
        now: DateTime<Utc>,
        operation: &Operation,
    ) -> Result<Submitted, Unavailable> {
        if score.is_hopeless(operation) {
            return Ok(Submitted::OutOfRange);
        }
        let (periods, mut clock) = (self.periods_at(score.board, now, now), now);
        for _ in 0..TRIES {
            let complete = |call: Call, _| self.score_call(call, score, &periods, now, clock);
            match self
                .keyspace
                .mutate(&SUBMIT_SCORE, &score.user, Memory::Operation(operation), complete)
                .await
            {
                Err(Unavailable::StaleDay) => clock = self.turned(score.board, clock).await?,
                answer => return self.submitted(score, &answer?, operation, now),
            }
        }
        Err(Unavailable::StaleDay)
    }

    /// Submits scores at `now` in one pipeline, in their order; each has an outcome of its own.
    pub async fn submit_many(
        &self,
        scores: &[(Score<'_>, Operation)],
        now: DateTime<Utc>,
    ) -> Vec<Result<Submitted, Unavailable>> {
        let mut outcomes: Vec<Option<Result<Submitted, Unavailable>>> = scores
            .iter()
            .map(|(score, operation)| score.is_hopeless(operation).then_some(Ok(Submitted::OutOfRange)))
            .collect();
        let mut clocks = HashMap::new();
        for _ in 0..TRIES {
            let left: Vec<usize> = (0..scores.len()).filter(|&i| outcomes[i].is_none()).collect();
            if left.is_empty() {
                break;
            }
            let sent = self.submit_left(scores, &left, &mut outcomes, &mut clocks, now);
            if let Err(cause) = sent.await {
                for i in left {
                    outcomes[i].get_or_insert_with(|| Err(cause.clone()));
                }
            }
        }
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or(Err(Unavailable::StaleDay)))
            .collect()
    }

    /// Sends what has no outcome yet; what has to be sent again after a turn of the day or for a row still has none. A
    /// partition or a board in trouble fails its own scores only. `clocks` are the boards' whose day in force is later
    /// than that of `now`.
    async fn submit_left<'s>(
        &self,
        scores: &'s [(Score<'_>, Operation)],
        left: &[usize],
        outcomes: &mut [Option<Result<Submitted, Unavailable>>],
        clocks: &mut HashMap<&'s BoardId, DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<(), Unavailable> {
        let users: Vec<UserId> = left.iter().map(|&i| scores[i].0.user.clone()).collect();
        let (mut calls, mut sent) = (Vec::with_capacity(left.len()), Vec::with_capacity(left.len()));
        for (&i, row) in left.iter().zip(self.keyspace.each_row_for(&users).await?) {
            match row {
                Ok(row) => {
                    let (score, operation) = &scores[i];
                    let periods = self.periods_at(score.board, now, now);
                    let clock = clocks.get(&score.board.id).copied().unwrap_or(now);
                    let call = self
                        .keyspace
                        .call(&score.user, row, &Memory::Operation(operation));
                    calls.push(self.score_call(call, score, &periods, now, clock));
                    sent.push(i);
                }
                Err(cause) => outcomes[i] = Some(Err(cause)),
            }
        }
        let mut of_another_day: HashMap<&BoardId, &Board> = HashMap::new();
        for (&i, answer) in sent.iter().zip(self.keyspace.send(&SUBMIT_SCORE, &calls).await?) {
            let (score, operation) = &scores[i];
            match answer {
                Ok(answer) => outcomes[i] = Some(self.submitted(score, &answer, operation, now)),
                Err(NotDone::Unavailable(Unavailable::StaleDay)) => {
                    of_another_day.insert(&score.board.id, score.board);
                }
                Err(NotDone::RowGone) => self.keyspace.forget_rows([&score.user]),
                Err(NotDone::Gap) => {
                    outcomes[i] = Some(Err(Unavailable::Fault("a score has no place".into())))
                }
                Err(NotDone::Unavailable(cause)) => outcomes[i] = Some(Err(cause)),
            }
        }
        for (id, board) in of_another_day {
            let clock = clocks.get(id).copied().unwrap_or(now);
            match self.turned(board, clock).await {
                Ok(clock) => {
                    clocks.insert(id, clock);
                }
                Err(cause) => {
                    for &i in sent.iter().filter(|&&i| scores[i].0.board.id == *id) {
                        outcomes[i].get_or_insert_with(|| Err(cause.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Completes a call of `submit_score.lua`: a score dated `at`, written at `now`.
    pub(crate) fn score_call(
        &self,
        call: Call,
        score: &Score<'_>,
        periods: &[OpenPeriod],
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Call {
        let operator = match score.operator {
            ScoreOperator::Increment => "INCREMENT",
            ScoreOperator::Set => "SET",
            ScoreOperator::Best => "BEST",
        };
        self.board_part(
            call.arg(operator).arg(score.points),
            score.board,
            periods,
            at,
            now,
        )
    }

    /// Every period that a score dated `at` goes into at `now`.
    pub(crate) fn periods_at(&self, board: &Board, at: DateTime<Utc>, now: DateTime<Utc>) -> Vec<OpenPeriod> {
        OpenPeriod::kept(board, at, now, &self.zone, self.retention)
    }

    /// Every period that `date` lies in and that is still open at `now`.
    pub(crate) fn open_periods_of(
        &self,
        board: &Board,
        date: NaiveDate,
        now: DateTime<Utc>,
    ) -> Vec<OpenPeriod> {
        let is_open = |period: &OpenPeriod| period.ends_at.is_none_or(|end| now < end);
        let mut periods = self.periods_at(board, self.zone.start_of(date), now);
        periods.retain(is_open);
        periods
    }

    /// Adds what `score.lua` needs to a call for a score in these periods alone, written at `now`: windows and heat stay as
    /// they are.
    pub(crate) fn periods_part(
        &self,
        call: Call,
        board: &Board,
        periods: &[OpenPeriod],
        now: DateTime<Utc>,
    ) -> Call {
        self.head_part(call, board, periods, now, now).arg(0).arg("cold")
    }

    /// Adds what `score.lua` needs to a call.
    pub(crate) fn board_part(
        &self,
        call: Call,
        board: &Board,
        periods: &[OpenPeriod],
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Call {
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let call = self.head_part(call, board, periods, at, now);
        let call = self.windows_part(call, board, periods, at, now);
        match self.heat_of(board) {
            None => call.arg("cold"),
            Some(heat) => {
                let stored = Span::Heat(heat).stored();
                call.key(keys.board(p, &board.id, &stored))
                    .key(keys.board_distinct(p, &board.id, &stored))
                    .arg("heat")
                    .arg(heat.half_lives(at))
                    .arg(heat::OFFSET)
            }
        }
    }

    fn head_part(
        &self,
        call: Call,
        board: &Board,
        periods: &[OpenPeriod],
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Call {
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let head = call
            .key(keys.board_version(p, &board.id))
            .arg(&board.id)
            .arg(keys.changes())
            .arg(score::sign(board.order))
            .arg(board.max_points)
            .arg(periods.len());
        periods.iter().fold(head, |call, period| {
            call.key(keys.board(p, &board.id, &period.key))
                .key(keys.board_distinct(p, &board.id, &period.key))
                .arg(period.plan.tie_range())
                .arg(period.tick(at))
                .arg(period.ttl(now))
        })
    }

    fn submitted(
        &self,
        score: &Score<'_>,
        answer: &Answer,
        operation: &Operation,
        now: DateTime<Utc>,
    ) -> Result<Submitted, Unavailable> {
        if answer.conflict {
            return Ok(Submitted::Conflict);
        }
        // What is answered again is about the periods of when it was done.
        let at = answer
            .replayed
            .and_then(DateTime::from_timestamp_millis)
            .unwrap_or(now);
        let (board, periods) = (score.board, self.periods_at(score.board, at, at));
        let mut fields = answer.fields();
        let changed = match fields.text()? {
            "REJECTED" => return Ok(Submitted::OutOfRange),
            outcome => outcome == "APPLIED",
        };
        let mut results = Vec::with_capacity(board.plans.len());
        while let Some(name) = fields.next() {
            let previous_points = fields.optional()?;
            // A period that was configured then and is no more has nothing to be shown by, but its fields.
            let period = periods.iter().find(|period| period.key == name);
            let span = period.cloned().map(Span::Period);
            let standing = self.standing_from(board, span.as_ref(), &score.user, &mut fields, now)?;
            let hidden = period.is_none_or(|period| board.is_hidden(&period.plan));
            if let (false, Some(span), Some(standing)) = (hidden, span, standing) {
                results.push(PeriodResult {
                    span,
                    previous_points,
                    standing,
                });
            }
        }
        let replayed = answer.replayed.is_some() && operation.is_clients();
        Ok(Submitted::Counted {
            changed,
            replayed,
            periods: results,
        })
    }

    /// The standing that the next fields tell; `None` without a span to read them by.
    fn standing_from(
        &self,
        board: &Board,
        span: Option<&Span>,
        user: &UserId,
        fields: &mut Fields<'_>,
        now: DateTime<Utc>,
    ) -> Result<Option<Standing>, Unavailable> {
        let key = fields.number()?;
        let ahead = Ahead {
            members: fields.number()?,
            better: fields.number()?,
        };
        let (distinct, participants) = (fields.number()?, fields.number()?);
        Ok(span.map(|span| self.shown(board, span, user.clone(), key, ahead, distinct, participants, now)))
    }
}
