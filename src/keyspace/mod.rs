//! Where a user's data lives: partitions, rows, key names, scripts, and the connection to Redis.
//!
//! Owns the way to Redis and nothing of what is kept there: each feature's store says which keys and scripts it needs.
//! Read [`keys`] (every name), [`partition`] (which part of the data a user belongs to), [`rows`] (a user's number),
//! [`mutation`] (what every writing script shares), then [`connection`] and [`meta`].

pub mod advice;
pub mod connection;
pub mod counts;
pub mod data_dir;
pub mod keeper;
pub mod keys;
pub mod managed;
pub mod meta;
pub mod mutation;
pub mod operation;
pub mod partition;
pub mod rows;
pub mod scripts;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redis::{FromRedisValue, Value};
use tokio::task::AbortHandle;

pub use connection::{Connection, Unavailable};
pub use counts::Counts;
pub use keys::Keys;
pub use mutation::{Answer, Call, Memory};
pub use operation::Operation;
pub use partition::Partition;
pub use rows::Row;
pub use scripts::{Request, Script};

use crate::ids::UserId;

/// An open keyspace: Redis holds data that this server can read, or did when it was last looked at.
pub struct Keyspace {
    connection: Connection,
    keys: Keys,
    epoch: String,
    generation: String,
    /// The highest event count seen in each partition: Redis may never show a lower one.
    events: Vec<AtomicU64>,
    stale: AtomicBool,
    rows: rows::RowCache,
    next_rows: rows::NextRows,
    audit: OnceLock<AbortHandle>,
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        if let Some(audit) = self.audit.get() {
            audit.abort(); // it holds the connection while it waits
        }
    }
}

impl Keyspace {
    /// Every key name.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Names the data's generation, as scripts compare it.
    pub fn generation(&self) -> &str {
        &self.generation
    }

    /// Names the life of this data: another epoch means that versions begin anew.
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The partition that holds `user`.
    pub fn partition_of(&self, user: &UserId) -> Partition {
        Partition::of(user, self.events.len() as u32)
    }

    /// All partitions, in order.
    pub fn partitions(&self) -> impl Iterator<Item = Partition> + use<> {
        (0..self.events.len() as u32).map(Partition::number)
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> usize {
        self.events.len()
    }

    /// What the way to Redis and the keeper count.
    pub fn counts(&self) -> &Counts {
        self.connection.counts()
    }

    /// How long a use case may take.
    pub fn patience(&self) -> Duration {
        self.connection.patience()
    }

    /// What `use_case` comes to within the time that it may take.
    pub async fn in_time<T>(
        &self,
        use_case: impl Future<Output = Result<T, Unavailable>>,
    ) -> Result<T, Unavailable> {
        let patience = self.patience();
        match tokio::time::timeout(patience, use_case).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Unavailable::TimedOut(patience)),
        }
    }

    /// A number that is settled once for all nodes: `proposed`, unless another was settled before.
    pub async fn settle(&self, field: &str, proposed: i64) -> Result<i64, Unavailable> {
        let mut request = Request::new();
        let (mut set, mut get) = (redis::cmd("HSETNX"), redis::cmd("HGET"));
        set.arg(self.keys.meta()).arg(field).arg(proposed);
        get.arg(self.keys.meta()).arg(field);
        request.command(set).command(get);
        match self.run(&request).await?.pop() {
            Some(value) => reply(value),
            None => Ok(proposed),
        }
    }

    /// What is noted about the whole data under the name `what`.
    pub async fn noted(&self, what: &str) -> Result<Option<String>, Unavailable> {
        let mut get = redis::cmd("HGET");
        get.arg(self.keys.meta()).arg(what);
        let mut request = Request::new();
        request.command(get);
        match self.run(&request).await?.pop() {
            Some(value) => reply(value),
            None => Ok(None),
        }
    }

    /// Notes `text` about the whole data under the name `what`.
    pub async fn note(&self, what: &str, text: &str) -> Result<(), Unavailable> {
        let mut set = redis::cmd("HSET");
        set.arg(self.keys.meta()).arg(what).arg(text);
        let mut request = Request::new();
        request.command(set);
        for value in self.run(&request).await? {
            reply::<u32>(value)?;
        }
        Ok(())
    }

    /// Asks every partition the same question in one pipeline; the answers come in the partitions' order.
    pub async fn gather<T: FromRedisValue>(
        &self,
        mut ask: impl FnMut(&mut Request, Partition),
    ) -> Result<Vec<T>, Unavailable> {
        let mut request = Request::new();
        for partition in self.partitions() {
            ask(&mut request, partition);
        }
        self.run(&request).await?.into_iter().map(reply).collect()
    }

    /// Sends a request whose parts may be run twice, and answers with a reply a part (errors of scripts among them).
    pub async fn run(&self, request: &Request) -> Result<Vec<Value>, Unavailable> {
        if self.stale.load(Ordering::Relaxed) {
            return Err(Unavailable::Stale("it was found so before".into()));
        }
        let replies = self.connection.run(request).await?;
        // Whoever meets it first says so for all: readiness must not wait for the next audit.
        if replies
            .iter()
            .any(|reply| matches!(reply, Value::ServerError(error) if error.code() == "STALE"))
        {
            self.found_stale("a script refused to run");
        }
        Ok(replies)
    }

    /// Why this server should get no traffic now, if there is a reason.
    pub fn trouble(&self) -> Option<&'static str> {
        if self.stale.load(Ordering::Relaxed) {
            Some("Redis holds older or other data than this server has seen")
        } else if !self.connection.is_up() {
            Some("Redis cannot be reached")
        } else {
            None
        }
    }

    fn saw_events(&self, partition: Partition, count: u64) {
        self.events[partition.index()].fetch_max(count, Ordering::Relaxed);
    }

    fn events_seen(&self, partition: Partition) -> u64 {
        self.events[partition.index()].load(Ordering::Relaxed)
    }

    fn found_stale(&self, what: &str) {
        if !self.stale.swap(true, Ordering::Relaxed) {
            tracing::error!(
                what,
                "Redis holds older or other data than this server has seen: nothing is read or written until it holds \
                 it again; if the data is lost for good, restart the server to begin anew"
            );
        }
    }
}

/// Reads one reply as `T`; an error reply is sorted into what callers can do about it.
pub fn reply<T: FromRedisValue>(value: Value) -> Result<T, Unavailable> {
    if let Value::ServerError(error) = &value {
        return Err(Unavailable::from_server(error));
    }
    T::from_redis_value(value)
        .map_err(|error| Unavailable::Fault(format!("unexpected reply from Redis: {error}")))
}
