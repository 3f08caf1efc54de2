//! A record as it is stored: numbers in text, in one field of a hash. Pure; `record.lua` reads and writes the same.
//!
//! Owns their order: the first check-in ever (days from the newest: 0 or negative; a positive number is a date), the
//! newest, the length of its run, the longest run, check-ins ever, points and cards that the newest check-in paid, points
//! and cards held; then last day and length of each run that is over and has to be remembered, oldest first. Dates are
//! days since 1970-01-01. A total of 0 means no check-in yet, and the numbers before it mean nothing then.

use std::fmt;

use chrono::NaiveDate;

use super::ended::Ended;
use super::record::{Done, Record};
use super::rewards::Reward;
use crate::day::{day_number, from_day_number};
use crate::keyspace::Unavailable;
use crate::keyspace::mutation::Fields;

/// The Lua part that reads and writes records.
pub const RECORD: &str = include_str!("record.lua");

impl Record {
    /// Reads all that is left of `fields`.
    pub fn read(fields: &mut Fields<'_>) -> Result<Record, Unavailable> {
        let (first, last): (i64, i64) = (fields.number()?, fields.number()?);
        let mut done = Done {
            first: day(if first > 0 { first } else { last + first })?,
            last: day(last)?,
            run: fields.number()?,
            longest: fields.number()?,
            total: fields.number()?,
            paid: reward(fields)?,
            ended: Vec::new(),
        };
        let wallet = reward(fields)?;
        while let Some(last) = fields.further()? {
            done.ended.push(Ended {
                last: day(last)?,
                run: fields.number()?,
            });
        }
        Ok(Record {
            done: (done.total > 0).then_some(done),
            wallet,
        })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.done {
            None => write!(f, "0 0 0 0 0 0 0")?,
            Some(done) => {
                let last = day_number(done.last);
                let first = day_number(done.first) - last;
                let Done {
                    run,
                    longest,
                    total,
                    paid,
                    ..
                } = done;
                write!(
                    f,
                    "{first} {last} {run} {longest} {total} {} {}",
                    paid.points, paid.cards
                )?;
            }
        }
        write!(f, " {} {}", self.wallet.points, self.wallet.cards)?;
        let ended = self.done.iter().flat_map(|done| &done.ended);
        for Ended { last, run } in ended {
            write!(f, " {} {run}", day_number(*last))?;
        }
        Ok(())
    }
}

fn day(number: i64) -> Result<NaiveDate, Unavailable> {
    from_day_number(number).ok_or_else(|| Unavailable::Fault(format!("{number} is no day")))
}

fn reward(fields: &mut Fields<'_>) -> Result<Reward, Unavailable> {
    Ok(Reward {
        points: fields.number()?,
        cards: fields.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_with_and_without_check_ins() {
        let wallet = Reward { points: 70, cards: 2 };
        let day = |text: &str| text.parse().unwrap();
        let done = Done {
            first: day("2026-01-01"),
            last: day("2026-12-31"),
            run: 7,
            longest: 40,
            total: 300,
            paid: Reward {
                points: 150,
                cards: 0,
            },
            ended: Vec::new(),
        };
        let over = [("2025-12-31", 900), ("2026-12-20", 355)];
        let over = over.map(|(last, run)| Ended { last: day(last), run });
        let with = |ended: &[Ended]| Done {
            ended: ended.to_vec(),
            ..done.clone()
        };
        for (done, numbers) in [
            (None, 9),
            (Some(done.clone()), 9),
            (Some(with(&over[..1])), 11),
            (Some(with(&over)), 13),
        ] {
            let record = Record { done, wallet };
            let stored = record.to_string();
            assert_eq!(stored.split(' ').count(), numbers, "{stored}");
            assert_eq!(Record::read(&mut Fields::of(&stored)).unwrap(), record);
        }
        let record = Record {
            done: Some(done),
            wallet,
        };
        let dated = "20454 20818 7 40 300 150 0 70 2";
        assert_eq!(Record::read(&mut Fields::of(dated)).unwrap(), record);
        assert_eq!(record.to_string(), "-364 20818 7 40 300 150 0 70 2");
    }
}
