//! Who is woken by what.
//!
//! Owns the pulses: a board that has changed wakes its followers, the first change at once, then at most once an
//! interval. What they then do is theirs. Messages may get lost, so a pulse only says "look again"; after every gap in
//! hearing everybody is told that there was one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Client, ConnectionInfo, RedisError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::listener::{AfterMoves, Listener, Reading, Readings};
use super::message::{BoardChanged, Scored};
use super::pulse::Gathered;
use super::{Gauges, Pulse, subscriber};
use crate::clock::Clock;
use crate::day::Zone;
use crate::ids::BoardId;

/// How often the clock is asked whether the day has turned.
const TURN_CHECK: Duration = Duration::from_millis(250);

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
        self.shared
            .boards
            .get(board)
            .map(|ear| Listener::new(ear.pulse.subscribe(), &ear.readings))
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

    /// Nobody is woken: there may be nothing to read.
    fn deafened(&self) {
        self.pulse.send_if_modified(|pulse| {
            pulse.deafened();
            false
        });
    }

    fn beat(&self) {
        let gathered = std::mem::take(&mut *self.gathered.lock().unwrap_or_else(PoisonError::into_inner));
        self.pulse.send_modify(|pulse| pulse.beat(gathered));
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
