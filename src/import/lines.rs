//! Rows of a file: `user,date` or `user,at`, with `points` where scores are meant.
//!
//! Owns the judging of single rows, with their line numbers. Bytes come from [`super::source`].

use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};
use csv::ByteRecord;

use super::ImportError;
use super::source::Source;
use crate::day::{Zone, parse_date};
use crate::ids::{MAX_SAFE_INT, UserId};

/// One good row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Who.
    pub user: UserId,
    /// When: `at`, or the start of the business day `date`.
    pub at: DateTime<Utc>,
    /// The business date.
    pub date: NaiveDate,
    /// How many points; 0 where the file has none.
    pub points: i64,
}

/// A line of the file: its number and the row, or why it is none.
pub struct Line {
    /// From 1, the header's.
    pub number: u64,
    /// How many bytes of the file lie before its end.
    pub position: u64,
    /// The row, or why it is refused.
    pub row: Result<Row, String>,
}

/// The lines of a file.
pub struct Lines<'z> {
    path: PathBuf,
    reader: csv::Reader<Source>,
    record: ByteRecord,
    columns: Columns,
    zone: &'z Zone,
    now: DateTime<Utc>,
}

#[derive(Clone, Copy, Default)]
struct Columns {
    user: usize,
    when: usize,
    dated: bool,
    points: Option<usize>,
}

impl<'z> Lines<'z> {
    /// Opens `path` and reads its header. Rows after `now` will be refused.
    pub fn open(
        path: &Path,
        with_points: bool,
        zone: &'z Zone,
        now: DateTime<Utc>,
    ) -> Result<Lines<'z>, ImportError> {
        let source = Source::open(path).map_err(|cause| ImportError::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        let reader = csv::ReaderBuilder::new()
            .flexible(true)
            .has_headers(false) // it is read as the first row, to count its lines
            .buffer_capacity(1 << 16)
            .from_reader(source);
        let mut lines = Lines {
            path: path.to_owned(),
            reader,
            record: ByteRecord::new(),
            columns: Columns::default(),
            zone,
            now,
        };
        lines.read()?;
        lines.columns = columns(&lines.record, with_points).ok_or_else(|| ImportError::Columns {
            path: path.to_owned(),
            wanted: if with_points {
                "user,date,points or user,at,points"
            } else {
                "user,date or user,at"
            },
            found: lines.header(),
        })?;
        Ok(lines)
    }

    /// The file's length in bytes.
    pub fn length(&self) -> u64 {
        self.reader.get_ref().length()
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<Line>, ImportError> {
        let Some((number, joined)) = self.read()? else {
            return Ok(None);
        };
        let row = self.judge().map_err(|reason| match joined {
            0 => reason,
            _ => format!("{reason} (a quote makes it one row with the next {joined} lines)"),
        });
        Ok(Some(Line {
            number,
            position: self.reader.get_ref().taken(),
            row,
        }))
    }

    /// The SHA-256 of the whole file, in hexadecimal; to be asked at the end.
    pub fn digest(self) -> String {
        self.reader.into_inner().digest()
    }

    /// Reads a record; answers with the number of its first line and how many more it has. Empty lines are passed over.
    fn read(&mut self) -> Result<Option<(u64, u64)>, ImportError> {
        let before = self.reader.position().line();
        self.reader.get_mut().begin_row();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(false) => Ok(None),
            Ok(true) => {
                let last = self.reader.position().line() - 1;
                let inner = self.record.as_slice().iter().filter(|byte| **byte == b'\n');
                // Counted back from its end, since the reader's own place may be an empty line before it; but an open
                // quote takes in the last line end too.
                let first = (last - inner.count() as u64).max(before);
                Ok(Some((first, last - first)))
            }
            Err(error) => Err(ImportError::Unreadable {
                path: self.path.clone(),
                cause: std::io::Error::other(format!("line {before}: {error}")),
            }),
        }
    }

    fn header(&self) -> String {
        let names: Vec<_> = self.record.iter().map(String::from_utf8_lossy).collect();
        match names.join(",") {
            nothing if nothing.is_empty() => "nothing".into(),
            names => beginning(&names),
        }
    }

    fn judge(&self) -> Result<Row, String> {
        let user = UserId::parse(self.field(self.columns.user, "user")?).map_err(|bad| bad.to_string())?;
        let when = if self.columns.dated { "date" } else { "at" };
        let (at, date) = self.moment(self.field(self.columns.when, when)?)?;
        let points = match self.columns.points {
            Some(column) => whole(self.field(column, "points")?)?,
            None => 0,
        };
        Ok(Row {
            user,
            at,
            date,
            points,
        })
    }

    fn field(&self, column: usize, name: &str) -> Result<&str, String> {
        let bytes = self
            .record
            .get(column)
            .ok_or_else(|| format!("it has no {name}"))?;
        let text = std::str::from_utf8(bytes).map_err(|_| format!("its {name} is not UTF-8"))?;
        Ok(text.trim())
    }

    fn moment(&self, text: &str) -> Result<(DateTime<Utc>, NaiveDate), String> {
        let (at, date) = if self.columns.dated {
            let date = parse_date(text).map_err(|bad| bad.to_string())?;
            if !self.zone.exists(date) {
                return Err(format!("{date} did not take place in {}", self.zone.name()));
            }
            (self.zone.start_of(date), date)
        } else {
            let at = DateTime::parse_from_rfc3339(text)
                .map_err(|_| {
                    format!(
                        "{:?} is no instant; 2026-11-30T08:15:00Z would be",
                        beginning(text)
                    )
                })?
                .to_utc();
            let date = self.zone.date_of(at);
            parse_date(&date.to_string()).map_err(|bad| bad.to_string())?; // within the supported years
            (at, date)
        };
        if at > self.now {
            return Err(format!("{text} lies in the future"));
        }
        Ok((at, date))
    }
}

fn columns(header: &ByteRecord, with_points: bool) -> Option<Columns> {
    let find = |name: &str| {
        header
            .iter()
            .position(|column| column.trim_ascii() == name.as_bytes())
    };
    let (date, at) = (find("date"), find("at"));
    Some(Columns {
        user: find("user")?,
        when: date.or(at)?,
        dated: date.is_some(),
        points: if with_points { Some(find("points")?) } else { None },
    })
}

fn whole(text: &str) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(points) if points.unsigned_abs() <= MAX_SAFE_INT.unsigned_abs() => Ok(points),
        _ => Err(format!("{:?} is no whole number of points", beginning(text))),
    }
}

/// As much of a field as a message should repeat.
fn beginning(text: &str) -> String {
    const LENGTH: usize = 80;
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
