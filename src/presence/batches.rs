//! Many heartbeats, or many leaves, at a time.

use chrono::{DateTime, Utc};

use super::store::LEAVE;
use super::{Place, Presence};
use crate::ids::UserId;
use crate::keyspace::mutation::NotDone;
use crate::keyspace::{Call, Memory, Row, Script, Unavailable};

/// Calls that go into one pipeline.
const BATCH: usize = 250;

/// A user at a place.
pub type Sighting = (UserId, Place);

/// What is told of all sightings alike.
struct Told {
    script: &'static Script,
    complete: fn(&Presence, Call, Row, &Place, DateTime<Utc>) -> Call,
    /// Whether it makes its users known, if they are not yet.
    introduces: bool,
    now: DateTime<Utc>,
}

/// The script's answer to one of them, by its place among them; `None` where nobody is known.
type Answers = Vec<(usize, Option<String>)>;

impl Presence {
    /// All of these users are at their places now. Answers with those that were passed over: their users have too many
    /// rooms or sessions.
    pub async fn heartbeat_all(
        &self,
        sightings: &[Sighting],
        now: DateTime<Utc>,
    ) -> Result<Vec<Sighting>, Unavailable> {
        let told = Told {
            script: self.heartbeat_script(),
            complete: Presence::heartbeat_call,
            introduces: true,
            now,
        };
        let answers = self.in_batches(&told, sightings).await?;
        let over = |answer: &Option<String>| matches!(answer.as_deref(), Some("ROOMS" | "SESSIONS"));
        let over = answers.into_iter().filter(|(_, answer)| over(answer));
        Ok(over.map(|(i, _)| sightings[i].clone()).collect())
    }

    /// All of these users have left their places. That makes nobody known: whoever is not, was nowhere.
    pub async fn leave_all(&self, sightings: &[Sighting], now: DateTime<Utc>) -> Result<(), Unavailable> {
        match self.only_counts() {
            true => Ok(()),
            false => self.leaves(sightings, now).await.map(drop),
        }
    }

    /// As [`Presence::leave_all`]; each answer is what `leave.lua` says.
    pub(super) async fn leaves(
        &self,
        sightings: &[Sighting],
        now: DateTime<Utc>,
    ) -> Result<Answers, Unavailable> {
        let told = Told {
            script: &LEAVE,
            complete: Presence::leave_call,
            introduces: false,
            now,
        };
        self.in_batches(&told, sightings).await
    }

    async fn in_batches(&self, told: &Told, sightings: &[Sighting]) -> Result<Answers, Unavailable> {
        let mut answers = Vec::with_capacity(sightings.len());
        let all: Vec<usize> = (0..sightings.len()).collect();
        for batch in all.chunks(BATCH) {
            let mut left = batch.to_vec();
            // A row that was another's is asked for anew; a second time is enough.
            for _ in 0..2 {
                left = self.one_batch(told, sightings, left, &mut answers).await?;
                if left.is_empty() {
                    break;
                }
            }
        }
        Ok(answers)
    }

    /// Those whose row was gone are left.
    async fn one_batch(
        &self,
        told: &Told,
        sightings: &[Sighting],
        batch: Vec<usize>,
        answers: &mut Answers,
    ) -> Result<Vec<usize>, Unavailable> {
        let users: Vec<UserId> = batch.iter().map(|&i| sightings[i].0.clone()).collect();
        let rows: Vec<Option<Row>> = match told.introduces {
            true => self
                .keyspace
                .rows_for(&users)
                .await?
                .into_iter()
                .map(Some)
                .collect(),
            false => self.keyspace.known_rows(&users).await?,
        };
        let (mut asked, mut calls) = (Vec::new(), Vec::new());
        for (i, row) in batch.into_iter().zip(rows) {
            let (user, place) = &sightings[i];
            match row {
                Some(row) => {
                    let call = self.keyspace.call(user, row, &Memory::None);
                    calls.push((told.complete)(self, call, row, place, told.now));
                    asked.push(i);
                }
                None => answers.push((i, None)),
            }
        }
        let mut left = Vec::new();
        for (i, outcome) in asked
            .into_iter()
            .zip(self.keyspace.send(told.script, &calls).await?)
        {
            match outcome {
                Ok(answer) => answers.push((i, Some(answer.text))),
                Err(NotDone::RowGone) => {
                    self.keyspace.forget_rows([&sightings[i].0]);
                    left.push(i);
                }
                Err(NotDone::Unavailable(cause)) => return Err(cause),
                Err(NotDone::Gap) => {}
            }
        }
        Ok(left)
    }
}
