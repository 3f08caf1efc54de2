//! Every key name, and the channel: nothing else spells one.
//!
//! Owns the layout `prefix:{partition}:what:…`; the braces make the partition the Redis Cluster hash tag, so that all
//! that one user's write touches lies on one node. Names that come from outside stand last, so they cannot run into
//! what follows.

use std::fmt::Display;
use std::sync::Arc;

use chrono::NaiveDate;

use super::{Partition, Row};
use crate::ids::{BoardId, RoomId};

/// The key names of one installation.
#[derive(Clone, Debug)]
pub struct Keys {
    prefix: Arc<str>,
}

impl Keys {
    /// Keys that start with `prefix`.
    pub fn new(prefix: &str) -> Keys {
        Keys {
            prefix: prefix.into(),
        }
    }

    /// Hash: how the data is laid out, see [`super::meta`].
    pub fn meta(&self) -> String {
        format!("{}:meta", self.prefix)
    }

    /// Channel: "board `id` changed", published by the scripts.
    pub fn changes(&self) -> String {
        format!("{}:changes", self.prefix)
    }

    /// Hash: `id` of the data's generation, `events` counted, `rows` given away.
    pub fn generation(&self, p: Partition) -> String {
        self.at(p, "generation")
    }

    /// Hash, a bucket of users: user -> row.
    pub fn row_of(&self, p: Partition, bucket: u32) -> String {
        self.at(p, format_args!("row-of:{bucket}"))
    }

    /// Hash, a bucket of rows: row within the bucket -> user.
    pub fn user_of(&self, p: Partition, bucket: u32) -> String {
        self.at(p, format_args!("user-of:{bucket}"))
    }

    /// String: what an operation answered.
    pub fn operation(&self, p: Partition, name: &str) -> String {
        self.at(p, format_args!("operation:{name}"))
    }

    /// String: how far an import has come, by the digest of its file and its target.
    pub fn import(&self, p: Partition, digest: &str) -> String {
        self.at(p, format_args!("import:{digest}"))
    }

    /// Hash, a bucket of rows: row within the bucket -> record of check-ins and wallet.
    pub fn record(&self, p: Partition, bucket: u32) -> String {
        self.at(p, format_args!("record:{bucket}"))
    }

    /// String: the check-in bits of a year, a segment of users.
    pub fn year(&self, p: Partition, year: i32, segment: u32) -> String {
        self.at(p, format_args!("year:{year}:{segment}"))
    }

    /// String: which check-ins of a year were made up, a segment of users.
    pub fn make_ups(&self, p: Partition, year: i32, segment: u32) -> String {
        self.at(p, format_args!("makeup:{year}:{segment}"))
    }

    /// Bitmap: who checked in on a day, a segment of rows.
    pub fn day(&self, p: Partition, date: NaiveDate, segment: u32) -> String {
        self.at(p, format_args!("day:{date}:{segment}"))
    }

    /// String: how many checked in on a day.
    pub fn day_count(&self, p: Partition, date: NaiveDate) -> String {
        self.at(p, format_args!("day-count:{date}"))
    }

    /// Bitmap: who was active on a day, a segment of rows.
    pub fn active(&self, p: Partition, date: NaiveDate, segment: u32) -> String {
        self.at(p, format_args!("active:{date}:{segment}"))
    }

    /// String: how many were active on a day.
    pub fn active_count(&self, p: Partition, date: NaiveDate) -> String {
        self.at(p, format_args!("active-count:{date}"))
    }

    /// Bitmap: several combined, for the time of one script.
    pub fn temporary(&self, p: Partition, name: &str) -> String {
        self.at(p, format_args!("temporary:{name}"))
    }

    /// Sorted set: a board's members in one span, best first.
    pub fn board(&self, p: Partition, board: &BoardId, span: &str) -> String {
        self.at(p, format_args!("board:{board}:{span}"))
    }

    /// Sorted set: the distinct points held in one span of a board, best first.
    pub fn board_distinct(&self, p: Partition, board: &BoardId, span: &str) -> String {
        self.at(p, format_args!("board-distinct:{board}:{span}"))
    }

    /// String: which day is in force for a board's windows.
    pub fn window_day(&self, p: Partition, board: &BoardId) -> String {
        self.at(p, format_args!("window-day:{board}"))
    }

    /// Hash: how far the building of a window's set has come.
    pub fn window_progress(&self, p: Partition, board: &BoardId, span: &str) -> String {
        self.at(p, format_args!("window-progress:{board}:{span}"))
    }

    /// String: which node looks after a partition.
    pub fn lease(&self, p: Partition) -> String {
        self.at(p, "lease")
    }

    /// Hash: up to which date boards and check-ins have been swept, and boards trimmed.
    pub fn swept(&self, p: Partition) -> String {
        self.at(p, "swept")
    }

    /// Hash, a bucket of users: user -> name and avatar.
    pub fn profile(&self, p: Partition, bucket: u32) -> String {
        self.at(p, format_args!("profile:{bucket}"))
    }

    /// String: how often a board has changed.
    pub fn board_version(&self, p: Partition, board: &BoardId) -> String {
        self.at(p, format_args!("board-version:{board}"))
    }

    /// Sorted set: when users were last seen in a room, or on the whole site.
    pub fn last_seen(&self, p: Partition, room: Option<&RoomId>) -> String {
        match room {
            None => self.at(p, "seen-on-site"),
            Some(room) => self.at(p, format_args!("seen-in:{room}")),
        }
    }

    /// Hash: a user's sessions, room and name -> when it was seen.
    pub fn sessions(&self, p: Partition, row: Row) -> String {
        self.at(p, format_args!("sessions:{}", row.get()))
    }

    /// Sorted set: rooms, by when the keeper should look at them.
    pub fn rooms(&self, p: Partition) -> String {
        self.at(p, "rooms")
    }

    /// Bitmap: who was seen within a minute (since 1970), a segment of rows.
    pub fn minute(&self, p: Partition, minute: i64, segment: u32) -> String {
        self.at(p, format_args!("minute:{minute}:{segment}"))
    }

    fn at(&self, p: Partition, rest: impl Display) -> String {
        format!("{}:{{{p}}}:{rest}", self.prefix)
    }
}
