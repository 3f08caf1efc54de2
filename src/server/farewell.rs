//! How the server leaves: whoever it has let in is served.
//!
//! Owns the time between the word to stop and the end of serving. Closing a connection that a client keeps open may cross
//! with its next request, which is then lost. So for a moment each answer says that it is the connection's last
//! (`Connection: close`), and only when nobody asks anything any more are those closed that stay open. Meanwhile nobody new is
//! let in ([`super::doorway`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// So long nobody may have asked anything before connections are closed.
const QUIET: Duration = Duration::from_millis(100);

/// How long to wait for that: a client that goes on asking on a connection after its last answer does so at its own risk.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the server is about to stop, and whether anybody still asks something.
#[derive(Clone)]
pub struct Farewell {
    stopping: watch::Receiver<bool>,
    begun: Arc<AtomicU64>,
}

impl Farewell {
    /// Begins when `stopping` turns true.
    pub fn new(stopping: watch::Receiver<bool>) -> Farewell {
        Farewell {
            stopping,
            begun: Arc::default(),
        }
    }

    /// Counts a request.
    pub fn request_begins(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the word to stop was given.
    pub fn has_begun(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits for the word to stop.
    pub async fn begins(&mut self) {
        if self.stopping.wait_for(|stop| *stop).await.is_err() {
            tracing::debug!("nobody is left who could stop the server; it stops");
        }
    }

    /// Waits until connections may be closed.
    pub async fn over(mut self) {
        self.begins().await;
        let quiet = async {
            let mut before = None;
            while before != Some(self.begun.load(Ordering::Relaxed)) {
                before = Some(self.begun.load(Ordering::Relaxed));
                sleep(QUIET).await;
            }
        };
        if timeout(PATIENCE, quiet).await.is_err() {
            tracing::debug!("somebody goes on asking on connections that were to be left");
        }
    }
}
