//! The few words that are exchanged with a private Redis itself, each over a connection of its own.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, InfoDict, RedisResult, cmd};
use tokio::time::{Instant, sleep};
use tracing::info;

use super::POLL;

/// For the connection, and again for each answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How often a long wait is reported.
const REPORT_EVERY: Duration = Duration::from_secs(5);

async fn connect(socket: &Path) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(TIMEOUT))
        .set_response_timeout(Some(TIMEOUT));
    let client = Client::open(ConnectionAddr::Unix(socket.to_owned()))?;
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Waits until it takes commands, however long the loading of its data takes, and says so every few seconds.
pub(super) async fn until_ready(socket: &Path) {
    let mut reported = Instant::now();
    while let Err(reason) = ping(socket).await {
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            let loaded = loaded_percent(socket).await.ok().flatten();
            info!(%reason, loaded_percent = loaded, "waiting for the private Redis");
        }
        sleep(POLL).await;
    }
}

async fn ping(socket: &Path) -> RedisResult<()> {
    cmd("PING").exec_async(&mut connect(socket).await?).await
}

async fn loaded_percent(socket: &Path) -> RedisResult<Option<f64>> {
    let mut connection = connect(socket).await?;
    let info: InfoDict = cmd("INFO")
        .arg("persistence")
        .query_async(&mut connection)
        .await?;
    Ok(info.get("loading_loaded_perc"))
}

/// The directory that it works in.
pub(super) async fn directory(socket: &Path) -> RedisResult<PathBuf> {
    let mut connection = connect(socket).await?;
    let ask = cmd("CONFIG").arg("GET").arg("dir").to_owned();
    let (_, directory): (String, Vec<u8>) = ask.query_async(&mut connection).await?;
    Ok(OsString::from_vec(directory).into())
}

/// Tells it to write what it has and go. That it went is to be seen elsewhere: it hangs up instead of answering.
pub(super) async fn shut_down(socket: &Path) -> RedisResult<()> {
    let mut connection = connect(socket).await?;
    // NOSAVE means no RDB file; the append-only file is completed all the same. Without the word, a Redis that is
    // caught in a script refuses.
    match cmd("SHUTDOWN").arg("NOSAVE").exec_async(&mut connection).await {
        Err(error) if error.is_connection_dropped() => Ok(()),
        answer => answer,
    }
}
