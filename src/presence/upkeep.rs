//! What time does to presence: who has gone is cleared away.
//!
//! Owns the batches. It is called by one node at a time, under the keeper's lease, and may stop half-way or run twice.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Presence;
use super::list::read_user;
use crate::ids::{RoomId, UserId};
use crate::keyspace::{Partition, Request, Script, Unavailable, reply};

static EVICT: Script = Script::new("evict", &[include_str!("evict.lua")]);

static EVICT_ROOMS: Script = Script::new("evict_rooms", &[include_str!("evict_rooms.lua")]);

/// How many users one script takes off.
pub const BATCH: usize = 400;

/// How many rooms one script looks at.
const ROOMS: usize = 100;

/// The pause between two batches, in which others get their turn.
const PAUSE: Duration = Duration::from_millis(2);

impl Presence {
    /// Clears away from `partitions` who is no longer online at `now`; answers how many were taken off the site.
    pub async fn look_after(&self, partitions: &[Partition], now: DateTime<Utc>) -> Result<u64, Unavailable> {
        if self.only_counts() {
            return self.forget_minutes(partitions, now).await.map(|()| 0);
        }
        let mut gone = 0;
        for &p in partitions {
            loop {
                let (found, evicted) = self.evict(p, now).await?;
                gone += evicted;
                if found < BATCH {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            while self.evict_from_rooms(p, now).await? {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(gone)
    }

    /// One batch of the site's; how many were found and how many taken off.
    async fn evict(&self, p: Partition, now: DateTime<Utc>) -> Result<(usize, u64), Unavailable> {
        let keys = self.keyspace.keys();
        let (site, since) = (keys.last_seen(p, None), self.online_since(now));
        let gone: Vec<String> = self.first_before(&site, since, BATCH).await?;
        if gone.is_empty() {
            return Ok((0, 0));
        }
        let users: Vec<UserId> = gone.into_iter().map(read_user).collect::<Result<_, _>>()?;
        let rows = self.keyspace.known_rows(&users).await?;
        // Who has no row any more was erased, sessions and all: they stand last, where no key does.
        let mut users: Vec<_> = users.iter().zip(rows).collect();
        users.sort_by_key(|(_, row)| row.is_none());
        let sessions = users.iter().filter_map(|(_, row)| *row);
        let names = [keys.generation(p), site].into_iter();
        let names: Vec<String> = names.chain(sessions.map(|row| keys.sessions(p, row))).collect();
        let args = [self.keyspace.generation().to_owned(), since.to_string()].into_iter();
        let args: Vec<String> = args
            .chain(users.iter().map(|(user, _)| user.to_string()))
            .collect();
        Ok((users.len(), self.one(&EVICT, &names, &args).await?))
    }

    /// One batch of the rooms'; whether there was anything to do.
    async fn evict_from_rooms(&self, p: Partition, now: DateTime<Utc>) -> Result<bool, Unavailable> {
        let keys = self.keyspace.keys();
        let since = self.online_since(now);
        let due = self.first_before(&keys.rooms(p), since, ROOMS).await?;
        if due.is_empty() {
            return Ok(false);
        }
        let mut names = vec![keys.generation(p), keys.rooms(p)];
        let mut args = vec![
            self.keyspace.generation().to_owned(),
            since.to_string(),
            BATCH.to_string(),
            self.backstop().to_string(),
        ];
        for room in due {
            let room = RoomId::parse(&room)
                .map_err(|bad| Unavailable::Fault(format!("a stored room that is none: {bad}")))?;
            names.push(keys.last_seen(p, Some(&room)));
            args.push(room.to_string());
        }
        self.one(&EVICT_ROOMS, &names, &args).await?;
        Ok(true)
    }

    async fn first_before(&self, set: &str, since: i64, most: usize) -> Result<Vec<String>, Unavailable> {
        let mut request = Request::new();
        let mut range = redis::cmd("ZRANGE");
        range.arg(set).arg("-inf").arg(format!("({since}")).arg("BYSCORE");
        range.arg("LIMIT").arg(0).arg(most);
        request.command(range);
        match self.keyspace.run(&request).await?.pop() {
            Some(value) => reply(value),
            None => Ok(Vec::new()),
        }
    }

    async fn one(
        &self,
        script: &'static Script,
        keys: &[String],
        args: &[String],
    ) -> Result<u64, Unavailable> {
        let mut request = Request::new();
        request.script(script, keys, args);
        match self.keyspace.run(&request).await?.pop() {
            Some(value) => reply(value),
            None => Ok(0),
        }
    }
}
