//! Leaderboards: boards by configuration, their periods, scores and places.
//!
//! Read [`plan`] (how points and ties fit into 53 bits), [`score`] (encoding), [`period`] (which sets a date belongs
//! to), [`submit`] and [`standings`] (the store: write and read), [`ranking`] (places along a page), [`graphql`].

pub mod board;
pub mod graphql;
pub mod period;
pub mod plan;
pub mod ranking;
pub mod score;
pub mod standings;
pub mod submit;

use std::sync::Arc;

pub use board::{Board, BoardOrder, Boards, RankMethod, ScoreOperator, TieBreak};
pub use period::{OpenPeriod, Retention};

use crate::day::Zone;
use crate::keyspace::Keyspace;

/// The Lua part that puts a score into all periods of a board.
pub const BOARD: &str = include_str!("board.lua");

/// The boards' store: what they are and where their scores lie.
#[derive(Clone)]
pub struct Leaderboards {
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) zone: Zone,
    pub(super) boards: Arc<Boards>,
    pub(super) retention: Retention,
}

impl Leaderboards {
    /// The boards of this configuration in that keyspace.
    pub fn new(
        keyspace: Arc<Keyspace>,
        zone: Zone,
        boards: Arc<Boards>,
        retention: Retention,
    ) -> Leaderboards {
        Leaderboards {
            keyspace,
            zone,
            boards,
            retention,
        }
    }

    /// How long closed periods stay in Redis.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// All boards, as configured.
    pub fn boards(&self) -> &Boards {
        &self.boards
    }
}
