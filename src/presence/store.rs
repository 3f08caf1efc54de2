//! Heartbeats, leaving and counts.
//!
//! Owns the keys and arguments of `heartbeat.lua` and `leave.lua`, and the window in which a user counts as online. The time
//! is the server's; a client never sends one. A user has sessions, each in a room or in none: the user's last-seen in a
//! room is the newest of the sessions there, on the site the newest of all.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::minutes::{HEARTBEAT_COUNT, LastCount};
use super::watched::Watched;
use crate::checkin::keep::Keep;
use crate::checkin::rows::{self, DAY};
use crate::config::{self, PresenceMode};
use crate::day::Zone;
use crate::error::Error;
use crate::figures::bitmaps::Bitmaps;
use crate::ids::{RoomId, SessionId, UserId};
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Keyspace, Memory, Row, Script, Unavailable};

static HEARTBEAT: Script = Script::new(
    "heartbeat",
    &[NUMBERS, MUTATION, DAY, include_str!("heartbeat.lua")],
);

pub(super) static LEAVE: Script = Script::new("leave", &[NUMBERS, MUTATION, include_str!("leave.lua")]);

/// The store of sightings.
#[derive(Clone)]
pub struct Presence {
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) zone: Zone,
    pub(super) keep: Keep,
    window: TimeDelta,
    limits: Limits,
    mode: PresenceMode,
    pub(super) bitmaps: Bitmaps,
    pub(super) last_count: LastCount,
    pub(super) watched: Watched,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    rooms: u32,
    sessions: u32,
}

/// Where a session is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// In which room; `None`: on the site, in no room.
    pub room: Option<RoomId>,
    /// Which tab or device; `None`: the one without a name.
    pub session: Option<SessionId>,
    /// Of which node's sockets it is the session; `None`: of heartbeats. So a node's leave takes off only what it beats for.
    pub node: Option<Arc<str>>,
}

impl Place {
    /// As the scripts name it.
    fn field(&self) -> String {
        let session = self.session.as_ref().map_or("", SessionId::as_str);
        match &self.node {
            None => format!("{} {session}", self.room_name()),
            Some(node) => format!("{} {session} {node}", self.room_name()),
        }
    }

    fn room_name(&self) -> &str {
        self.room.as_ref().map_or("", RoomId::as_str)
    }
}

/// Why a heartbeat was not taken.
#[derive(Debug)]
pub enum NoBeat {
    /// The user is in that many rooms already.
    Rooms(u32),
    /// The user has that many sessions already, each the only one in its room.
    Sessions(u32),
    /// Only a count of the whole site is kept.
    NoRooms,
    /// Redis is away or refuses.
    Unavailable(Unavailable),
}

/// What cannot be asked where only a count is kept.
pub fn only_counted(what: &str) -> Error {
    Error::BadUserInput(format!(
        "{what}: this server only counts who is online on the whole site (presence.mode = \"count\")"
    ))
}

impl From<NoBeat> for Error {
    fn from(why: NoBeat) -> Error {
        match why {
            NoBeat::Rooms(most) => Error::BadUserInput(format!(
                "a user is in at most {most} rooms at a time; leave one first"
            )),
            NoBeat::Sessions(most) => Error::BadUserInput(format!(
                "a user has at most {most} sessions at a time; leave one first"
            )),
            NoBeat::NoRooms => only_counted("there are no rooms"),
            NoBeat::Unavailable(cause) => cause.into(),
        }
    }
}

impl Presence {
    /// The presence of this configuration in that keyspace.
    pub fn new(keyspace: Arc<Keyspace>, zone: Zone, settings: &config::Settings, keep: Keep) -> Presence {
        let presence = &settings.presence;
        Presence {
            bitmaps: Bitmaps::new(keyspace.clone()),
            last_count: LastCount::default(),
            watched: Watched::default(),
            mode: presence.mode,
            keyspace,
            zone,
            keep,
            window: TimeDelta::seconds(presence.window_seconds.into()),
            limits: Limits {
                rooms: presence.max_rooms_per_user,
                sessions: presence.max_sessions_per_user,
            },
        }
    }

    /// Whether only a count is kept: then there are no rooms, no sessions and no list.
    pub fn only_counts(&self) -> bool {
        self.mode == PresenceMode::Count
    }

    /// How long a sighting counts.
    pub fn window(&self) -> TimeDelta {
        self.window
    }

    /// Within how many seconds a client should beat again.
    pub fn next_within_seconds(&self) -> i32 {
        (self.window.num_seconds() / 3).max(1) as i32
    }

    /// `user` is at `place` now.
    pub async fn heartbeat(&self, user: &UserId, place: &Place, now: DateTime<Utc>) -> Result<(), NoBeat> {
        if self.only_counts() && place.room.is_some() {
            return Err(NoBeat::NoRooms);
        }
        let complete = |call: Call, row: Row| self.heartbeat_call(call, row, place, now);
        let answer = self
            .keyspace
            .mutate(self.heartbeat_script(), user, Memory::None, complete)
            .await
            .map_err(NoBeat::Unavailable)?;
        match answer.text.as_str() {
            "ROOMS" => Err(NoBeat::Rooms(self.limits.rooms)),
            "SESSIONS" => Err(NoBeat::Sessions(self.limits.sessions)),
            _ => Ok(()),
        }
    }

    /// `user` is no longer at `place`. Whether another session keeps the user online there: in the room, or on the site if
    /// the place is in none.
    pub async fn leave(&self, user: &UserId, place: &Place, now: DateTime<Utc>) -> Result<bool, Unavailable> {
        if self.only_counts() {
            // A bit knows nothing of sessions.
            return match self.keyspace.row(user).await? {
                Some(row) => self.in_minutes(user, row, now).await,
                None => Ok(false),
            };
        }
        let leaving = [(user.clone(), place.clone())];
        let answers = self.keyspace.in_time(self.leaves(&leaving, now)).await?;
        Ok(answers.iter().any(|(_, answer)| answer.as_deref() == Some("1")))
    }

    /// How many users are online in `room`, or on the whole site: seen within the window that ends with `now`.
    pub async fn count_online(&self, room: Option<&RoomId>, now: DateTime<Utc>) -> Result<u64, Unavailable> {
        if self.only_counts() {
            return self.count_minutes(now).await;
        }
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

    /// As [`Presence::count_online`], for the answers to heartbeats and leaves, which are many.
    pub async fn count_for_answer(
        &self,
        room: Option<&RoomId>,
        now: DateTime<Utc>,
    ) -> Result<u64, Unavailable> {
        match self.only_counts() {
            true => self.count_lately(now).await,
            false => self.count_online(room, now).await,
        }
    }

    /// From when on a sighting counts at `now`, in ms since 1970.
    pub(super) fn online_since(&self, now: DateTime<Utc>) -> i64 {
        (now - self.window).timestamp_millis()
    }

    /// How long the sets outlive the last write, in seconds: a backstop behind the keeper.
    pub(super) fn backstop(&self) -> i64 {
        2 * self.window.num_seconds()
    }

    pub(super) fn heartbeat_script(&self) -> &'static Script {
        match self.only_counts() {
            true => &HEARTBEAT_COUNT,
            false => &HEARTBEAT,
        }
    }

    pub(super) fn heartbeat_call(&self, call: Call, row: Row, place: &Place, now: DateTime<Utc>) -> Call {
        if self.only_counts() {
            return self.count_call(call, row, now);
        }
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let today = self.zone.date_of(now);
        let call = call
            .key(keys.active(p, today, rows::day_segment(row)))
            .key(keys.active_count(p, today))
            .key(keys.sessions(p, row))
            .key(keys.last_seen(p, None));
        let call = match &place.room {
            Some(room) => call.key(keys.last_seen(p, Some(room))).key(keys.rooms(p)),
            None => call,
        };
        call.arg(now.timestamp_millis())
            .arg(row.get())
            .arg(self.keep.day_ttl(&self.zone, today, now))
            .arg(self.backstop())
            .arg(self.online_since(now))
            .arg(place.field())
            .arg(place.room_name())
            .arg(self.limits.rooms)
            .arg(self.limits.sessions)
    }

    pub(super) fn leave_call(&self, call: Call, row: Row, place: &Place, now: DateTime<Utc>) -> Call {
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let call = call.key(keys.sessions(p, row)).key(keys.last_seen(p, None));
        let call = match &place.room {
            Some(room) => call.key(keys.last_seen(p, Some(room))),
            None => call,
        };
        call.arg(place.field())
            .arg(place.room_name())
            .arg(self.online_since(now))
            .arg(self.backstop())
    }
}
