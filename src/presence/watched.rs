//! The counts that are watched: one look is at all of them.
//!
//! Owns which rooms somebody follows on this node, and when Redis is asked. Every follower comes once a second; whoever has
//! had the last look's count makes the next look, and the others find theirs made.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::Presence;
use crate::clock::Clock;
use crate::ids::RoomId;
use crate::keyspace::{Request, Unavailable, reply};

/// A look older than this is of no use.
const FRESH: Duration = Duration::from_secs(1);

/// Rooms times partitions that go into one pipeline.
const BATCH: usize = 1_000;

/// A room, or the whole site.
type Where = Option<RoomId>;

/// How many are online somewhere, and as of when.
pub type Counted = (u64, DateTime<Utc>);

/// What is watched on this node.
#[derive(Clone, Default)]
pub(super) struct Watched {
    looks: Arc<Mutex<Looks>>,
    /// One at a time looks.
    looking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Looks {
    /// How many follow each.
    watchers: HashMap<Where, usize>,
    /// Which look was the last, and when it was made.
    last: Option<(u64, Instant)>,
    /// What it found.
    counts: HashMap<Where, Counted>,
    /// The last look that failed.
    failed: Option<(Instant, Unavailable)>,
}

/// Somebody who follows a count.
pub struct Watcher {
    presence: Presence,
    room: Where,
    /// The last look that this one has had.
    had: AtomicU64,
}

impl Watched {
    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looks {
    /// What a watcher of `room` that has had the look `had` may take, with the look's number.
    fn newer(&self, room: &Where, had: u64) -> Option<(u64, Counted)> {
        let (number, at) = self.last?;
        let counted = self.counts.get(room)?;
        (number > had && at.elapsed() < FRESH).then_some((number, *counted))
    }
}

impl Watcher {
    /// One more who follows the count of `room`, or of the whole site.
    pub fn new(presence: &Presence, room: Where) -> Watcher {
        let mut looks = presence.watched.looks();
        *looks.watchers.entry(room.clone()).or_default() += 1;
        Watcher {
            presence: presence.clone(),
            room,
            had: AtomicU64::new(looks.last.map_or(0, |(number, _)| number)),
        }
    }

    /// Where.
    pub fn room(&self) -> Option<&RoomId> {
        self.room.as_ref()
    }

    /// The count as it is now.
    pub async fn first(&self, clock: &Clock) -> Result<Counted, Unavailable> {
        let now = clock.now();
        Ok((self.presence.count_online(self.room(), now).await?, now))
    }

    /// The count as of a look that this watcher has not had.
    pub async fn next(&self, clock: &Clock) -> Result<Counted, Unavailable> {
        if self.presence.only_counts() {
            return self.first(clock).await; // there is one count, of the whole site
        }
        let watched = &self.presence.watched;
        let came = Instant::now();
        let _looking = watched.looking.lock().await;
        if let Some((_, cause)) = watched.looks().failed.as_ref().filter(|(at, _)| *at >= came) {
            return Err(cause.clone()); // who waited for it need not fail once more
        }
        let had = self.had.load(Ordering::Relaxed);
        let made = watched.looks().newer(&self.room, had);
        let (number, counted) = match made {
            Some(made) => made,
            None => self.look(clock).await?,
        };
        self.had.store(number, Ordering::Relaxed);
        Ok(counted)
    }

    /// Looks at all that is watched.
    async fn look(&self, clock: &Clock) -> Result<(u64, Counted), Unavailable> {
        let now = clock.now();
        let rooms: Vec<Where> = self.presence.watched.looks().watchers.keys().cloned().collect();
        let counts = self.presence.count_all(&rooms, now).await;
        let mut looks = self.presence.watched.looks();
        let counts = counts.inspect_err(|cause| looks.failed = Some((Instant::now(), cause.clone())))?;
        let number = looks.last.map_or(1, |(number, _)| number + 1);
        let counted = rooms
            .into_iter()
            .zip(counts)
            .map(|(room, count)| (room, (count, now)));
        looks.counts = counted.collect();
        looks.last = Some((number, Instant::now()));
        let ours = looks.counts.get(&self.room).copied();
        ours.map(|ours| (number, ours))
            .ok_or_else(|| Unavailable::Fault("a room that is watched was not looked at".into()))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut looks = self.presence.watched.looks();
        if let Some(watchers) = looks.watchers.get_mut(&self.room) {
            *watchers -= 1;
            if *watchers == 0 {
                looks.watchers.remove(&self.room);
            }
        }
    }
}

impl Presence {
    /// As [`Presence::count_online`], of many rooms in few round trips.
    async fn count_all(&self, rooms: &[Where], now: DateTime<Utc>) -> Result<Vec<u64>, Unavailable> {
        let partitions = self.keyspace.partition_count();
        let since = self.online_since(now);
        let mut counts = Vec::with_capacity(rooms.len());
        for rooms in rooms.chunks((BATCH / partitions).max(1)) {
            let mut request = Request::new();
            for room in rooms {
                for p in self.keyspace.partitions() {
                    let mut count = redis::cmd("ZCOUNT");
                    count.arg(self.keyspace.keys().last_seen(p, room.as_ref()));
                    count.arg(since).arg("+inf");
                    request.command(count);
                }
            }
            let found: Result<Vec<u64>, Unavailable> = self
                .keyspace
                .run(&request)
                .await?
                .into_iter()
                .map(reply)
                .collect();
            counts.extend(found?.chunks(partitions).map(|counts| counts.iter().sum::<u64>()));
        }
        Ok(counts)
    }
}
