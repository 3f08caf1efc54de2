//! Scores in the order of their instants, then of the file; what does not fit into memory goes by way of the disk.

use std::cmp::Ordering;
use std::io::{self, Read, Write};

use extsort::{ExternalSorter, PushExternalSorter, Sortable};

use crate::ids::UserId;

/// One row of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    /// When, in nanoseconds since 1970.
    pub at: i64,
    /// Its line in the file.
    pub line: u64,
    /// How many points.
    pub points: i64,
    /// Whose.
    pub user: UserId,
}

impl Score {
    fn order(&self, other: &Score) -> Ordering {
        (self.at, self.line).cmp(&(other.at, other.line))
    }
}

/// Takes scores in any order.
pub struct Sorter {
    inner: PushExternalSorter<Score, fn(&Score, &Score) -> Ordering>,
    segment: usize,
    count: usize,
}

impl Sorter {
    /// One that keeps about `segment` scores in memory.
    pub fn new(segment: usize) -> Sorter {
        let sorter = ExternalSorter::new().with_segment_size(segment);
        Sorter {
            inner: sorter.pushed_by(Score::order as fn(&Score, &Score) -> Ordering),
            segment,
            count: 0,
        }
    }

    /// Takes one more.
    pub fn push(&mut self, score: Score) -> io::Result<()> {
        self.count += 1;
        self.inner.push(score)
    }

    /// All of them in order.
    pub fn done(mut self) -> io::Result<impl Iterator<Item = io::Result<Score>>> {
        // extsort 0.5 hands out nothing at all if it has just emptied its memory, which it does with every score beyond
        // a full segment. One more, which stands last and is left out, keeps it from that.
        if self.count > 0 && self.count.is_multiple_of(self.segment + 1) {
            self.inner.push(Score {
                at: i64::MAX,
                line: u64::MAX,
                points: 0,
                user: UserId::parse("left-out").map_err(io::Error::other)?,
            })?;
        }
        Ok(self.inner.done()?.take(self.count))
    }
}

impl Sortable for Score {
    fn encode<W: Write>(&self, writer: &mut W) -> io::Result<()> {
        let user = self.user.as_str();
        writer.write_all(&self.at.to_le_bytes())?;
        writer.write_all(&self.line.to_le_bytes())?;
        writer.write_all(&self.points.to_le_bytes())?;
        writer.write_all(&[user.len() as u8])?; // a user id has at most 128 bytes
        writer.write_all(user.as_bytes())
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
        let user = std::str::from_utf8(&user).map_err(io::Error::other)?;
        Ok(Score {
            at,
            line,
            points,
            user: UserId::parse(user).map_err(io::Error::other)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_comes_out_once_and_in_order_however_many_there_are() {
        for (segment, most) in [(1, 60), (4, 60), (100, 60)] {
            for count in 0..=most {
                let score = |line: u64| Score {
                    at: (line * 7 % 5) as i64 - 2,
                    line,
                    points: -(line as i64),
                    user: UserId::parse(&format!("user-{line}")).unwrap(),
                };
                let mut sorter = Sorter::new(segment);
                for line in 0..count {
                    sorter.push(score(line)).unwrap();
                }
                let mut wanted: Vec<Score> = (0..count).map(score).collect();
                wanted.sort_by(Score::order);
                let sorted: Vec<Score> = sorter.done().unwrap().map(Result::unwrap).collect();
                assert_eq!(sorted, wanted, "{count} with {segment} in memory");
            }
        }
    }
}
