//! Many heartbeats, or many leaves, at a time.

use chrono::{DateTime, Utc};

use super::store::LEAVE;
use super::{Place, Presence};
use crate::ids::UserId;
use crate::keyspace::mutation::NotDone;
use crate::keyspace::{Call, Memory, Row, Script, Unavailable};

/// Calls that go into one pipeline.
const BATCH: usize = 250;

type Sighting = (UserId, Place);
type Complete = fn(&Presence, Call, Row, &Place, DateTime<Utc>) -> Call;

impl Presence {
    /// All of these users are at their places now. Whoever has too many rooms or sessions is passed over.
    pub async fn heartbeat_all(&self, sightings: &[Sighting], now: DateTime<Utc>) -> Result<(), Unavailable> {
        self.in_batches(self.heartbeat_script(), Presence::heartbeat_call, sightings, now)
            .await
    }

    /// All of these users have left their places.
    pub async fn leave_all(&self, sightings: &[Sighting], now: DateTime<Utc>) -> Result<(), Unavailable> {
        if self.only_counts() {
            return Ok(());
        }
        self.in_batches(&LEAVE, Presence::leave_call, sightings, now)
            .await
    }

    async fn in_batches(
        &self,
        script: &'static Script,
        complete: Complete,
        sightings: &[Sighting],
        now: DateTime<Utc>,
    ) -> Result<(), Unavailable> {
        for batch in sightings.chunks(BATCH) {
            let mut left: Vec<&Sighting> = batch.iter().collect();
            // A row that was another's is asked for anew; a second time is enough.
            for _ in 0..2 {
                left = self.one_batch(script, complete, left, now).await?;
                if left.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Those whose row was gone are left.
    async fn one_batch<'s>(
        &self,
        script: &'static Script,
        complete: Complete,
        batch: Vec<&'s Sighting>,
        now: DateTime<Utc>,
    ) -> Result<Vec<&'s Sighting>, Unavailable> {
        let users: Vec<UserId> = batch.iter().map(|(user, _)| user.clone()).collect();
        let rows = self.keyspace.rows_for(&users).await?;
        let calls = batch.iter().zip(rows).map(|((user, place), row)| {
            let call = self.keyspace.call(user, row, &Memory::None);
            complete(self, call, row, place, now)
        });
        let calls: Vec<Call> = calls.collect();
        let mut left = Vec::new();
        for (sighting, outcome) in batch.into_iter().zip(self.keyspace.send(script, &calls).await?) {
            match outcome {
                Err(NotDone::RowGone) => {
                    self.keyspace.forget_rows([&sighting.0]);
                    left.push(sighting);
                }
                Err(NotDone::Unavailable(cause)) => return Err(cause),
                Ok(_) | Err(NotDone::Gap) => {}
            }
        }
        Ok(left)
    }
}
