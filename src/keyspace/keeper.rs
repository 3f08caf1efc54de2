//! The keeper: what time does to the data, done by one node at a time.
//!
//! Owns the lease by which nodes agree who looks after a partition, the rhythm, the notes of how far upkeep has come, and
//! deleting and renewing in steps. What has to be done is the features'.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::NaiveDate;

use super::{Keyspace, Partition, Request, Row, Script, Unavailable, reply};
use crate::random::unique_name;

static TAKE_LEASE: Script = Script::new("take_lease", &[include_str!("take_lease.lua")]);

static NOTE_REACHED: Script = Script::new("note_reached", &[include_str!("note_reached.lua")]);

/// Keys that are deleted in one step.
const KEYS_A_STEP: usize = 200;

/// The pause between two steps of upkeep.
pub const PAUSE: Duration = Duration::from_millis(5);

/// How far upkeep has come in one partition, by what it is about.
pub type Reached = HashMap<String, NaiveDate>;

/// How long a lease lasts; whoever holds it renews it at every turn and during it.
const LEASE: Duration = Duration::from_secs(15);

/// How often it is renewed during a turn that takes long.
const RENEWAL: Duration = Duration::from_secs(5);

/// The pause between two turns.
pub const TURN: Duration = Duration::from_secs(2);

/// One node's keeper.
pub struct Keeper {
    keyspace: Arc<Keyspace>,
    name: String,
}

impl Keeper {
    /// The keeper of this node.
    pub fn new(keyspace: Arc<Keyspace>) -> Keeper {
        Keeper {
            keyspace,
            name: unique_name(),
        }
    }

    /// The partitions that this node may look after now: those whose lease it holds or could take.
    pub async fn partitions(&self) -> Result<Vec<Partition>, Unavailable> {
        let mut request = Request::new();
        let lease = LEASE.as_millis().to_string();
        for p in self.keyspace.partitions() {
            let keys = self.keyspace.keys();
            let args = [self.keyspace.generation(), &self.name, &lease];
            request.script(&TAKE_LEASE, &[keys.generation(p), keys.lease(p)], &args);
        }
        let taken = self.keyspace.run(&request).await?.into_iter().map(reply::<u32>);
        let taken: Vec<u32> = taken.collect::<Result<_, _>>()?;
        Ok(self
            .keyspace
            .partitions()
            .zip(taken)
            .filter(|(_, taken)| *taken == 1)
            .map(|(p, _)| p)
            .collect())
    }

    /// Renews the leases of `partitions` for as long as they are this node's.
    pub async fn hold(&self, partitions: &[Partition]) -> Result<(), Unavailable> {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let held = self.partitions().await?;
            if !partitions.iter().all(|p| held.contains(p)) {
                return Ok(());
            }
        }
    }
}

impl Keyspace {
    /// How far upkeep has come in a partition.
    pub async fn reached(&self, p: Partition) -> Result<Reached, Unavailable> {
        let mut get = redis::cmd("HGETALL");
        get.arg(self.keys.swept(p));
        let mut request = Request::new();
        request.command(get);
        let fields: HashMap<String, String> = match self.run(&request).await?.pop() {
            Some(value) => reply(value)?,
            None => HashMap::new(),
        };
        let dates = fields
            .into_iter()
            .filter_map(|(what, date)| Some((what, date.parse().ok()?)));
        Ok(dates.collect())
    }

    /// Notes that upkeep of `what` has come up to `date`.
    pub async fn note_reached(&self, p: Partition, what: &str, date: NaiveDate) -> Result<(), Unavailable> {
        let date = date.to_string();
        let mut request = Request::new();
        request.script(
            &NOTE_REACHED,
            &[self.keys.generation(p), self.keys.swept(p)],
            &[self.generation(), what, &date],
        );
        for value in self.run(&request).await? {
            reply::<u32>(value)?;
        }
        Ok(())
    }

    /// Deletes `keys` in small steps with pauses between.
    pub async fn unlink(&self, keys: Vec<String>) -> Result<(), Unavailable> {
        for step in keys.chunks(KEYS_A_STEP) {
            let mut request = Request::new();
            for key in step {
                let mut unlink = redis::cmd("UNLINK");
                unlink.arg(key);
                request.command(unlink);
            }
            let mut deleted = 0;
            for value in self.run(&request).await? {
                deleted += reply::<usize>(value)?;
            }
            self.counts().step(deleted);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Sets the TTL (s) of each of these keys that is there, in small steps.
    pub async fn expire(&self, keys: Vec<(String, i64)>) -> Result<(), Unavailable> {
        for step in keys.chunks(KEYS_A_STEP) {
            let mut request = Request::new();
            for (key, ttl) in step {
                let mut expire = redis::cmd("EXPIRE");
                expire.arg(key).arg(ttl);
                request.command(expire);
            }
            for value in self.run(&request).await? {
                reply::<u32>(value)?;
            }
        }
        Ok(())
    }

    /// The last row that a partition has given away, or the first where it has given none.
    pub async fn last_row(&self, p: Partition) -> Result<Row, Unavailable> {
        Ok(Row::number(self.rows_given(p).await?.saturating_sub(1)))
    }

    /// Whether any user has ever been written about.
    pub async fn anybody_wrote(&self) -> Result<bool, Unavailable> {
        let rows = self.gather(|request, p| {
            let mut get = redis::cmd("HGET");
            get.arg(self.keys.generation(p)).arg("rows");
            request.command(get);
        });
        let rows: Vec<Option<u32>> = rows.await?;
        Ok(rows.into_iter().flatten().any(|rows| rows > 0))
    }

    /// How many rows a partition has given away.
    pub async fn rows_given(&self, p: Partition) -> Result<u32, Unavailable> {
        let mut get = redis::cmd("HGET");
        get.arg(self.keys.generation(p)).arg("rows");
        let mut request = Request::new();
        request.command(get);
        match self.run(&request).await?.pop() {
            Some(value) => Ok(reply::<Option<u32>>(value)?.unwrap_or(0)),
            None => Ok(0),
        }
    }
}
