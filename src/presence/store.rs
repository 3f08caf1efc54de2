//! Heartbeats and counts.
//!
//! Owns the keys and arguments of `heartbeat.lua` and the window in which a user counts as online. The time is the
//! server's; a client never sends one.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::checkin::rows::{self, DAY};
use crate::checkin::store::Keep;
use crate::config;
use crate::day::Zone;
use crate::ids::{RoomId, UserId};
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Keyspace, Memory, Row, Script, Unavailable};

static HEARTBEAT: Script = Script::new(
    "heartbeat",
    &[NUMBERS, MUTATION, DAY, include_str!("heartbeat.lua")],
);

/// How many users that are no longer online each heartbeat clears away from a set.
const CLEARED: u32 = 4;

/// The store of sightings.
#[derive(Clone)]
pub struct Presence {
    keyspace: Arc<Keyspace>,
    zone: Zone,
    keep: Keep,
    window: TimeDelta,
}

impl Presence {
    /// The presence of this configuration in that keyspace.
    pub fn new(keyspace: Arc<Keyspace>, zone: Zone, settings: &config::Settings) -> Presence {
        let window = TimeDelta::seconds(settings.presence.window_seconds.into());
        Presence {
            keyspace,
            zone,
            keep: Keep::from(settings),
            window,
        }
    }

    /// Within how many seconds a client should beat again.
    pub fn next_within_seconds(&self) -> i32 {
        (self.window.num_seconds() / 3).max(1) as i32
    }

    /// `user` is in `room` now, or on the site in no room.
    pub async fn heartbeat(
        &self,
        user: &UserId,
        room: Option<&RoomId>,
        now: DateTime<Utc>,
    ) -> Result<(), Unavailable> {
        let complete = |call: Call, row: Row| self.heartbeat_call(call, row, room, now);
        self.keyspace
            .mutate(&HEARTBEAT, user, Memory::None, complete)
            .await?;
        Ok(())
    }

    /// How many users are online in `room`, or on the whole site: seen within the window that ends with `now`.
    pub async fn count_online(&self, room: Option<&RoomId>, now: DateTime<Utc>) -> Result<u64, Unavailable> {
        let since = self.online_since(now);
        let counts: Vec<u64> = self
            .keyspace
            .gather(|request, p| {
                let mut count = redis::cmd("ZCOUNT");
                count
                    .arg(self.keyspace.keys().last_seen(p, room))
                    .arg(since)
                    .arg("+inf");
                request.command(count);
            })
            .await?;
        Ok(counts.into_iter().sum())
    }

    fn online_since(&self, now: DateTime<Utc>) -> i64 {
        (now - self.window).timestamp_millis()
    }

    fn heartbeat_call(&self, call: Call, row: Row, room: Option<&RoomId>, now: DateTime<Utc>) -> Call {
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let today = self.zone.date_of(now);
        let call = call
            .key(keys.active(p, today, rows::day_segment(row)))
            .key(keys.active_count(p, today))
            .key(keys.last_seen(p, None));
        let call = match room {
            Some(room) => call.key(keys.last_seen(p, Some(room))),
            None => call,
        };
        call.arg(now.timestamp_millis())
            .arg(row.get())
            .arg(self.keep.day_ttl(&self.zone, today, now))
            .arg(2 * self.window.num_seconds())
            .arg(self.online_since(now))
            .arg(CLEARED)
    }
}
