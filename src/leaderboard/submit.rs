//! Scoring: one script puts a score into all periods of a board.
//!
//! Owns the call of `submit_score.lua`, the board's part of other features' scripts (check-ins that feed boards), and
//! the reading of its answer.

use chrono::{DateTime, Utc};

use super::ranking::Ahead;
use super::standings::Standing;
use super::{BOARD, Board, Leaderboards, OpenPeriod, ScoreOperator, score};
use crate::ids::UserId;
use crate::keyspace::mutation::{Fields, MUTATION};
use crate::keyspace::{Answer, Call, Memory, Partition, Script, Unavailable};

pub(crate) static SUBMIT_SCORE: Script = Script::new(
    "submit_score",
    &[MUTATION, BOARD, include_str!("submit_score.lua")],
);

/// What a score did.
#[derive(Debug)]
pub enum Submitted {
    /// It changed some period, or none.
    Counted {
        /// Whether any period changed.
        changed: bool,
        /// Points before and place after, for each period.
        periods: Vec<PeriodResult>,
    },
    /// It would have left the board's range; nothing changed.
    OutOfRange,
}

/// One period after a score.
#[derive(Debug)]
pub struct PeriodResult {
    /// Which.
    pub period: OpenPeriod,
    /// `None`: the user was not there.
    pub previous_points: Option<i64>,
    /// Where the user stands now; with several partitions counted in its own only, see
    /// [`Leaderboards::complete`].
    pub standing: Standing,
}

impl Leaderboards {
    /// Scores `points` for `user` on `board` at `now`.
    pub async fn submit(
        &self,
        board: &Board,
        user: &UserId,
        operator: ScoreOperator,
        points: i64,
        now: DateTime<Utc>,
        memory: Memory<'_>,
    ) -> Result<Submitted, Unavailable> {
        if points.abs() > board.max_points {
            // No operator could bring it back within; this also keeps the script's sums exact.
            return Ok(Submitted::OutOfRange);
        }
        let periods = OpenPeriod::kept(board, now, now, &self.zone, self.retention);
        let complete = |call: Call, _| self.score_call(call, board, operator, points, &periods, now, now);
        let answer = self
            .keyspace
            .mutate(&SUBMIT_SCORE, user, memory, complete)
            .await?;
        self.submitted(board, user, &answer, periods, now)
    }

    /// Completes a call of `submit_score.lua`: a score dated `at`, written at `now`.
    #[allow(clippy::too_many_arguments)] // they are the script's arguments
    pub(crate) fn score_call(
        &self,
        call: Call,
        board: &Board,
        operator: ScoreOperator,
        points: i64,
        periods: &[OpenPeriod],
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Call {
        let operator = match operator {
            ScoreOperator::Increment => "INCREMENT",
            ScoreOperator::Set => "SET",
            ScoreOperator::Best => "BEST",
        };
        self.board_part(call.arg(operator).arg(points), board, periods, at, now)
    }

    /// Adds what `board.lua` needs to a call.
    pub(crate) fn board_part(
        &self,
        call: Call,
        board: &Board,
        periods: &[OpenPeriod],
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Call {
        let (keys, p): (_, Partition) = (self.keyspace.keys(), call.partition());
        let head = call
            .key(keys.board_version(p, &board.id))
            .arg(&board.id)
            .arg(keys.changes())
            .arg(score::sign(board.order))
            .arg(board.max_points)
            .arg(periods.len());
        periods.iter().fold(head, |call, period| {
            call.key(keys.board(p, &board.id, &period.key))
                .key(keys.board_points(p, &board.id, &period.key))
                .arg(period.plan.tie_range())
                .arg(period.tick(at))
                .arg(period.ttl(now))
        })
    }

    fn submitted(
        &self,
        board: &Board,
        user: &UserId,
        answer: &Answer,
        periods: Vec<OpenPeriod>,
        now: DateTime<Utc>,
    ) -> Result<Submitted, Unavailable> {
        let mut fields = answer.fields();
        let changed = match fields.text()? {
            "REJECTED" => return Ok(Submitted::OutOfRange),
            outcome => outcome == "APPLIED",
        };
        let periods = periods
            .into_iter()
            .map(|period| {
                let previous_points = fields.optional()?;
                let standing = self.standing_from(board, &period, user, &mut fields, now)?;
                Ok(PeriodResult {
                    period,
                    previous_points,
                    standing,
                })
            })
            .collect::<Result<_, Unavailable>>()?;
        Ok(Submitted::Counted { changed, periods })
    }

    fn standing_from(
        &self,
        board: &Board,
        period: &OpenPeriod,
        user: &UserId,
        fields: &mut Fields<'_>,
        now: DateTime<Utc>,
    ) -> Result<Standing, Unavailable> {
        let key = fields.number()?;
        let (members, better) = (fields.number()?, fields.number()?);
        let distinct = Some(fields.number()?).filter(|_| self.keyspace.partition_count() == 1);
        let participants = fields.number()?;
        Ok(Standing::new(
            board,
            period,
            user.clone(),
            key,
            Ahead {
                members,
                better,
                distinct,
            },
            participants,
            now,
        ))
    }
}
