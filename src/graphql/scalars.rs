//! The scalars of the schema: dates, months and whole numbers that JSON keeps exact.
//!
//! Owns their wire form. What a date means is [`crate::day`]'s. (`DateTime` is async-graphql's own: RFC 3339.)

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use chrono::NaiveDate;

use crate::day::{self, Month};
use crate::ids::MAX_SAFE_INT;

/// A calendar date in the business time zone, such as `2026-11-30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date(pub NaiveDate);

#[Scalar]
impl ScalarType for Date {
    fn parse(value: Value) -> InputValueResult<Self> {
        let Value::String(text) = &value else {
            return Err(InputValueError::expected_type(value));
        };
        day::parse_date(text).map(Date).map_err(InputValueError::custom)
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

/// A calendar month, such as `2026-11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalendarMonth(pub Month);

#[Scalar(name = "Month")]
impl ScalarType for CalendarMonth {
    fn parse(value: Value) -> InputValueResult<Self> {
        let Value::String(text) = &value else {
            return Err(InputValueError::expected_type(value));
        };
        Month::parse(text)
            .map(CalendarMonth)
            .map_err(InputValueError::custom)
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

/// A whole number of at most 2^53 - 1 either way, so that every JSON client reads it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SafeInt(pub i64);

#[Scalar]
impl ScalarType for SafeInt {
    fn parse(value: Value) -> InputValueResult<Self> {
        let Value::Number(number) = &value else {
            return Err(InputValueError::expected_type(value));
        };
        match number.as_i64() {
            Some(whole) if whole.abs() <= MAX_SAFE_INT => Ok(SafeInt(whole)),
            _ => Err(InputValueError::custom(format!(
                "{number} is no whole number within 2^53 - 1 = {MAX_SAFE_INT}"
            ))),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(self.0)
    }
}

impl From<u64> for SafeInt {
    /// Counts of things that exist stay far below 2^53.
    fn from(count: u64) -> SafeInt {
        SafeInt(i64::try_from(count).unwrap_or(MAX_SAFE_INT).min(MAX_SAFE_INT))
    }
}

/// A small count as GraphQL's `Int`, which has 32 bits.
pub fn int(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
