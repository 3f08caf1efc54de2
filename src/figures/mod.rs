//! Figures: who was active on which days, how many came back.
//!
//! [`range`] says which days may be asked for (pure), [`bitmaps`] combines days within Redis, [`store`] answers the
//! questions, [`roster`] writes the users themselves, [`graphql`] and [`live`] are the face. The bits are written by check-ins, imports
//! and heartbeats.

pub mod bitmaps;
pub mod graphql;
pub mod live;
pub mod range;
pub mod roster;
pub mod store;

use async_graphql::Enum;
use clap::ValueEnum;

pub use store::Figures;

/// What makes a user count on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, ValueEnum)]
pub enum Activity {
    /// The user checked in for it.
    CheckIn,
    /// The user was seen on it: by a heartbeat or a check-in.
    Online,
}

/// On how many days of a range a user must have been active to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, ValueEnum)]
pub enum DayMatch {
    /// On at least one.
    Any,
    /// On all of them.
    Every,
}
