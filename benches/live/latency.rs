//! When each change was sent, and how long each subscriber waited for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::state::BASE;

/// When the changes of all boards were sent, in microseconds since the run began; written by the writer's thread.
pub struct Sent {
    began: Instant,
    boards: Vec<Vec<AtomicU64>>,
}

impl Sent {
    pub fn new(boards: usize, changes: usize) -> Sent {
        let board = || (0..=changes).map(|_| AtomicU64::new(u64::MAX)).collect();
        Sent {
            began: Instant::now(),
            boards: (0..boards).map(|_| board()).collect(),
        }
    }

    pub fn now(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Change number `change` of `board` is being sent.
    pub fn mark(&self, board: usize, change: usize) {
        self.boards[board][change].store(self.now(), Ordering::Release);
    }

    /// When the change that gave the first `sequence` points was sent.
    pub fn at(&self, board: usize, sequence: i64) -> u64 {
        self.boards[board][(sequence - BASE) as usize].load(Ordering::Acquire)
    }

    /// How many changes were sent from `from` until `until`, over all boards.
    pub fn between(&self, from: u64, until: u64) -> usize {
        let all = self.boards.iter().flatten();
        all.filter(|at| (from..until).contains(&at.load(Ordering::Acquire)))
            .count()
    }

    /// The last change of `board`, as the first's points.
    pub fn last(&self, board: usize) -> i64 {
        let sent = self.boards[board]
            .iter()
            .filter(|at| at.load(Ordering::Acquire) != u64::MAX);
        BASE + sent.count() as i64
    }
}

/// Sorted waits.
pub struct Waits(Vec<u32>);

impl Waits {
    pub fn new(mut micros: Vec<u32>) -> Waits {
        micros.sort_unstable();
        Waits(micros)
    }

    /// In milliseconds; 1.0 is the longest, NaN stands for none.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let wait = self.0.get((last as f64 * share).round() as usize);
        wait.map_or(f64::NAN, |&micros| f64::from(micros) / 1000.0)
    }
}
