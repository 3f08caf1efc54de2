//! How the states of a topic reach thousands of sockets.
//!
//! Owns the list of those who have the newest state and wait for the next. A state is written straight into their outlets,
//! shard by shard, each shard by a task of its own, so that the cores share the work. Who cannot take a state, since it
//! skipped one or its client does not keep up, is woken and catches up by itself, then waits here again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;
use tokio::sync::{oneshot, watch};
use tokio::task::yield_now;

use super::Gauges;
use super::outlet::Outlet;
use super::topic::Published;

/// How many wait in one shard.
const SHARD: usize = 256;

/// So many are written to before others get their turn: some tenths of a millisecond.
const AT_A_TIME: usize = 32;

/// Where the states of a subscription go.
#[derive(Clone)]
pub struct Way {
    /// The connection's outlet.
    pub outlet: Arc<Outlet>,
    /// What stands before an answer in its message.
    pub opening: Arc<str>,
    /// What stands behind it.
    pub closing: &'static str,
}

/// All who wait for a topic's next state.
pub struct FanOut {
    states: watch::Receiver<Option<Published>>,
    shards: Mutex<Vec<Arc<Shard>>>,
    gauges: Arc<Gauges>,
}

impl FanOut {
    /// Nobody yet waits for `states`.
    pub fn new(states: watch::Receiver<Option<Published>>, gauges: Arc<Gauges>) -> FanOut {
        FanOut {
            states,
            shards: Mutex::default(),
            gauges,
        }
    }

    /// Has states written to `way`, which has the one of number `has`, until one comes that cannot be. Gives the number of
    /// the last that was written; `None` if the topic has ended.
    pub async fn keep_up(&self, way: &Way, has: u64) -> Option<u64> {
        let (fell, fallen) = oneshot::channel();
        let listed = self.list(Line {
            way: way.clone(),
            has,
            fell: Some(fell),
        });
        let last = fallen.await.ok();
        drop(listed);
        last
    }

    fn list(&self, mut line: Line) -> Option<Listed> {
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        for shard in shards.iter().rev() {
            match shard.list(line, &self.states) {
                Ok(listed) => return listed,
                Err(too_many) => line = too_many,
            }
        }
        let shard = Arc::new(Shard::default());
        tokio::spawn(shard.clone().run(self.states.clone(), self.gauges.clone()));
        let listed = shard.list(line, &self.states);
        shards.push(shard);
        listed.unwrap_or_default()
    }
}

#[derive(Default)]
struct Shard {
    lines: Mutex<Lines>,
    /// How many are listed: whoever looks for room need not wait for a walk through those that have none.
    many: AtomicUsize,
}

#[derive(Default)]
struct Lines {
    /// A line keeps its place as long as it is listed, so that a walk that pauses misses nobody.
    waiting: Slab<Line>,
    ended: bool,
}

/// One who waits.
struct Line {
    way: Way,
    /// The number of the state that it has.
    has: u64,
    /// Told the number of the last state when it can be given no more.
    fell: Option<oneshot::Sender<u64>>,
}

impl Line {
    /// Whether the state was given.
    fn give(&mut self, state: &Published) -> bool {
        if self.fell.is_none() || state.number <= self.has {
            return false;
        }
        let fits = state.full || state.number == self.has + 1;
        let Way {
            outlet,
            opening,
            closing,
        } = &self.way;
        let given = fits && outlet.push([opening, &state.payload, closing]);
        if given {
            self.has = state.number;
        } else {
            self.fall();
        }
        given
    }

    fn fall(&mut self) {
        if let Some(fell) = self.fell.take()
            && fell.send(self.has).is_err()
        {
            tracing::trace!("a subscriber left while it was written to");
        }
    }
}

impl Shard {
    /// Lists a line, unless it has fallen already; `Err` gives it back if there is no room.
    fn list(
        self: &Arc<Self>,
        mut line: Line,
        states: &watch::Receiver<Option<Published>>,
    ) -> Result<Option<Listed>, Line> {
        if self.many.load(Ordering::Relaxed) >= SHARD {
            return Err(line);
        }
        let mut lines = self.lines();
        if lines.waiting.len() >= SHARD {
            return Err(line);
        }
        if lines.ended {
            return Ok(None);
        }
        // Whatever is published later, this shard's walk will meet the line.
        let newest = states.borrow().as_ref().map_or(0, |newest| newest.number);
        if newest > line.has {
            line.fall();
            return Ok(None);
        }
        let place = lines.waiting.insert(line);
        self.many.store(lines.waiting.len(), Ordering::Relaxed);
        Ok(Some(Listed {
            shard: self.clone(),
            place,
        }))
    }

    /// Hands out each state as it comes, until the topic ends.
    async fn run(self: Arc<Self>, mut states: watch::Receiver<Option<Published>>, gauges: Arc<Gauges>) {
        while states.changed().await.is_ok() {
            let newest = states.borrow_and_update().clone();
            if let Some(newest) = newest {
                self.hand_out(&newest, &gauges).await;
            }
        }
        let mut lines = self.lines();
        lines.ended = true;
        lines.waiting.iter_mut().for_each(|(_, line)| line.fell = None);
    }

    async fn hand_out(&self, state: &Published, gauges: &Gauges) {
        for from in (0..SHARD).step_by(AT_A_TIME) {
            let given = {
                let mut lines = self.lines();
                if from >= lines.waiting.capacity() {
                    return;
                }
                let places = from..from + AT_A_TIME;
                places
                    .filter(|&place| lines.waiting.get_mut(place).is_some_and(|line| line.give(state)))
                    .count()
            };
            gauges.delivered.inc_by(given as u64);
            yield_now().await;
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the list, given up when dropped.
struct Listed {
    shard: Arc<Shard>,
    place: usize,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut lines = self.shard.lines();
        lines.waiting.remove(self.place);
        self.shard.many.store(lines.waiting.len(), Ordering::Relaxed);
    }
}
