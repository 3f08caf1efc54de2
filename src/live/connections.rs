//! Everybody who is connected to hear updates: how many there may be, and how they are sent away.
//!
//! Owns the limit and the drain: when the server stops, connections end one after another, so that a thousand clients do
//! not arrive at the next node in the same instant.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::Gauges;
use super::gauges::{Counted, Over};
use crate::random::up_to;

/// How far apart two connections are sent away, unless the drain is too short for that.
const APART: Duration = Duration::from_millis(5);

/// Everybody who is connected.
#[derive(Clone)]
pub struct Connections {
    open: Arc<watch::Sender<usize>>,
    most: usize,
    stopping: watch::Receiver<bool>,
    /// The longest time that sending everybody away may take.
    drain: Duration,
    gauges: Arc<Gauges>,
}

/// One of them, as long as this lives.
pub struct Connected {
    open: Arc<watch::Sender<usize>>,
    stopping: watch::Receiver<bool>,
    drain: Duration,
    _counted: Counted,
}

impl Connections {
    /// Nobody yet; at most `most` at a time. They begin to leave when `stopping` turns true, within `drain`.
    pub fn new(
        most: usize,
        stopping: watch::Receiver<bool>,
        drain: Duration,
        gauges: Arc<Gauges>,
    ) -> Connections {
        Connections {
            open: Arc::new(watch::channel(0).0),
            most,
            stopping,
            drain,
            gauges,
        }
    }

    /// One more by `protocol`; `None` if there are too many.
    pub fn admit(&self, protocol: &'static str) -> Option<Connected> {
        let admitted = self.open.send_if_modified(|open| {
            let fits = *open < self.most;
            *open += usize::from(fits);
            fits
        });
        admitted.then(|| Connected {
            open: self.open.clone(),
            stopping: self.stopping.clone(),
            drain: self.drain,
            _counted: Counted::one(&self.gauges.sockets.get_or_create(&Over { protocol })),
        })
    }

    /// Waits until nobody is connected.
    pub async fn emptied(&self) {
        let mut open = self.open.subscribe();
        if open.wait_for(|open| *open == 0).await.is_err() {
            tracing::debug!("nobody counts connections any more");
        }
    }
}

impl Connected {
    /// Waits until the server stops and it is this connection's turn to go.
    pub async fn time_to_go(&self) {
        let mut stopping = self.stopping.clone();
        if stopping.wait_for(|stopping| *stopping).await.is_err() {
            return; // whoever could say so is gone
        }
        let all = APART * u32::try_from(*self.open.borrow()).unwrap_or(u32::MAX);
        sleep(up_to(all.min(self.drain))).await;
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.open.send_modify(|open| *open -= 1);
    }
}
