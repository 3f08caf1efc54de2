//! Who is woken by what.
//!
//! Owns the pulses: a board that has changed wakes its followers, the first change at once, then at most once an
//! interval. What they then do is theirs. Messages may get lost, so a pulse only says "look again"; after every gap in
//! hearing everybody is told that there was one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Client, ConnectionInfo, RedisError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::message::{BoardChanged, Scored};
use super::{Gauges, subscriber};
use crate::clock::Clock;
use crate::day::Zone;
use crate::ids::{BoardId, UserId};
use crate::leaderboard::Version;

/// How often the clock is asked whether the day has turned.
const TURN_CHECK: Duration = Duration::from_millis(250);

/// The scores of how many pulses are kept for who did not come along.
const KEPT_PULSES: usize = 16;

/// The most users whose moves one pulse bears; more than that count as a gap in what was heard.
const MOST_MOVED: usize = 10_000;

/// A board may have changed.
#[derive(Debug, Clone, Default)]
pub struct Pulse {
    /// Counts the pulses.
    pub number: u64,
    /// Counts the gaps in hearing so far.
    pub gaps: u64,
    /// When the first change was heard that this pulse is about.
    pub heard_at: Option<Instant>,
    /// The scores of this pulse and of some before, oldest first.
    heard: VecDeque<Arc<Heard>>,
}

/// Who scored between two pulses, in which span from where to where.
#[derive(Debug, Default)]
pub struct Heard {
    pulse: u64,
    moved: HashMap<UserId, Vec<Step>>,
    /// Whose profile has changed.
    touched: HashSet<UserId>,
}

/// Where somebody was and is within one span, and when that was heard last.
#[derive(Debug)]
struct Step {
    span: String,
    before: Option<f64>,
    after: f64,
    at: Instant,
}

impl Pulse {
    /// The moves within `span` after the pulse `number` that were heard after `at`, if that is given: who, first key
    /// before, last key after. `None` if some of them are no longer known.
    pub fn moved_since(
        &self,
        number: u64,
        span: &str,
        at: Option<Instant>,
    ) -> Option<Vec<(&UserId, Option<f64>, f64)>> {
        if number == self.number {
            return Some(Vec::new());
        }
        let known = self.heard.front().is_some_and(|first| first.pulse <= number + 1);
        let mut all: HashMap<&UserId, (Option<f64>, f64)> = HashMap::new();
        for heard in self.heard.iter().filter(|heard| heard.pulse > number) {
            for (user, steps) in &heard.moved {
                let in_time = |step: &&Step| step.span == span && at.is_none_or(|at| step.at > at);
                for step in steps.iter().filter(in_time) {
                    all.entry(user).or_insert((step.before, step.after)).1 = step.after;
                }
            }
        }
        let moved = all
            .into_iter()
            .map(|(user, (before, after))| (user, before, after));
        known.then(|| moved.collect())
    }
}

impl Pulse {
    /// Whether what others see of one of `users` has changed after the pulse `number`, as far as is still known.
    pub fn looks_different(&self, number: u64, users: &[&UserId]) -> bool {
        let later = self.heard.iter().filter(|heard| heard.pulse > number);
        later
            .into_iter()
            .any(|heard| users.iter().any(|&user| heard.touched.contains(user)))
    }
}

/// Who is woken by what. The listening ends when this is dropped.
pub struct Changes {
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

pub(super) struct Shared {
    boards: HashMap<BoardId, BoardEar>,
    hearing: watch::Sender<bool>,
    /// Whether messages were heard at any time: the first time is no gap.
    has_heard: AtomicBool,
    gauges: Arc<Gauges>,
}

/// What has been heard of one board.
struct BoardEar {
    pulse: watch::Sender<Pulse>,
    gathered: Mutex<Gathered>,
    changed: Notify,
    /// How many want to know who moved.
    after_moves: Arc<AtomicUsize>,
    readings: Arc<Readings>,
}

/// What each follower of a board has read of it: one's reading tells the others nothing.
#[derive(Default)]
struct Readings {
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
    fn new(ear: &BoardEar) -> Listener {
        let listener = Listener {
            pulses: ear.pulse.subscribe(),
            seen: watch::channel(Reading::default()).0,
            readings: ear.readings.clone(),
            number: ear.readings.next.fetch_add(1, Ordering::Relaxed),
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
    fn all(&self) -> MutexGuard<'_, HashMap<u64, watch::Receiver<Reading>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Gathered {
    heard_at: Option<Instant>,
    gap: bool,
    /// Too much to be kept.
    overflown: bool,
    heard: Heard,
}

/// Somebody wants to know who moved, as long as this lives.
pub struct AfterMoves(Arc<AtomicUsize>);

impl Drop for AfterMoves {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Changes {
    /// Listens to `channel` of `target` for changes of `boards`; wakes at most every `interval`, and when the day turns.
    pub fn listen(
        target: ConnectionInfo,
        channel: String,
        boards: impl IntoIterator<Item = BoardId>,
        interval: Duration,
        (clock, zone): (Clock, Zone),
        gauges: Arc<Gauges>,
    ) -> Result<Changes, RedisError> {
        let client = Client::open(target)?;
        let boards: HashMap<_, _> = boards.into_iter().map(|board| (board, BoardEar::new())).collect();
        let shared = Arc::new(Shared {
            boards,
            hearing: watch::channel(false).0,
            has_heard: AtomicBool::new(false),
            gauges,
        });
        shared.gauges.deaf.set(1); // until the first subscription stands
        let mut tasks = JoinSet::new();
        for board in shared.boards.keys().cloned() {
            tasks.spawn(beat(shared.clone(), board, interval));
        }
        tasks.spawn(turn(shared.clone(), clock, zone));
        tasks.spawn(subscriber::supervise(client, channel, shared.clone()));
        Ok(Changes {
            shared,
            _tasks: tasks,
        })
    }

    /// An ear for `board`; `None` for a board that is not configured.
    pub fn of_board(&self, board: &BoardId) -> Option<Listener> {
        self.shared.boards.get(board).map(Listener::new)
    }

    /// From now on the pulses of `board` tell who moved.
    pub fn tell_moves(&self, board: &BoardId) -> Option<AfterMoves> {
        let count = self.shared.boards.get(board)?.after_moves.clone();
        count.fetch_add(1, Ordering::Relaxed);
        Some(AfterMoves(count))
    }

    /// What each follower of each board has read.
    pub fn followed(&self) -> Vec<(BoardId, Vec<watch::Receiver<Reading>>)> {
        let read = |ear: &BoardEar| ear.readings.all().values().cloned().collect();
        let boards = self.shared.boards.iter();
        boards.map(|(board, ear)| (board.clone(), read(ear))).collect()
    }

    /// The newest pulse of `board`.
    pub fn newest_pulse(&self, board: &BoardId) -> u64 {
        let ear = self.shared.boards.get(board);
        ear.map_or(0, |ear| ear.pulse.borrow().number)
    }

    /// Changes of `board` were missed.
    pub fn missed(&self, board: &BoardId) {
        if let Some(ear) = self.shared.boards.get(board) {
            self.shared.gauges.resyncs.inc();
            ear.missed();
        }
    }

    /// Waits until changes are heard, at most `patience`; whether they are.
    pub async fn heard_within(&self, patience: Duration) -> bool {
        let mut hearing = self.shared.hearing.subscribe();
        timeout(patience, hearing.wait_for(|hearing| *hearing))
            .await
            .is_ok_and(|heard| heard.is_ok())
    }

    /// Whether changes are heard at present.
    pub fn hearing(&self) -> bool {
        *self.shared.hearing.borrow()
    }
}

impl Shared {
    /// A message came.
    pub(super) fn heard(&self, message: &str) {
        let Some(BoardChanged { board, scored }) = BoardChanged::read(message) else {
            return tracing::debug!(message, "a message that is none of ours");
        };
        // Another node may know boards that this one does not.
        if let Some(ear) = self.boards.get(&board) {
            ear.changed(scored);
        }
    }

    /// Messages are heard from now on, and some may have been missed before.
    pub(super) fn hears_again(&self) {
        if self.has_heard.swap(true, Ordering::Relaxed) {
            self.gauges.resyncs.inc();
        }
        // The gap is told before it is said that changes are heard: whoever begins after that has missed nothing.
        self.boards.values().for_each(BoardEar::beat_after_gap);
        self.gauges.deaf.set(0);
        self.hearing.send_replace(true);
    }

    /// Messages are not heard any more; whether they were until now.
    pub(super) fn is_deaf(&self) -> bool {
        self.gauges.deaf.set(1);
        self.boards.values().for_each(BoardEar::deafened);
        self.hearing.send_replace(false)
    }
}

impl BoardEar {
    fn new() -> BoardEar {
        BoardEar {
            pulse: watch::channel(Pulse::default()).0,
            gathered: Mutex::default(),
            changed: Notify::new(),
            after_moves: Arc::default(),
            readings: Arc::default(),
        }
    }

    fn gather(&self, change: impl FnOnce(&mut Gathered)) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.heard_at.get_or_insert_with(Instant::now);
        change(&mut gathered);
        drop(gathered);
        self.changed.notify_one();
    }

    fn changed(&self, scored: Option<Scored>) {
        let wanted = self.after_moves.load(Ordering::Relaxed) > 0;
        self.gather(|gathered| {
            if let Some(scored) = scored.filter(|_| wanted) {
                gathered.add(scored);
            }
        });
    }

    fn missed(&self) {
        self.gather(|gathered| gathered.gap = true);
    }

    fn beat_after_gap(&self) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.gap = true;
        drop(gathered);
        self.beat();
    }

    /// What is read from now on may tell of what nobody heard. Nobody is woken: there may be nothing to read.
    fn deafened(&self) {
        self.pulse.send_if_modified(|pulse| {
            pulse.gaps += 1;
            pulse.heard.clear();
            false
        });
    }

    fn beat(&self) {
        let gathered = std::mem::take(&mut *self.gathered.lock().unwrap_or_else(PoisonError::into_inner));
        self.pulse.send_modify(|pulse| {
            pulse.number += 1;
            pulse.heard_at = gathered.heard_at;
            pulse.gaps += u64::from(gathered.gap);
            if gathered.gap || gathered.overflown {
                pulse.heard.clear();
            }
            if pulse.heard.len() == KEPT_PULSES {
                pulse.heard.pop_front();
            }
            if !gathered.overflown {
                pulse.heard.push_back(Arc::new(Heard {
                    pulse: pulse.number,
                    ..gathered.heard
                }));
            }
        });
    }
}

impl Gathered {
    fn add(&mut self, scored: Scored) {
        if self.heard.moved.len() + self.heard.touched.len() >= MOST_MOVED {
            self.overflown = true;
            self.heard.moved.clear();
        }
        if self.overflown {
            return;
        }
        if scored.moved.is_empty() {
            self.heard.touched.insert(scored.user);
            return;
        }
        let steps = self.heard.moved.entry(scored.user).or_default();
        let at = Instant::now();
        for moved in scored.moved {
            match steps.iter_mut().find(|step| step.span == moved.span) {
                Some(step) => (step.after, step.at) = (moved.after, at),
                None => steps.push(Step {
                    span: moved.span,
                    before: moved.before,
                    after: moved.after,
                    at,
                }),
            }
        }
    }
}

/// The pulses of one board: the first change at once, then at most one an interval.
async fn beat(shared: Arc<Shared>, board: BoardId, interval: Duration) {
    let Some(ear) = shared.boards.get(&board) else {
        return;
    };
    loop {
        ear.changed.notified().await;
        ear.beat();
        sleep(interval).await;
    }
}

/// The turn of the day begins new periods without a write, so it wakes everybody.
async fn turn(shared: Arc<Shared>, clock: Clock, zone: Zone) {
    let mut today = zone.date_of(clock.now());
    loop {
        sleep(TURN_CHECK).await;
        let date = zone.date_of(clock.now());
        if date != today {
            today = date;
            shared.boards.values().for_each(|ear| ear.changed(None));
        }
    }
}
