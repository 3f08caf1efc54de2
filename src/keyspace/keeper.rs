//! The keeper: what time does to the data, done by one node at a time.
//!
//! Owns the lease by which nodes agree who looks after a partition, and the rhythm. What has to be done is the features'.

use std::sync::Arc;
use std::time::Duration;

use super::{Keyspace, Partition, Request, Script, Unavailable, reply};
use crate::random::unique_name;

static TAKE_LEASE: Script = Script::new("take_lease", &[include_str!("take_lease.lua")]);

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
