//! The supervised connection to Redis.
//!
//! Owns reconnecting, timeouts and the one retry. While Redis is known to be away, calls fail at once instead of
//! hanging; a call whose answer got lost is sent once more within its time, which is harmless because every write bears
//! an operation id (see [`super::mutation`]).

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, RedisError, ServerError, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Request;
use crate::random::jittered;

/// Why Redis gave no answer that could be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unavailable {
    /// There is no connection.
    #[error("Redis cannot be reached")]
    Down,
    /// No answer came in time; the request may or may not have run.
    #[error("Redis did not answer within {0:?}")]
    TimedOut(Duration),
    /// The data is not what this server has seen before.
    #[error("Redis holds older or other data than this server has seen: {0}")]
    Stale(String),
    /// Another business day is in force than the caller's: its store brings that about, and asks again.
    #[error("another business day is in force")]
    StaleDay,
    /// Redis answers, but takes no such request now (loading, out of memory, read-only, disk trouble).
    #[error("Redis refuses: {0}")]
    Refused(String),
    /// A fault of ours, such as an error within a script.
    #[error("{0}")]
    Fault(String),
}

impl Unavailable {
    /// Sorts an error reply by what can be done about it.
    pub fn from_server(error: &ServerError) -> Unavailable {
        let said = match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        };
        match error.code() {
            "STALE" => Unavailable::Stale(said),
            "STALEDAY" => Unavailable::StaleDay,
            "LOADING" | "OOM" | "MISCONF" | "READONLY" | "BUSY" | "MASTERDOWN" | "NOREPLICAS"
            | "TRYAGAIN" | "CLUSTERDOWN" => Unavailable::Refused(said),
            _ => Unavailable::Fault(said),
        }
    }
}

/// A handle on the supervised connection; clones share it. The supervisor ends with the last handle.
#[derive(Clone)]
pub struct Connection {
    live: watch::Receiver<Option<Live>>,
    suspect: Arc<Notify>,
    timeout: Duration,
}

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    number: u64,
}

impl Connection {
    /// Starts to keep a connection to `target`. Returns at once; see [`Connection::up`].
    pub fn open(target: ConnectionInfo, timeout: Duration) -> Result<Connection, RedisError> {
        let client = Client::open(target)?;
        let (sender, live) = watch::channel(None);
        let suspect = Arc::new(Notify::new());
        tokio::spawn(supervise(client, timeout, sender, suspect.clone()));
        Ok(Connection {
            live,
            suspect,
            timeout,
        })
    }

    /// Waits until there is a connection, at most `patience`.
    pub async fn up(&self, patience: Duration) -> Result<(), Unavailable> {
        let mut live = self.live.clone();
        match timeout(patience, live.wait_for(Option::is_some)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Unavailable::Down),
        }
    }

    /// Whether there is a connection as far as is known.
    pub fn is_up(&self) -> bool {
        self.live.borrow().is_some()
    }

    /// Waits until a connection newer than `seen` stands, and answers with its number.
    pub async fn reconnected(&self, seen: u64) -> Option<u64> {
        let mut live = self.live.clone();
        let newer = live
            .wait_for(|live| live.as_ref().is_some_and(|live| live.number > seen))
            .await
            .ok()?;
        newer.as_ref().map(|live| live.number)
    }

    /// Sends `request` and answers with a reply a part. Within the timeout it is tried twice.
    pub async fn run(&self, request: &Request) -> Result<Vec<Value>, Unavailable> {
        let deadline = Instant::now() + self.timeout;
        let first = self.live.borrow().clone().ok_or(Unavailable::Down)?;
        let number = first.number;
        let again = match timeout(self.timeout / 2, attempt(first, request)).await {
            Ok(Ok(replies)) => return Ok(replies),
            Ok(Err(_lost)) => {
                self.suspect.notify_one();
                self.newer_than(number, deadline).await?
            }
            Err(_late) => {
                self.suspect.notify_one();
                self.live.borrow().clone().ok_or(Unavailable::Down)?
            }
        };
        match timeout_at(deadline, attempt(again, request)).await {
            Ok(Ok(replies)) => Ok(replies),
            Ok(Err(_lost)) => Err(Unavailable::Down),
            Err(_late) => Err(Unavailable::TimedOut(self.timeout)),
        }
    }

    async fn newer_than(&self, number: u64, deadline: Instant) -> Result<Live, Unavailable> {
        match timeout_at(deadline, self.reconnected(number)).await {
            Ok(Some(_)) => self.live.borrow().clone().ok_or(Unavailable::Down),
            Ok(None) | Err(_) => Err(Unavailable::Down),
        }
    }
}

/// One try. Scripts that Redis does not know (a restart, SCRIPT FLUSH) are loaded and the whole request sent again.
async fn attempt(mut live: Live, request: &Request) -> Result<Vec<Value>, RedisError> {
    let pipeline = request.pipeline();
    let replies = live
        .connection
        .req_packed_commands(pipeline, 0, pipeline.len())
        .await?;
    let unknown = |reply: &Value| matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT");
    if !replies.iter().any(unknown) {
        return Ok(replies);
    }
    request.loading().exec_async(&mut live.connection).await?;
    live.connection
        .req_packed_commands(pipeline, 0, pipeline.len())
        .await
}

/// Connects for ever, and looks after each connection until it breaks.
async fn supervise(
    client: Client,
    patience: Duration,
    sender: watch::Sender<Option<Live>>,
    suspect: Arc<Notify>,
) {
    const SHORTEST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);
    let mut pause = SHORTEST;
    let mut number = 0;
    let mut said = String::new();
    loop {
        match connect(&client, patience).await {
            Ok(connection) => {
                number += 1;
                pause = SHORTEST;
                said.clear();
                tracing::debug!(number, "connected to Redis");
                sender.send_replace(Some(Live {
                    connection: connection.clone(),
                    number,
                }));
                tokio::select! {
                    () = until_broken(connection, patience, &suspect) => {}
                    () = sender.closed() => return,
                }
                sender.send_replace(None);
                tracing::warn!("lost the connection to Redis");
            }
            Err(error) if error != said => {
                tracing::warn!(error, "cannot connect to Redis; trying on");
                said = error;
            }
            Err(_) => {}
        }
        tokio::select! {
            () = sleep(jittered(pause)) => {}
            () = sender.closed() => return,
        }
        pause = (pause * 2).min(LONGEST);
    }
}

async fn connect(client: &Client, patience: Duration) -> Result<MultiplexedConnection, String> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(patience))
        .set_response_timeout(None); // each call has its own deadline
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .map_err(|error| error.to_string())?;
    ping(&mut connection, patience).await?; // a server that is still loading accepts connections
    Ok(connection)
}

/// Pings once a second, and at once when a call has reason to doubt the connection.
async fn until_broken(mut connection: MultiplexedConnection, patience: Duration, suspect: &Notify) {
    loop {
        tokio::select! {
            () = suspect.notified() => {}
            () = sleep(Duration::from_secs(1)) => {}
        }
        if let Err(error) = ping(&mut connection, patience).await {
            tracing::debug!(error, "Redis does not answer a ping");
            return;
        }
    }
}

async fn ping(connection: &mut MultiplexedConnection, patience: Duration) -> Result<(), String> {
    match timeout(patience, redis::cmd("PING").exec_async(connection)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer to PING within {patience:?}")),
    }
}
