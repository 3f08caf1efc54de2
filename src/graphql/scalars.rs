//! The scalars of the schema: dates, months and whole numbers that JSON keeps exact.
//!
//! Owns their wire form. What a date means is [`crate::day`]'s. (`DateTime` is async-graphql's own: RFC 3339.)
//!
//! A value of the right JSON type that is no date or no whole number is carried into its resolver and refused there by
//! `get`: so its field is null with a code and words that help, and its neighbours are answered.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use chrono::NaiveDate;

use crate::day::{self, DateError, Month};
use crate::error::Error;
use crate::ids::MAX_SAFE_INT;

/// A calendar date in the business time zone, such as `2026-11-30`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Date(Result<NaiveDate, DateError>);

impl Date {
    /// The date, if it is one.
    pub fn get(&self) -> Result<NaiveDate, Error> {
        self.0.clone().map_err(Error::from)
    }
}

impl From<NaiveDate> for Date {
    fn from(date: NaiveDate) -> Date {
        Date(Ok(date))
    }
}

/// A calendar date in the business time zone, `YYYY-MM-DD`, such as `2026-11-30`, from 1900-01-01 to 2199-12-31. One that
/// the calendar does not have is refused as BAD_USER_INPUT.
#[Scalar]
impl ScalarType for Date {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => Ok(Date(day::parse_date(text))),
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::String(_))
    }

    fn to_value(&self) -> Value {
        self.0
            .as_ref()
            .map_or(Value::Null, |date| Value::String(date.to_string()))
    }
}

/// A calendar month, such as `2026-11`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarMonth(Result<Month, DateError>);

impl CalendarMonth {
    /// The month, if it is one.
    pub fn get(&self) -> Result<Month, Error> {
        self.0.clone().map_err(Error::from)
    }
}

impl From<Month> for CalendarMonth {
    fn from(month: Month) -> CalendarMonth {
        CalendarMonth(Ok(month))
    }
}

/// A calendar month in the business time zone, `YYYY-MM`, such as `2026-11`, from 1900-01 to 2199-12.
#[Scalar(name = "Month")]
impl ScalarType for CalendarMonth {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => Ok(CalendarMonth(Month::parse(text))),
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::String(_))
    }

    fn to_value(&self) -> Value {
        self.0
            .as_ref()
            .map_or(Value::Null, |month| Value::String(month.to_string()))
    }
}

/// A whole number of at most 2^53 - 1 either way, so that every JSON client reads it exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeInt(Result<i64, String>);

impl SafeInt {
    /// The number, if it is whole and exact.
    pub fn get(&self) -> Result<i64, Error> {
        self.0.clone().map_err(Error::BadUserInput)
    }
}

impl From<i64> for SafeInt {
    fn from(number: i64) -> SafeInt {
        SafeInt(Ok(number))
    }
}

/// A whole number within 2^53 - 1 = 9007199254740991 either way, so that every JSON client reads it exactly. A JSON number.
#[Scalar]
impl ScalarType for SafeInt {
    fn parse(value: Value) -> InputValueResult<Self> {
        let Value::Number(number) = &value else {
            return Err(InputValueError::expected_type(value));
        };
        Ok(SafeInt(match number.as_i64() {
            Some(whole) if (-MAX_SAFE_INT..=MAX_SAFE_INT).contains(&whole) => Ok(whole),
            _ => Err(format!(
                "{number} is no whole number within 2^53 - 1 = {MAX_SAFE_INT}"
            )),
        }))
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::Number(_))
    }

    fn to_value(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, |number| Value::from(*number))
    }
}

impl From<u64> for SafeInt {
    /// Counts of things that exist stay far below 2^53.
    fn from(count: u64) -> SafeInt {
        SafeInt(Ok(i64::try_from(count).unwrap_or(MAX_SAFE_INT).min(MAX_SAFE_INT)))
    }
}

/// A small count as GraphQL's `Int`, which has 32 bits.
pub fn int(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
