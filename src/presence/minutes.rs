//! `presence.mode = "count"`: a bit a minute and row, for sites too big for a list.
//!
//! Owns the minutes. Online is whoever has a bit in one of the minutes that the window touches, so somebody counts for up to
//! a minute longer than the window; when a minute begins, it is exactly those of the window.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use super::Presence;
use crate::checkin::rows::{self, DAY};
use crate::figures::DayMatch;
use crate::figures::bitmaps::Segment;
use crate::ids::UserId;
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Partition, Request, Row, Script, Unavailable, reply};

pub(super) static HEARTBEAT_COUNT: Script = Script::new(
    "heartbeat_count",
    &[NUMBERS, MUTATION, DAY, include_str!("heartbeat_count.lua")],
);

/// How many minutes before the window the keeper looks for what it has to take away.
const SWEPT: i64 = 60;

/// How old the count in an answer may be where counting is much work.
const FRESH: Duration = Duration::from_secs(1);

/// From how many rows in all on it is: their bits in six minutes are 75 KB, which Redis combines in some 20 us.
const MANY_ROWS: u64 = 100_000;

/// The last count, where counting is much work.
#[derive(Clone, Default)]
pub(super) struct LastCount {
    last: Arc<Mutex<Option<(Instant, u64)>>>,
    /// One at a time counts anew.
    counting: Arc<tokio::sync::Mutex<()>>,
}

impl LastCount {
    fn get(&self) -> MutexGuard<'_, Option<(Instant, u64)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Presence {
    /// As a heartbeat answers it: where there are many rows, of within the last second, or while one caller counts anew the
    /// count before.
    pub(super) async fn count_lately(&self, now: DateTime<Utc>) -> Result<u64, Unavailable> {
        let last = *self.last_count.get();
        let _counting = match last {
            Some((at, count)) if at.elapsed() < FRESH => return Ok(count),
            Some((_, count)) => match self.last_count.counting.try_lock() {
                Ok(counting) => Some(counting),
                Err(_) => return Ok(count),
            },
            None => None, // nobody knows yet whether it is much work
        };
        let (rows, segments) = self.bitmaps.extent().await?;
        let count = self.count_in(&segments, now).await?;
        *self.last_count.get() = (rows >= MANY_ROWS).then(|| (Instant::now(), count));
        Ok(count)
    }

    /// How many have a bit in a minute of the window that ends with `now`.
    pub(super) async fn count_minutes(&self, now: DateTime<Utc>) -> Result<u64, Unavailable> {
        let segments = self.bitmaps.segments().await?;
        self.count_in(&segments, now).await
    }

    async fn count_in(&self, segments: &[Segment], now: DateTime<Utc>) -> Result<u64, Unavailable> {
        let keys = |segment| self.minute_keys(segment, self.touched(now));
        self.bitmaps.count(segments, DayMatch::Any, keys).await
    }

    /// Whether `user`, who has that row, has a bit in one of them.
    pub(super) async fn in_minutes(
        &self,
        user: &UserId,
        row: Row,
        now: DateTime<Utc>,
    ) -> Result<bool, Unavailable> {
        let segment = Segment {
            partition: self.keyspace.partition_of(user),
            number: rows::day_segment(row),
        };
        let keys = self.minute_keys(segment, self.touched(now));
        let bits = [rows::day_bit(row)];
        let count = self.bitmaps.count_among(segment, DayMatch::Any, keys, &bits);
        Ok(count.await? > 0)
    }

    pub(super) fn count_call(&self, call: Call, row: Row, now: DateTime<Utc>) -> Call {
        let (keys, p) = (self.keyspace.keys(), call.partition());
        let (today, segment) = (self.zone.date_of(now), rows::day_segment(row));
        call.key(keys.active(p, today, segment))
            .key(keys.active_count(p, today))
            .key(keys.minute(p, minute(now.timestamp_millis()), segment))
            .arg(row.get())
            .arg(self.keep.day_ttl(&self.zone, today, now))
            .arg(self.backstop() + 120)
    }

    /// Takes away the minutes before the window.
    pub(super) async fn forget_minutes(
        &self,
        partitions: &[Partition],
        now: DateTime<Utc>,
    ) -> Result<(), Unavailable> {
        let first = *self.touched(now).start();
        let segments = self.bitmaps.segments().await?;
        for segment in segments
            .into_iter()
            .filter(|segment| partitions.contains(&segment.partition))
        {
            let mut unlink = redis::cmd("UNLINK");
            unlink.arg(self.minute_keys(segment, first - SWEPT..=first - 1));
            let mut request = Request::new();
            request.command(unlink);
            for value in self.keyspace.run(&request).await? {
                reply::<u32>(value)?;
            }
        }
        Ok(())
    }

    /// The minutes that the window touches.
    fn touched(&self, now: DateTime<Utc>) -> RangeInclusive<i64> {
        minute(self.online_since(now))..=minute(now.timestamp_millis())
    }

    fn minute_keys(&self, segment: Segment, minutes: RangeInclusive<i64>) -> Vec<String> {
        let keys = self.keyspace.keys();
        minutes
            .map(|minute| keys.minute(segment.partition, minute, segment.number))
            .collect()
    }
}

/// Which minute since 1970 an instant lies in.
fn minute(millis: i64) -> i64 {
    millis.div_euclid(60_000)
}
