//! Combining the bitmaps of several days or minutes.
//!
//! Owns the keys and arguments of `combine.lua`, and how much of it goes into one round trip. Which bitmaps to combine is
//! the caller's.

use std::sync::Arc;

use redis::Value;

use super::DayMatch;
use crate::checkin::rows::DAY_ROWS;
use crate::keyspace::{Keyspace, Partition, Request, Script, Unavailable, reply};
use crate::random::unique_name;

static COMBINE: Script = Script::new("combine", &[include_str!("combine.lua")]);

/// How long a temporary key may outlive a script that did not come to its end, in seconds.
const TEMPORARY: u32 = 60;

/// Bitmaps that one round trip combines: what it takes, Redis gives to nobody else meanwhile.
const BITMAPS_A_TRIP: usize = 128;

/// A part of the rows: 2^20 rows of one partition share a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    /// Which partition.
    pub partition: Partition,
    /// Which of its bitmaps.
    pub number: u32,
}

/// What to tell of the bits that were combined.
#[derive(Debug, Clone, Copy)]
enum Told<'a> {
    Count,
    Bytes,
    Among(&'a [u32]),
}

/// The bitmaps of a keyspace.
#[derive(Clone)]
pub struct Bitmaps {
    keyspace: Arc<Keyspace>,
}

impl Bitmaps {
    /// Those of that keyspace.
    pub fn new(keyspace: Arc<Keyspace>) -> Bitmaps {
        Bitmaps { keyspace }
    }

    /// All segments in which somebody has a row.
    pub async fn segments(&self) -> Result<Vec<Segment>, Unavailable> {
        Ok(self.extent().await?.1)
    }

    /// How many rows there are, and in which segments.
    pub async fn extent(&self) -> Result<(u64, Vec<Segment>), Unavailable> {
        let rows: Vec<Option<u64>> = self
            .keyspace
            .gather(|request, p| {
                let mut get = redis::cmd("HGET");
                get.arg(self.keyspace.keys().generation(p)).arg("rows");
                request.command(get);
            })
            .await?;
        let all = rows.iter().flatten().sum();
        let segments = self.keyspace.partitions().zip(rows).flat_map(|(p, rows)| {
            let count = rows.unwrap_or(0).div_ceil(DAY_ROWS.into());
            (0..count as u32).map(move |number| Segment { partition: p, number })
        });
        Ok((all, segments.collect()))
    }

    /// How many rows of `segments` are set in `keys` of their segment.
    pub async fn count(
        &self,
        segments: &[Segment],
        wanted: DayMatch,
        keys: impl Fn(Segment) -> Vec<String>,
    ) -> Result<u64, Unavailable> {
        let counts = self.count_each(1, segments, wanted, |_, segment| keys(segment));
        Ok(counts.await?.into_iter().sum())
    }

    /// Several counts at once: of each, how many rows of `segments` are set in its keys of their segment.
    pub async fn count_each(
        &self,
        counts: usize,
        segments: &[Segment],
        wanted: DayMatch,
        keys: impl Fn(usize, Segment) -> Vec<String>,
    ) -> Result<Vec<u64>, Unavailable> {
        let mut sums = vec![0; counts];
        let parts = counts * segments.len();
        let (mut request, mut asked, mut bitmaps) = (Request::new(), Vec::new(), 0);
        for part in 0..parts {
            let (count, segment) = (part / segments.len(), segments[part % segments.len()]);
            let keys = keys(count, segment);
            bitmaps += keys.len();
            self.ask(&mut request, segment, wanted, keys, Told::Count);
            asked.push(count);
            if bitmaps >= BITMAPS_A_TRIP || part + 1 == parts {
                let values = self.keyspace.run(&request).await?;
                for (count, value) in asked.drain(..).zip(values) {
                    sums[count] += reply::<u64>(value)?;
                }
                (request, bitmaps) = (Request::new(), 0);
            }
        }
        Ok(sums)
    }

    /// How many of `bits` are set in `keys` of one segment.
    pub async fn count_among(
        &self,
        segment: Segment,
        wanted: DayMatch,
        keys: Vec<String>,
        bits: &[u32],
    ) -> Result<u64, Unavailable> {
        reply(self.one(segment, wanted, keys, Told::Among(bits)).await?)
    }

    /// The combined bits of one segment, row by row; what is not there is unset.
    pub async fn bytes(
        &self,
        segment: Segment,
        wanted: DayMatch,
        keys: Vec<String>,
    ) -> Result<Vec<u8>, Unavailable> {
        reply(self.one(segment, wanted, keys, Told::Bytes).await?)
    }

    async fn one(
        &self,
        segment: Segment,
        wanted: DayMatch,
        keys: Vec<String>,
        told: Told<'_>,
    ) -> Result<Value, Unavailable> {
        let mut request = Request::new();
        self.ask(&mut request, segment, wanted, keys, told);
        let answer = self.keyspace.run(&request).await?.pop();
        answer.ok_or_else(|| Unavailable::Fault("combine.lua did not answer".into()))
    }

    fn ask(
        &self,
        request: &mut Request,
        segment: Segment,
        wanted: DayMatch,
        bitmaps: Vec<String>,
        told: Told<'_>,
    ) {
        let names = self.keyspace.keys();
        let p = segment.partition;
        let mut keys = vec![names.generation(p), names.temporary(p, &unique_name())];
        keys.extend(bitmaps);
        let wanted = match wanted {
            DayMatch::Any => "ANY",
            DayMatch::Every => "EVERY",
        };
        let mut args = vec![
            self.keyspace.generation().to_owned(),
            wanted.to_owned(),
            TEMPORARY.to_string(),
        ];
        match told {
            Told::Count => args.push("COUNT".into()),
            Told::Bytes => args.push("BYTES".into()),
            Told::Among(bits) => {
                args.push("AMONG".into());
                args.extend(bits.iter().map(u32::to_string));
            }
        }
        request.script(&COMBINE, &keys, &args);
    }
}
