//! Who is online: pages, and the presence of given users.
//!
//! Owns the order of the list, which is seen last first (of those seen in the same millisecond the larger id), and how pages
//! of the partitions are merged.

use chrono::{DateTime, Utc};
use redis::Value;

use super::Presence;
use crate::ids::{RoomId, UserId};
use crate::keyspace::{Request, Script, Unavailable, reply};
use crate::leaderboard::POSITION;

static ONLINE: Script = Script::new("online", &[POSITION, include_str!("online.lua")]);

/// Somebody who was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// When, in ms since 1970.
    pub at: i64,
    /// Who.
    pub user: UserId,
}

/// A page of who is online.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// How many are online.
    pub total: u64,
    /// Whether there is somebody before the page.
    pub has_previous: bool,
    /// Whether there is somebody after the page.
    pub has_next: bool,
    /// The rows, seen last first.
    pub rows: Vec<Seen>,
}

impl Presence {
    /// The `many` who come after `after` among those online in `room`, or on the whole site.
    pub async fn online(
        &self,
        room: Option<&RoomId>,
        many: usize,
        after: Option<&Seen>,
        now: DateTime<Utc>,
    ) -> Result<Page, Unavailable> {
        let mut request = Request::new();
        let (at, user) = match after {
            Some(seen) => (seen.at.to_string(), seen.user.to_string()),
            None => Default::default(),
        };
        let args = [
            self.online_since(now).to_string(),
            at,
            user,
            (many + 1).to_string(),
        ];
        for p in self.keyspace.partitions() {
            let set = self.keyspace.keys().last_seen(p, room);
            request.script(&ONLINE, &[set], &args);
        }
        let mut page = Page::default();
        for value in self.keyspace.run(&request).await? {
            let (online, before, rows): (u64, u64, Vec<Value>) = reply(value)?;
            page.total += online;
            page.has_previous |= before > 0;
            for row in rows.chunks(2) {
                let [user, at] = row else { break };
                page.rows.push(Seen {
                    at: reply(at.clone())?,
                    user: read_user(reply(user.clone())?)?,
                });
            }
        }
        page.rows.sort_by(|one, other| other.cmp(one));
        page.has_next = page.rows.len() > many;
        page.rows.truncate(many);
        Ok(page)
    }

    /// When each of `users` was seen in `room`, or on the site; `None` for who is not online.
    pub async fn seen(
        &self,
        users: &[UserId],
        room: Option<&RoomId>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Option<i64>>, Unavailable> {
        let mut request = Request::new();
        for user in users {
            let p = self.keyspace.partition_of(user);
            let mut score = redis::cmd("ZSCORE");
            score
                .arg(self.keyspace.keys().last_seen(p, room))
                .arg(user.as_str());
            request.command(score);
        }
        if request.is_empty() {
            return Ok(Vec::new());
        }
        let since = self.online_since(now);
        let seen = self.keyspace.run(&request).await?.into_iter().map(|value| {
            let at: Option<f64> = reply(value)?;
            Ok(at.map(|at| at as i64).filter(|at| *at >= since))
        });
        seen.collect()
    }
}

pub(super) fn read_user(stored: String) -> Result<UserId, Unavailable> {
    UserId::parse(&stored).map_err(|bad| Unavailable::Fault(format!("a stored user that is none: {bad}")))
}
