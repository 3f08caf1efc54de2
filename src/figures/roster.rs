//! Who was active, by name: a roster as CSV.
//!
//! Owns the file's form: a header and a user a line. One segment is held at a time, so memory stays flat.

use chrono::NaiveDate;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::bitmaps::Segment;
use super::range::BadRange;
use super::{Activity, DayMatch, Figures};
use crate::app::App;
use crate::checkin::rows::DAY_ROWS;
use crate::keyspace::{Request, Row, Unavailable, reply};

/// Users whose names are read in one round trip, at most.
const NAMES_A_TRIP: usize = 8_192;

/// Whom to list.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The first day.
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
    /// On how many of them.
    pub days: DayMatch,
    /// What counts.
    pub activity: Activity,
}

/// Why a roster ended early.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// The days cannot be asked for.
    #[error(transparent)]
    Range(#[from] BadRange),
    /// Redis is away or refuses.
    #[error("the roster is not complete: {0}")]
    Unavailable(#[from] Unavailable),
    /// It cannot be written.
    #[error("the roster is not complete, it cannot be written: {0}")]
    Output(#[from] csv::Error),
    /// It cannot be written to its end.
    #[error("the roster is not complete, it cannot be written: {0}")]
    Flush(#[from] std::io::Error),
}

/// Writes who was active on the wanted days to `out`; answers how many they are. While `out` takes nothing, this waits.
pub async fn write(app: &App, wanted: &Wanted, mut out: impl AsyncWrite + Unpin) -> Result<u64, RosterError> {
    let figures = &app.figures;
    let dates = figures
        .kept(app.clock.now())
        .range(figures.zone(), wanted.from, wanted.to)?;
    let mut lines = Vec::new();
    csv::Writer::from_writer(&mut lines).write_record(["user"])?;
    let mut count = 0;
    for segment in figures.bitmaps.segments().await? {
        let keys = figures.keys(segment, wanted.activity, dates.iter().copied());
        let bytes = figures.bitmaps.bytes(segment, wanted.days, keys).await?;
        let mut rows = set_rows(segment, &bytes).peekable();
        while rows.peek().is_some() {
            let some: Vec<Row> = rows.by_ref().take(NAMES_A_TRIP).collect();
            let mut csv = csv::Writer::from_writer(std::mem::take(&mut lines));
            for user in figures.names(segment, &some).await? {
                csv.write_record([user])?;
                count += 1;
            }
            lines = csv.into_inner().map_err(|error| error.into_error())?;
            out.write_all(&lines).await?;
            lines.clear();
        }
    }
    out.write_all(&lines).await?;
    out.flush().await?;
    Ok(count)
}

/// The rows whose bits are set, ascending.
fn set_rows(segment: Segment, bytes: &[u8]) -> impl Iterator<Item = Row> + '_ {
    let first = segment.number * DAY_ROWS;
    (0_u32..).zip(bytes).flat_map(move |(byte, bits)| {
        let set = (0..8).filter(move |bit| bits & (0x80_u8 >> bit) != 0);
        set.map(move |bit| Row::number(first + byte * 8 + bit))
    })
}

impl Figures {
    /// The users of `rows`; who was erased meanwhile is left out.
    async fn names(&self, segment: Segment, rows: &[Row]) -> Result<Vec<String>, Unavailable> {
        let mut request = Request::new();
        for bucket in rows.chunk_by(|one, other| one.bucket() == other.bucket()) {
            let mut get = redis::cmd("HMGET");
            let key = bucket
                .first()
                .map(|row| self.keyspace.keys().user_of(segment.partition, row.bucket()));
            get.arg(key);
            for row in bucket {
                get.arg(row.field());
            }
            request.command(get);
        }
        let mut names = Vec::with_capacity(rows.len());
        for value in self.keyspace.run(&request).await? {
            names.extend(reply::<Vec<Option<String>>>(value)?.into_iter().flatten());
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Partition;

    #[test]
    fn a_set_bit_is_the_row_of_its_place() {
        let segment = Segment {
            partition: Partition::number(0),
            number: 2,
        };
        let rows: Vec<u32> = set_rows(segment, &[0x81, 0, 0x40]).map(Row::get).collect();
        assert_eq!(rows, [0, 7, 17].map(|row| 2 * DAY_ROWS + row));
    }
}
