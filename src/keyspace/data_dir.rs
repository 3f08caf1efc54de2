//! The data directory: there, writable, and ours alone.
//!
//! A [`DataDir`] is the proof of that, so whatever opens files in it asks for one instead of a path. It owns the file
//! `lock`; what else lies in the directory belongs to whoever put it there.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An existing, writable directory that no other process uses as its data directory.
///
/// The lock lasts until the last clone is dropped, and ends with the process however that ends.
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: Arc<Lock>,
}

/// A locked file. Closing it would not do: a child that another thread has just forked holds the same open file until it
/// becomes another program, and the lock with it.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "the data directory's lock ends with its file");
        }
    }
}

/// Why a directory cannot be the data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// It is missing and cannot be made, or something else has its name.
    #[error("cannot use {path} as the data directory: {cause}")]
    Unusable {
        /// The directory as it was asked for.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// It exists, but this process may not write in it, or its disk is full.
    #[error(
        "cannot write in the data directory {path}: {cause}; it must belong to the user that runs the server"
    )]
    Unwritable {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// Its file system cannot lock files.
    #[error(
        "cannot lock {path}: {cause}; put the data directory on a file system with locks, such as a local disk"
    )]
    Unlockable {
        /// The lock file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// Another process holds it.
    #[error(
        "the data directory {path} is in use by {}; stop that one, or give this server another server.data_dir",
        .pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The directory.
        path: PathBuf,
        /// The holder, unless it has the lock but has not signed it yet.
        pid: Option<u32>,
    },
}

impl DataDir {
    /// Makes `path` if it is missing (for this user only), makes sure that it can be written, and locks it.
    pub fn lock(path: &Path) -> Result<DataDir, DataDirError> {
        let unusable = |cause| {
            // What the system says of a file in its place is "File exists".
            let cause = if path.is_file() {
                io::ErrorKind::NotADirectory.into()
            } else {
                cause
            };
            DataDirError::Unusable {
                path: path.to_owned(),
                cause,
            }
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(unusable)?;
        // Absolute and without links: it must mean the same after a change of directory, and to another process.
        let path = path.canonicalize().map_err(unusable)?;
        let unwritable = |cause| DataDirError::Unwritable {
            path: path.clone(),
            cause,
        };

        let lock_path = path.join("lock");
        let mut options = OpenOptions::new();
        // Not truncated on opening: until the lock is ours, what it says is its holder's.
        options.read(true).write(true).create(true).truncate(false);
        let lock = options.open(&lock_path).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = fs::read_to_string(&lock_path)
                    .ok()
                    .and_then(|text| text.trim().parse().ok());
                return Err(DataDirError::Held { path, pid });
            }
            Err(TryLockError::Error(cause)) => {
                return Err(DataDirError::Unlockable {
                    path: lock_path,
                    cause,
                });
            }
        }
        sign(&lock)
            .and_then(|()| try_writing(&path))
            .map_err(unwritable)?;
        Ok(DataDir {
            path,
            _lock: Arc::new(Lock(lock)),
        })
    }

    /// The directory, absolute and without links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Leaves this process' id in its lock file, for whoever finds it held.
fn sign(mut lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())
}

/// A lock file from earlier opens in a directory that has since become read-only, so a new file has to be tried.
fn try_writing(directory: &Path) -> io::Result<()> {
    let trial = directory.join("write-test");
    fs::write(&trial, b"may be deleted\n")?;
    fs::remove_file(&trial)
}
