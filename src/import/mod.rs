//! History from files: check-ins and scores, in any order, in flat memory, repeatable.
//!
//! [`source`] reads the bytes and [`lines`] judges the rows, [`check_ins`] and [`scores`] apply them (sorted
//! by [`sorting`]), [`progress`] shows how far they are.

pub mod check_ins;
pub mod lines;
pub mod progress;
pub mod scores;
pub mod sorting;
pub mod source;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::keyspace::Unavailable;
pub use progress::{Progress, Summary};

/// How long an import waits for a Redis that went away under it, before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why an import ended early. What was applied stays; running it again goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The file has other columns than needed.
    #[error("{path} needs the columns {wanted} in its first line, and has {found}")]
    Columns {
        /// Which file.
        path: PathBuf,
        /// What is needed.
        wanted: &'static str,
        /// What is there.
        found: String,
    },
    /// Sorting needs room on disk.
    #[error("cannot sort the file by way of the disk: {0}")]
    Sorting(std::io::Error),
    /// There is no such board.
    #[error("there is no board {0:?} in the configuration")]
    UnknownBoard(String),
    /// Redis is away or refuses.
    #[error(
        "the import stopped half-way: {0}. Run it again: it goes on where it stopped and doubles nothing"
    )]
    Unavailable(#[from] Unavailable),
}

/// Does `work` until Redis takes it, waiting while it is away. The work must bear being done twice.
async fn persistently<T>(mut work: impl AsyncFnMut() -> Result<T, Unavailable>) -> Result<T, Unavailable> {
    const PAUSE: Duration = Duration::from_millis(100);
    let began = Instant::now();
    loop {
        match work().await {
            Err(Unavailable::Down | Unavailable::TimedOut(_) | Unavailable::Refused(_))
                if began.elapsed() < PATIENCE =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}
