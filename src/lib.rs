//! Tallyboard: check-ins, boards and presence over Redis, pushed live through GraphQL.
//!
//! Read in this order: [`day`] (when is a date), [`keyspace`] (where a user's data lives), one feature, say
//! [`leaderboard`] (its rules, its scripts, its GraphQL face), then [`live`] (how a change reaches those who watch),
//! [`server`] (the door), [`auth`] (who is asking) and [`app`] (the wiring). `docs/ARCHITECTURE.md` walks a request
//! through these files.

pub mod app;
pub mod auth;
pub mod checkin;
pub mod clock;
pub mod config;
pub mod day;
pub mod error;
pub mod figures;
pub mod graphql;
pub mod ids;
pub mod import;
pub mod keyspace;
pub mod leaderboard;
pub mod live;
pub mod logs;
pub mod presence;
pub mod random;
pub mod rate;
pub mod request_id;
pub mod sampled;
pub mod server;
pub mod user;
