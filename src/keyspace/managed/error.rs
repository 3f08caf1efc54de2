//! What keeps a private Redis from running, in words for the operator.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no private Redis.
#[derive(Debug, thiserror::Error)]
pub enum ManagedError {
    /// There is no redis-server.
    #[error(
        "there is no redis-server in PATH: run `apt-get install redis-server` or `brew install redis`, \
         or set redis.url to a Redis of your own"
    )]
    Missing,
    /// There is one, but the system does not run it.
    #[error("cannot run redis-server: {0}")]
    NotRunnable(io::Error),
    /// It is too old, or something else altogether.
    #[error("Redis 7.0 or newer is needed, but the redis-server in PATH is: {found}")]
    Unsuitable {
        /// Its version, or whatever it says of itself.
        found: String,
    },
    /// A file or directory cannot be used.
    #[error("cannot {attempt}: {cause}")]
    File {
        /// What was attempted, with the path.
        attempt: String,
        /// What the system says.
        cause: io::Error,
    },
    /// Others could put a socket of their own where ours should be.
    #[error(
        "the private Redis cannot have its socket in {directory}: {reason}; remove that, \
         or set XDG_RUNTIME_DIR to a directory that only this user can open"
    )]
    Exposed {
        /// The directory for the socket.
        directory: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It ended before it took commands.
    #[error("the private Redis ended while starting ({status}): {log}")]
    Ended {
        /// Exit status or signal.
        status: String,
        /// What it complained about last.
        log: String,
    },
    /// A Redis of an earlier server still has the data, and cannot be told to go.
    #[error(
        "the Redis that an earlier server left on {} ({}) does not answer; end it with `kill -9` \
         (what it has acknowledged is in its files) and start again",
        .home.display(), .pid.map_or("process unknown".to_owned(), |pid| format!("process {pid}"))
    )]
    Unresponsive {
        /// Its process id, where known.
        pid: Option<u32>,
        /// The directory of its files.
        home: PathBuf,
    },
    /// Something else listens where ours should.
    #[error("the Redis that listens on {socket} serves {directory}, not our data; stop it and start again")]
    Foreign {
        /// The socket.
        socket: PathBuf,
        /// What that Redis serves.
        directory: PathBuf,
    },
}

impl ManagedError {
    /// For `map_err`: the attempt to `verb` the `path` failed.
    pub(super) fn file(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ManagedError {
        move |cause| ManagedError::File {
            attempt: format!("{verb} {}", path.display()),
            cause,
        }
    }
}
