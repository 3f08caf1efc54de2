//! The private redis-server of a server without a Redis URL: started, watched, restarted, stopped.
//!
//! Owns that process and where it listens; what is stored in it is not its business. It relies on the lock behind
//! [`DataDir`]: whoever holds that may end any other Redis on the same data, and nobody else starts one.
//!
//! Read on in `process` (one run of redis-server), `supervisor` (run after run), `orphan` (one that a killed server
//! left), `socket` (where to find it).

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::select;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::error;

use super::data_dir::DataDir;
use process::Process;

mod client;
mod error;
mod orphan;
mod process;
mod socket;
mod supervisor;

pub use error::ManagedError;
pub use socket::{running_socket, socket_path};

/// Between two looks at something that is about to happen.
const POLL: Duration = Duration::from_millis(20);

/// When a write is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before it is acknowledged.
    Always,
    /// About a second later, so a crash of the machine can take acknowledged writes with it.
    EverySec,
}

/// A private redis-server that is kept running. [`ManagedRedis::stop`] ends it gently, dropping this kills it.
#[derive(Debug)]
pub struct ManagedRedis {
    socket: PathBuf,
    pid: watch::Receiver<Option<u32>>,
    /// A word sent means stop gently; dropped without one, kill.
    stop: oneshot::Sender<()>,
    supervisor: JoinHandle<()>,
}

/// Starts the private Redis of `data_dir`; answers when it has loaded its data and takes commands.
///
/// It keeps the lock on the directory until the process is gone, also when the caller's own is dropped before.
pub async fn start(data_dir: &DataDir, durability: Durability) -> Result<ManagedRedis, ManagedError> {
    process::check_version("redis-server").await?;
    let plan = Plan::of(data_dir, durability)?;
    orphan::end(&plan).await?;
    // Before it listens, so that whoever finds it there finds it here.
    socket::record(data_dir.path(), &plan.socket)?;

    let starting = Starting(&plan);
    let mut process = Process::spawn(&plan)?;
    let ended = select! {
        status = process.ended() => Some(status),
        () = client::until_ready(&plan.socket) => None,
    };
    if let Some(status) = ended {
        let log = process.last_words().await;
        return Err(ManagedError::Ended { status, log });
    }
    std::mem::forget(starting);

    let socket = plan.socket.clone();
    let (show_pid, pid) = watch::channel(process.pid());
    let (stop, told_to_stop) = oneshot::channel();
    let supervisor = tokio::spawn(async move {
        supervisor::keep_running(&plan, process, show_pid, told_to_stop).await;
        socket::forget(plan.data_dir.path(), &plan.socket);
    });
    Ok(ManagedRedis {
        socket,
        pid,
        stop,
        supervisor,
    })
}

impl ManagedRedis {
    /// The unix socket where it listens: the same after every restart.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process id, or `None` while it is being restarted.
    pub fn pid(&self) -> Option<u32> {
        *self.pid.borrow()
    }

    /// Ends it with everything on disk. When this returns, the process is gone: killed, if it took more than 10 s.
    pub async fn stop(self) {
        if self.stop.send(()).is_err() || self.supervisor.await.is_err() {
            error!("the supervisor of the private Redis had failed, and Redis was killed with it");
        }
    }
}

/// A start that has not succeeded yet. Given up, also by its caller in the middle of it, it leaves no way to nowhere.
struct Starting<'p>(&'p Plan);

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        socket::forget(self.0.data_dir.path(), &self.0.socket);
    }
}

/// Where and how a private Redis runs: the same at each of its starts.
#[derive(Debug)]
struct Plan {
    /// Held until the process is gone, so that no other server takes it for an orphan.
    data_dir: DataDir,
    /// Its working directory, without links, as Redis itself names it.
    home: PathBuf,
    socket: PathBuf,
    durability: Durability,
}

impl Plan {
    fn of(data_dir: &DataDir, durability: Durability) -> Result<Plan, ManagedError> {
        let home = data_dir.path().join("redis");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&home);
        let home = made
            .and_then(|()| home.canonicalize())
            .map_err(ManagedError::file("use", &home))?;
        let socket = socket_path(data_dir.path())?;
        Ok(Plan {
            data_dir: data_dir.clone(),
            home,
            socket,
            durability,
        })
    }
}
