//! Where a user's check-in bits lie. Pure.
//!
//! Owns the layout: a user's year is a row of 46 bytes (bit = day of the year from 0, first bit highest, as SETBIT
//! counts), 1,024 rows to a segment string; a day's bitmap has a bit a row, 2^20 rows to a segment.

use chrono::{Datelike, NaiveDate};

use crate::keyspace::{Row, Unavailable, reply};

/// The Lua part that sets these bits; needs `mutation.lua` before it.
pub const DAY: &str = include_str!("day.lua");

/// Bytes of one user's year: 368 bits for 366 days.
pub const YEAR_BYTES: u32 = 46;

/// Users whose year shares one string.
const YEAR_ROWS: u32 = 1_024;

/// The last bit of a year's segment: setting it first sizes the string at once, without slack.
pub const LAST_YEAR_BIT: u32 = YEAR_ROWS * YEAR_BYTES * 8 - 1;

/// Rows to a segment of a day's bitmap: 128 KiB.
pub const DAY_ROWS: u32 = 1 << 20;

/// Which segment of a year holds `row`.
pub fn year_segment(row: Row) -> u32 {
    row.get() / YEAR_ROWS
}

/// The bit of `date` within its year's segment.
pub fn year_bit(row: Row, date: NaiveDate) -> u32 {
    (row.get() % YEAR_ROWS) * YEAR_BYTES * 8 + date.ordinal0()
}

/// First and last byte of the row within its year's segment, as GETRANGE wants them.
pub fn year_bytes(row: Row) -> (u32, u32) {
    let first = (row.get() % YEAR_ROWS) * YEAR_BYTES;
    (first, first + YEAR_BYTES - 1)
}

/// The dates of `year` whose bits are set, ascending. Bytes that are not there count as unset.
pub fn dates(year: i32, bytes: &[u8]) -> Vec<NaiveDate> {
    let days = (0..YEAR_BYTES * 8).filter(|day| {
        let byte = bytes.get((day / 8) as usize).copied().unwrap_or(0);
        byte & (0x80 >> (day % 8)) != 0
    });
    days.filter_map(|day| NaiveDate::from_yo_opt(year, day + 1))
        .collect()
}

/// The dates of `years`, ascending, from the reply to a GETRANGE of each.
pub fn dates_of(years: &[i32], replies: Vec<redis::Value>) -> Result<Vec<NaiveDate>, Unavailable> {
    let mut all = Vec::new();
    for (&year, value) in years.iter().zip(replies) {
        all.extend(dates(year, &reply::<Vec<u8>>(value)?));
    }
    Ok(all)
}

/// Which segment of a day's bitmap holds `row`.
pub fn day_segment(row: Row) -> u32 {
    row.get() / DAY_ROWS
}

/// The bit of `row` within its segment of a day's bitmap.
pub fn day_bit(row: Row) -> u32 {
    row.get() % DAY_ROWS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bit_set_where_year_bit_says_is_read_back_as_its_date_and_no_other(
            row in 0_u32..5_000, year in 1970_i32..2100, days in prop::collection::btree_set(1_u32..=366, 0..40),
        ) {
            let row = Row::number(row);
            let wanted: Vec<NaiveDate> = days.iter().filter_map(|&day| NaiveDate::from_yo_opt(year, day)).collect();
            let mut segment = vec![0_u8; (LAST_YEAR_BIT as usize + 1) / 8];
            for date in &wanted {
                let bit = year_bit(row, *date);
                segment[(bit / 8) as usize] |= 0x80 >> (bit % 8);
            }
            let (first, last) = year_bytes(row);
            prop_assert_eq!(dates(year, &segment[first as usize..=last as usize]), wanted);
        }
    }

    #[test]
    fn the_script_has_as_many_rows_to_a_bitmap() {
        assert!(DAY.contains(&format!("local ROWS_A_BITMAP = {DAY_ROWS} ")));
    }

    #[test]
    fn segments_do_not_overlap_and_the_last_bit_is_the_last_rows() {
        assert_eq!(
            (year_segment(Row::number(1_023)), year_segment(Row::number(1_024))),
            (0, 1)
        );
        assert_eq!(year_bytes(Row::number(1_023)).1 * 8 + 7, LAST_YEAR_BIT);
        assert_eq!(
            (day_segment(Row::number(DAY_ROWS)), day_bit(Row::number(DAY_ROWS))),
            (1, 0)
        );
    }
}
