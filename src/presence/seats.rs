//! Where the sockets of a node sit.
//!
//! Owns how many are at each place, what Redis is to be told of it and when. Nothing here asks Redis or the Clock.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::batches::Sighting;
use crate::ids::UserId;
use crate::keyspace::Unavailable;

#[derive(Default)]
pub(super) struct Seats {
    /// How many sockets are at each place.
    taken: HashMap<Sighting, usize>,
    /// Where somebody came or went, and Redis does not know yet.
    changed: HashSet<Sighting>,
    /// Where somebody is whose user had too many rooms or sessions.
    refused: HashSet<Sighting>,
    beaten_at: Option<DateTime<Utc>>,
}

/// What Redis is to be told: first who has gone, then who is here.
pub(super) struct News {
    pub(super) gone: Vec<Sighting>,
    pub(super) here: Vec<Sighting>,
    /// Whether these are all who are here.
    all: bool,
}

impl Seats {
    /// One more socket is there.
    pub(super) fn take(&mut self, sighting: &Sighting) {
        *self.taken.entry(sighting.clone()).or_default() += 1;
        self.changed.insert(sighting.clone());
    }

    /// One of the sockets there has ended.
    pub(super) fn free(&mut self, sighting: &Sighting) {
        if let Some(sockets) = self.taken.get_mut(sighting) {
            *sockets -= 1;
            if *sockets == 0 {
                self.taken.remove(sighting);
                self.changed.insert(sighting.clone());
            }
        }
    }

    /// What Redis does not know yet, or is to be told again every third of the window.
    pub(super) fn news(&mut self, now: DateTime<Utc>, window: TimeDelta) -> News {
        let pause = window / 3;
        let all = self.beaten_at.is_none_or(|at| now - at >= pause || now < at);
        let changed = std::mem::take(&mut self.changed).into_iter();
        let (mut here, gone): (Vec<Sighting>, Vec<Sighting>) =
            changed.partition(|sighting| self.taken.contains_key(sighting));
        if all {
            here = self.taken.keys().cloned().collect();
        } else {
            let freed: HashSet<&UserId> = gone.iter().map(|(user, _)| user).collect();
            let again = self.refused.iter().filter(|(user, _)| freed.contains(user));
            here.extend(
                again
                    .filter(|sighting| self.taken.contains_key(sighting))
                    .cloned(),
            );
        }
        News { gone, here, all }
    }

    /// Takes note of what came of telling: who was refused, or that nobody may have heard.
    pub(super) fn told(
        &mut self,
        news: News,
        now: DateTime<Utc>,
        told: Result<Vec<Sighting>, Unavailable>,
    ) -> Result<(), Unavailable> {
        let News { gone, here, all } = news;
        match told {
            Ok(refused) => {
                gone.iter().chain(&here).for_each(|sighting| {
                    self.refused.remove(sighting);
                });
                self.refused.extend(refused);
                if all {
                    self.beaten_at = Some(now);
                }
                Ok(())
            }
            Err(cause) => {
                self.changed.extend(here.into_iter().chain(gone));
                Err(cause)
            }
        }
    }

    /// All have gone.
    pub(super) fn empty(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.changed.extend(taken.into_keys());
    }
}
