//! `import scores`: past scores, applied in the order of their instants, each exactly once.
//!
//! The file is sorted outside memory by instant, then by its own order. Each partition counts how far it has come in
//! this file, within the script that applies a score; so a second run, or one after a crash, doubles nothing.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::lines::{Line, Lines};
use super::sorting::{Score, Sorter};
use super::{ImportError, Progress, Summary, persistently};
use crate::app::App;
use crate::ids::UserId;
use crate::keyspace::mutation::NotDone;
use crate::keyspace::{Answer, Call, Memory, Unavailable};
use crate::leaderboard::Board;
use crate::leaderboard::submit::{self, SUBMIT_SCORE};

/// Scores that go into one pipeline: enough to spare round trips, few enough to be answered in time by a busy Redis and
/// not to hold up a server beside us.
const BATCH: usize = 100;

/// Scores that are sorted in memory at a time; what is more goes by way of the disk.
const SEGMENT: usize = 100_000;

/// Applies the scores of the file at `path` to the board `board`.
pub async fn import(app: &App, path: &Path, board: &str) -> Result<Summary, ImportError> {
    let board = app
        .boards
        .boards()
        .get(board)
        .cloned()
        .ok_or_else(|| ImportError::UnknownBoard(board.to_owned()))?;
    let mut summary = Summary {
        rows: 0,
        applied: 0,
        known: 0,
        rejected: 0,
    };
    let mut lines = Lines::open(path, true, &app.zone, app.clock.now())?;
    let mut reading = Progress::new("reading", lines.length(), "bytes");
    let mut sorter = Sorter::new(SEGMENT);
    while let Some(line) = lines.next_line()? {
        summary.rows += 1;
        reading.at(line.position);
        match score(line, &board) {
            Ok(score) => sorter.push(score).map_err(ImportError::Sorting)?,
            Err((line, reason)) => reading.reject(line, reason),
        }
    }
    let identity = format!("{}:{}", board.id, lines.digest());
    summary.rejected = reading.finish();
    let sorted = sorter.done().map_err(ImportError::Sorting)?;
    let mut applying = Applying {
        done_before: persistently(async || places(app, &identity).await).await?,
        places: vec![0; app.keyspace.partition_count()],
        progress: Progress::new("scores", summary.rows - summary.rejected, "scores"),
        app,
        board,
        identity,
    };
    let mut batch = Vec::with_capacity(BATCH);
    for score in sorted {
        batch.push(applying.placed(score.map_err(ImportError::Sorting)?));
        if batch.len() == BATCH {
            applying.apply(&batch, &mut summary).await?;
            batch.clear();
        }
    }
    if !batch.is_empty() {
        applying.apply(&batch, &mut summary).await?;
    }
    // What came into closed periods may be too much for a capped board.
    persistently(async || app.boards.trim_anew(&applying.board).await).await?;
    summary.rejected += applying.progress.finish();
    Ok(summary)
}

fn score(line: Line, board: &Board) -> Result<Score, (u64, String)> {
    let number = line.number;
    let row = line.row.map_err(|reason| (number, reason))?;
    if !board.can_take(board.operator, row.points) {
        return Err((
            number,
            format!(
                "{} points lie beyond the board's {}",
                row.points, board.max_points
            ),
        ));
    }
    Ok(Score {
        at: row.at.timestamp_nanos_opt().unwrap_or_default(), // of 1900 to 2199, so there is one
        line: number,
        points: row.points,
        user: row.user,
    })
}

/// How far each partition has come in an import.
async fn places(app: &App, identity: &str) -> Result<Vec<u64>, Unavailable> {
    let places = app.keyspace.gather(|request, p| {
        let mut get = redis::cmd("GET");
        get.arg(app.keyspace.keys().import(p, identity));
        request.command(get);
    });
    let places: Vec<Option<u64>> = places.await?;
    Ok(places.into_iter().map(Option::unwrap_or_default).collect())
}

/// A score with its place among those of its partition.
struct Placed {
    score: Score,
    place: u64,
    /// Whether it was done when this import began.
    known: bool,
}

struct Applying<'a> {
    app: &'a App,
    board: Arc<Board>,
    identity: String,
    done_before: Vec<u64>,
    places: Vec<u64>,
    progress: Progress,
}

impl Applying<'_> {
    fn placed(&mut self, score: Score) -> Placed {
        let partition = self.app.keyspace.partition_of(&score.user).index();
        self.places[partition] += 1;
        let place = self.places[partition];
        Placed {
            place,
            score,
            known: place <= self.done_before[partition],
        }
    }

    async fn apply(&mut self, batch: &[Placed], summary: &mut Summary) -> Result<(), ImportError> {
        let mut answers = vec![None; batch.len()];
        persistently(async || self.send(batch, &mut answers).await).await?;
        for (placed, answer) in batch.iter().zip(answers.into_iter().flatten()) {
            match answer.text.as_str() {
                _ if placed.known => summary.known += 1,
                "REJECTED" => {
                    let most = self.board.max_points;
                    self.progress.reject(
                        placed.score.line,
                        format!("the sum would lie beyond the board's {most} points"),
                    );
                }
                // No period follows. It is told only now, since what is not kept changes with time, and places must not.
                "UNCHANGED" => {
                    let reason = "no period of the board that it lies in is kept any more";
                    self.progress.reject(placed.score.line, reason);
                }
                // Also one that an earlier try has done whose answer got lost, or another import of the file beside us.
                _ => summary.applied += 1,
            }
        }
        self.progress.at(summary.applied + summary.known);
        Ok(())
    }

    /// Sends the whole batch until every score of it is done: what was done already is passed over, and keeps the answer
    /// that it got first.
    async fn send(&self, batch: &[Placed], answers: &mut [Option<Answer>]) -> Result<(), Unavailable> {
        let users: Vec<UserId> = batch.iter().map(|placed| placed.score.user.clone()).collect();
        let mut now = self.app.clock.now();
        for _ in 0..8 {
            let rows = self.app.keyspace.rows_for(&users).await?;
            let calls = batch
                .iter()
                .zip(rows)
                .map(|(placed, row)| self.call(placed, row, now));
            let calls: Vec<Call> = calls.collect();
            let outcomes = self.app.keyspace.send(&SUBMIT_SCORE, &calls).await?;
            let (mut trouble, mut of_another_day) = (None, false);
            for ((user, outcome), answer) in users.iter().zip(outcomes).zip(answers.iter_mut()) {
                match outcome {
                    Ok(done) => {
                        answer.get_or_insert(done);
                    }
                    Err(NotDone::RowGone) => self.app.keyspace.forget_rows([user]),
                    Err(NotDone::Gap) => {} // follows from one before it that was not done
                    Err(NotDone::Unavailable(Unavailable::StaleDay)) => of_another_day = true,
                    Err(NotDone::Unavailable(cause)) => trouble = Some(cause),
                }
            }
            if let Some(cause) = trouble {
                return Err(cause);
            }
            if of_another_day {
                now = self.app.boards.turned(&self.board, now).await?;
            }
            if answers.iter().all(Option::is_some) {
                return Ok(());
            }
        }
        Err(Unavailable::Fault(
            "some scores of a batch could not be placed".into(),
        ))
    }

    fn call(&self, placed: &Placed, row: crate::keyspace::Row, now: DateTime<Utc>) -> Call {
        let boards = &self.app.boards;
        let at = DateTime::from_timestamp_nanos(placed.score.at);
        let memory = Memory::Place {
            import: &self.identity,
            place: placed.place,
        };
        let call = self.app.keyspace.call(&placed.score.user, row, &memory);
        let (board, user) = (&*self.board, placed.score.user.clone());
        let score = submit::Score {
            board,
            user,
            operator: board.operator,
            points: placed.score.points,
        };
        boards.score_call(call, &score, &boards.periods_at(board, at, now), at, now)
    }
}
