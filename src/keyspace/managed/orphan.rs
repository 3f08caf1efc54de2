//! The Redis of a server that was killed: it goes on running, and has to go before ours may open the same files.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::{ManagedError, POLL, Plan, client, process, socket};

/// For an orphan to answer, complete its append-only file and go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends whatever Redis still uses the data of `plan`. We hold the lock, so nobody can be using it on purpose.
pub(super) async fn end(plan: &Plan) -> Result<(), ManagedError> {
    let pid = process::recorded_pid(&plan.home).filter(|&pid| works_in(pid, &plan.home));
    let unresponsive = |_| ManagedError::Unresponsive {
        pid,
        home: plan.home.clone(),
    };
    // Its environment may have been another one than ours, and so its socket.
    let elsewhere = socket::recorded(plan.data_dir.path()).filter(|socket| *socket != plan.socket);
    for socket in elsewhere.as_deref().into_iter().chain([plan.socket.as_path()]) {
        timeout(PATIENCE, dismiss(&plan.home, socket))
            .await
            .map_err(unresponsive)??;
    }
    // It closes its socket before it exits; and it may have lost its socket, and run on where nobody can ask it.
    if let Some(pid) = pid {
        let gone = async {
            while works_in(pid, &plan.home) {
                sleep(POLL).await;
            }
        };
        timeout(PATIENCE, gone).await.map_err(unresponsive)?;
    }
    Ok(())
}

/// Asks the Redis on `socket` to go, until nobody listens there.
async fn dismiss(home: &Path, socket: &Path) -> Result<(), ManagedError> {
    let mut met = false;
    while listens(socket).await? {
        match client::directory(socket).await {
            Ok(directory) if directory == home => {
                if !met {
                    warn!("a Redis of an earlier server still runs; ending it to take its data over");
                }
                met = true;
                if let Err(reason) = client::shut_down(socket).await {
                    debug!(%reason, "the Redis of an earlier server did not take the order to stop");
                }
            }
            Ok(directory) => {
                return Err(ManagedError::Foreign {
                    socket: socket.to_owned(),
                    directory,
                });
            }
            Err(reason) => debug!(%reason, "the Redis of an earlier server does not say what it serves"),
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// Whether somebody does. A socket that nobody has open any more is removed.
async fn listens(socket: &Path) -> Result<bool, ManagedError> {
    match UnixStream::connect(socket).await {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
        Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(socket).map_err(ManagedError::file("remove", socket))?;
            Ok(false)
        }
        Err(cause) => Err(ManagedError::file("connect to", socket)(cause)),
    }
}

/// Whether process `pid` is alive with `home` as its working directory: ids are used again, so its life alone says
/// nothing. Never true where there is no /proc; there the socket has to do.
fn works_in(pid: u32, home: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory == home)
}
