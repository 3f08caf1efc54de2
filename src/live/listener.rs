//! The ears of a board's followers.
//!
//! Owns what each has read, for the audit, and who wants to be told of moves. What wakes them is a [`Pulse`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Pulse;
use crate::leaderboard::Version;

/// What each follower of a board has read of it: one's reading tells the others nothing.
#[derive(Default)]
pub(super) struct Readings {
    next: AtomicU64,
    all: Mutex<HashMap<u64, watch::Receiver<Reading>>>,
}

/// What a follower has read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The newest version.
    pub version: Version,
    /// As of which pulse.
    pub pulse: u64,
}

/// The ear of one follower of a board.
pub struct Listener {
    pulses: watch::Receiver<Pulse>,
    seen: watch::Sender<Reading>,
    readings: Arc<Readings>,
    number: u64,
}

impl Listener {
    pub(super) fn new(pulses: watch::Receiver<Pulse>, readings: &Arc<Readings>) -> Listener {
        let listener = Listener {
            pulses,
            seen: watch::channel(Reading::default()).0,
            readings: readings.clone(),
            number: readings.next.fetch_add(1, Ordering::Relaxed),
        };
        let seen = listener.seen.subscribe();
        listener.readings.all().insert(listener.number, seen);
        listener
    }

    /// What wakes it.
    pub fn pulses(&self) -> watch::Receiver<Pulse> {
        self.pulses.clone()
    }

    /// It has read the board at this version, woken by this pulse.
    pub fn saw(&self, version: &Version, pulse: &Pulse) {
        self.seen.send_modify(|seen| {
            seen.version.advance(version);
            seen.pulse = pulse.number;
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.readings.all().remove(&self.number);
    }
}

impl Readings {
    pub(super) fn all(&self) -> MutexGuard<'_, HashMap<u64, watch::Receiver<Reading>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody wants to know who moved, as long as this lives.
pub struct AfterMoves(pub(super) Arc<AtomicUsize>);

impl Drop for AfterMoves {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
