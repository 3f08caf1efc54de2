//! Rows of a file: `user,date` or `user,at`, with `points` where scores are meant.
//!
//! Owns the reading and judging of single rows, with their line numbers. The file is streamed and its digest computed
//! on the way.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};
use csv::StringRecord;
use sha2::{Digest, Sha256};

use super::ImportError;
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
    reader: csv::Reader<Digesting>,
    columns: Columns,
    zone: &'z Zone,
    now: DateTime<Utc>,
    length: u64,
}

#[derive(Clone, Copy)]
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
        let unreadable = |cause| ImportError::Unreadable {
            path: path.to_owned(),
            cause,
        };
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let digesting = Digesting {
            inner: BufReader::with_capacity(1 << 16, file),
            sha: Sha256::new(),
        };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(digesting);
        let header = reader
            .headers()
            .map_err(|error| unreadable(error.into()))?
            .clone();
        let columns = columns(&header, with_points).ok_or_else(|| ImportError::Columns {
            path: path.to_owned(),
            wanted: if with_points {
                "user,date,points or user,at,points"
            } else {
                "user,date or user,at"
            },
            found: header.iter().collect::<Vec<_>>().join(","),
        })?;
        Ok(Lines {
            path: path.to_owned(),
            reader,
            columns,
            zone,
            now,
            length,
        })
    }

    /// The file's length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<Line>, ImportError> {
        let mut record = StringRecord::new();
        let read = self.reader.read_record(&mut record);
        let position = self.reader.position().byte();
        match read {
            Ok(false) => Ok(None),
            Ok(true) => {
                let number = record.position().map_or(0, csv::Position::line);
                Ok(Some(Line {
                    number,
                    position,
                    row: self.judge(&record),
                }))
            }
            Err(error) => match error.kind() {
                csv::ErrorKind::Utf8 { pos, .. } => {
                    let number = pos.as_ref().map_or(0, csv::Position::line);
                    Ok(Some(Line {
                        number,
                        position,
                        row: Err("it is not UTF-8".into()),
                    }))
                }
                _ => Err(ImportError::Unreadable {
                    path: self.path.clone(),
                    cause: error.into(),
                }),
            },
        }
    }

    /// The SHA-256 of the whole file, in hexadecimal; to be asked at the end.
    pub fn digest(self) -> String {
        let digest = self.reader.into_inner().sha.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn judge(&self, record: &StringRecord) -> Result<Row, String> {
        let field = |column: usize, name: &str| record.get(column).ok_or_else(|| format!("it has no {name}"));
        let user = UserId::parse(field(self.columns.user, "user")?).map_err(|bad| bad.to_string())?;
        let (at, date) = self.moment(field(
            self.columns.when,
            if self.columns.dated { "date" } else { "at" },
        )?)?;
        let points = match self.columns.points {
            Some(column) => whole(field(column, "points")?)?,
            None => 0,
        };
        Ok(Row {
            user,
            at,
            date,
            points,
        })
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
                .map_err(|_| format!("{text:?} is no instant; 2026-11-30T08:15:00Z would be"))?
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

fn columns(header: &StringRecord, with_points: bool) -> Option<Columns> {
    let find = |name: &str| {
        header
            .iter()
            .position(|column| column.trim_start_matches('\u{feff}') == name)
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
        Ok(points) if points.abs() <= MAX_SAFE_INT => Ok(points),
        _ => Err(format!("{text:?} is no whole number of points")),
    }
}

/// Reads on while computing the digest of what went by.
struct Digesting {
    inner: BufReader<File>,
    sha: Sha256,
}

impl Read for Digesting {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sha.update(&buffer[..read]);
        Ok(read)
    }
}
