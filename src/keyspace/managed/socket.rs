//! Where the private Redis of a data directory listens.
//!
//! Not in the directory itself, whose path may be longer than a socket's may be. The place depends on the user's
//! environment, which differs between a terminal and cron, so the one in use is written down in the data directory.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tracing::{debug, warn};
use xxhash_rust::xxh64::xxh64;

use super::ManagedError;

/// What fits into a socket's address.
const LONGEST: usize = 107;

/// The socket for the private Redis of `data_dir`: in the user's runtime directory, or else in one of ours in /tmp.
///
/// The directory for it is made if missing. It must be this user's alone, or others could listen in our place.
pub fn socket_path(data_dir: &Path) -> Result<PathBuf, ManagedError> {
    let name = name(data_dir).map_err(ManagedError::file("find", data_dir))?;
    let uid = own_uid(data_dir).map_err(ManagedError::file("find the owner of", data_dir))?;
    // A relative path would depend on where each process was started, so it is ignored, as XDG says.
    let runtime = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    if let Some(runtime) = runtime {
        let directory = runtime.join("tallyboard");
        let socket = directory.join(&name);
        let usable = check_private(&runtime, uid).and_then(|()| make_private(&directory, uid));
        match usable {
            Ok(()) if socket.as_os_str().len() <= LONGEST => return Ok(socket),
            Ok(()) => debug!(directory = %directory.display(), "the path is too long for a socket"),
            // `sudo` and containers often leave a directory that is another user's or is not there.
            Err(reason) => debug!(%reason, "XDG_RUNTIME_DIR is of no use"),
        }
    }
    let directory = Path::new("/tmp").join(format!("tallyboard-{uid}"));
    make_private(&directory, uid)?;
    Ok(directory.join(name))
}

/// Where the private Redis of `data_dir` listens, if one does: for a process beside the server that started it.
pub fn running_socket(data_dir: &Path) -> Option<PathBuf> {
    recorded(data_dir).filter(|socket| UnixStream::connect(socket).is_ok())
}

/// The socket that the last start wrote down.
pub(super) fn recorded(data_dir: &Path) -> Option<PathBuf> {
    let socket = PathBuf::from(OsString::from_vec(fs::read(record_of(data_dir)).ok()?));
    // In a copy of a data directory this file leads to the original's Redis.
    (socket.file_name()? == name(data_dir).ok()?.as_str()).then_some(socket)
}

/// Writes down where Redis is about to listen.
pub(super) fn record(data_dir: &Path, socket: &Path) -> Result<(), ManagedError> {
    let record = record_of(data_dir);
    let draft = record.with_extension("new");
    // By renaming, so that nobody reads half a path.
    fs::write(&draft, socket.as_os_str().as_bytes())
        .and_then(|()| fs::rename(&draft, &record))
        .map_err(ManagedError::file("write", &record))
}

/// Removes what leads to a Redis that has ended; the socket is still there if it was killed.
pub(super) fn forget(data_dir: &Path, socket: &Path) {
    for path in [socket, &record_of(data_dir)] {
        match fs::remove_file(path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                warn!(%cause, "cannot remove {}", path.display());
            }
            _ => {}
        }
    }
}

fn record_of(data_dir: &Path) -> PathBuf {
    data_dir.join("redis.socket")
}

/// The same for every process and version, however the directory is spelled.
fn name(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.canonicalize()?;
    Ok(format!("{:016x}.sock", xxh64(path.as_os_str().as_bytes(), 0)))
}

/// The user that this process runs as. Where the system does not show it (macOS), the data directory's owner.
fn own_uid(data_dir: &Path) -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")
        .or_else(|_| fs::metadata(data_dir))?
        .uid())
}

fn make_private(directory: &Path, uid: u32) -> Result<(), ManagedError> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
            Err(ManagedError::file("make", directory)(cause))
        }
        // Checked also when just made: another process may have been quicker.
        _ => check_private(directory, uid),
    }
}

fn check_private(directory: &Path, uid: u32) -> Result<(), ManagedError> {
    // Not following a link: in /tmp anybody may have put one.
    let found = fs::symlink_metadata(directory).map_err(ManagedError::file("look at", directory))?;
    let reason = match () {
        () if !found.is_dir() => "it is not a directory",
        () if found.uid() != uid => "it belongs to another user",
        () if found.mode() & 0o077 != 0 => "it is open to other users",
        () => return Ok(()),
    };
    Err(ManagedError::Exposed {
        directory: directory.to_owned(),
        reason,
    })
}
