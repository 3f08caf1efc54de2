//! `import scores`: past scores, applied in the order of their instants, each exactly once.
//!
//! The file is sorted outside memory by instant, then by its own order. Each partition counts how far it has come in
//! this file, within the script that applies a score; so a second run, or one after a crash, doubles nothing.

use std::cmp::Ordering;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use extsort::{ExternalSorter, Sortable};

use super::lines::{Line, Lines};
use super::{ImportError, Progress, Summary, persistently};
use crate::app::App;
use crate::ids::UserId;
use crate::keyspace::mutation::NotDone;
use crate::keyspace::{Answer, Call, Memory, Unavailable};
use crate::leaderboard::Board;
use crate::leaderboard::submit::{self, SUBMIT_SCORE};

/// Scores that go into one pipeline.
const BATCH: usize = 500;

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
    let mut sorter = ExternalSorter::new().with_segment_size(SEGMENT).pushed::<Score>();
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
        places: vec![0; app.keyspace.partition_count()],
        progress: Progress::new("scores", summary.rows - summary.rejected, "scores"),
        app,
        board,
        identity,
    };
    let mut batch = Vec::with_capacity(BATCH);
    for score in sorted {
        batch.push(applying.placed(score.map_err(ImportError::Sorting)?)?);
        if batch.len() == BATCH {
            applying.apply(&batch, &mut summary).await?;
            batch.clear();
        }
    }
    applying.apply(&batch, &mut summary).await?;
    summary.rejected += applying.progress.finish();
    Ok(summary)
}

fn score(line: Line, board: &Board) -> Result<Score, (u64, String)> {
    let number = line.number;
    let row = line.row.map_err(|reason| (number, reason))?;
    if row.points.abs() > board.max_points {
        return Err((
            number,
            format!(
                "{} points lie beyond the board's {}",
                row.points, board.max_points
            ),
        ));
    }
    Ok(Score {
        at: row.at.timestamp_millis(),
        line: number,
        points: row.points,
        user: row.user.as_str().into(),
    })
}

/// A score with its place among those of its partition.
struct Placed {
    score: Score,
    user: UserId,
    place: u64,
}

struct Applying<'a> {
    app: &'a App,
    board: Arc<Board>,
    identity: String,
    places: Vec<u64>,
    progress: Progress,
}

impl Applying<'_> {
    fn placed(&mut self, score: Score) -> Result<Placed, ImportError> {
        let user = UserId::parse(&score.user).map_err(|bad| Unavailable::Fault(bad.to_string()))?;
        let place = &mut self.places[self.app.keyspace.partition_of(&user).index()];
        *place += 1;
        Ok(Placed {
            place: *place,
            score,
            user,
        })
    }

    async fn apply(&mut self, batch: &[Placed], summary: &mut Summary) -> Result<(), ImportError> {
        let answers = persistently(async || self.send(batch).await).await?;
        persistently(async || self.app.boards.trim_anew(&self.board).await).await?;
        for (placed, answer) in batch.iter().zip(answers) {
            match answer.text.as_str() {
                _ if answer.replayed.is_some() => summary.known += 1,
                "REJECTED" => {
                    let most = self.board.max_points;
                    self.progress.reject(
                        placed.score.line,
                        format!("the sum would lie beyond the board's {most} points"),
                    );
                }
                _ => summary.applied += 1,
            }
        }
        self.progress.at(summary.applied + summary.known);
        Ok(())
    }

    /// Sends the whole batch until every score of it is done: what was done already is passed over.
    async fn send(&self, batch: &[Placed]) -> Result<Vec<Answer>, Unavailable> {
        let users: Vec<UserId> = batch.iter().map(|placed| placed.user.clone()).collect();
        let mut now = self.app.clock.now();
        for _ in 0..8 {
            let rows = self.app.keyspace.rows_for(&users).await?;
            let calls: Vec<Call> = batch
                .iter()
                .zip(rows)
                .map(|(placed, row)| self.call(placed, row, now))
                .collect();
            let outcomes = self.app.keyspace.send(&SUBMIT_SCORE, &calls).await?;
            let (mut done, mut of_another_day) = (Vec::with_capacity(batch.len()), false);
            for (user, outcome) in users.iter().zip(outcomes) {
                match outcome {
                    Ok(answer) => done.push(answer),
                    Err(NotDone::RowGone) => self.app.keyspace.forget_rows([user]),
                    Err(NotDone::Gap) => {} // follows from one before it that was not done
                    Err(NotDone::Unavailable(Unavailable::StaleDay)) => of_another_day = true,
                    Err(NotDone::Unavailable(cause)) => return Err(cause),
                }
            }
            if of_another_day {
                now = self.app.boards.turned(&self.board, now).await?;
            }
            if done.len() == batch.len() {
                return Ok(done);
            }
        }
        Err(Unavailable::Fault(
            "some scores of a batch could not be placed".into(),
        ))
    }

    fn call(&self, placed: &Placed, row: crate::keyspace::Row, now: DateTime<Utc>) -> Call {
        let boards = &self.app.boards;
        let at = DateTime::from_timestamp_millis(placed.score.at).unwrap_or_default();
        let memory = Memory::Place {
            import: &self.identity,
            place: placed.place,
        };
        let call = self.app.keyspace.call(&placed.user, row, &memory);
        let (board, user) = (&*self.board, placed.user.clone());
        let score = submit::Score {
            board,
            user,
            operator: board.operator,
            points: placed.score.points,
        };
        boards.score_call(call, &score, &boards.periods_at(board, at, now), at, now)
    }
}

/// One row of the file, as sorted: by instant, then by line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Score {
    at: i64,
    line: u64,
    points: i64,
    user: String,
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        (self.at, self.line).cmp(&(other.at, other.line))
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Sortable for Score {
    fn encode<W: Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&self.at.to_le_bytes())?;
        writer.write_all(&self.line.to_le_bytes())?;
        writer.write_all(&self.points.to_le_bytes())?;
        writer.write_all(&[self.user.len() as u8])?; // a user id has at most 128 bytes
        writer.write_all(self.user.as_bytes())
    }

    fn decode<R: Read>(reader: &mut R) -> io::Result<Score> {
        let mut eight = || {
            let mut bytes = [0; 8];
            reader.read_exact(&mut bytes).map(|()| bytes)
        };
        let (at, line, points) = (
            i64::from_le_bytes(eight()?),
            u64::from_le_bytes(eight()?),
            i64::from_le_bytes(eight()?),
        );
        let mut length = [0];
        reader.read_exact(&mut length)?;
        let mut user = vec![0; length[0].into()];
        reader.read_exact(&mut user)?;
        let user = String::from_utf8(user).map_err(io::Error::other)?;
        Ok(Score {
            at,
            line,
            points,
            user,
        })
    }
}
