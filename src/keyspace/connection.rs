//! The supervised connection to Redis.
//!
//! Owns reconnecting, timeouts and the one retry. While Redis is known to be away, calls fail at once instead of
//! hanging; a call whose answer got lost is sent once more within its time, which is harmless because every write bears
//! an operation id (see [`super::mutation`]).

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, RedisError, ServerError, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use tracing::Instrument;

use super::{Counts, Request};
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
    live: watch::Receiver<Result<Live, Why>>,
    suspect: Arc<Notify>,
    timeout: Duration,
    counts: Counts,
}

/// Why there is no connection, in words for the operator.
type Why = Arc<str>;

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    number: u64,
}

impl Connection {
    /// Starts to keep a connection to `target`. Returns at once; see [`Connection::up`].
    pub fn open(target: ConnectionInfo, timeout: Duration) -> Result<Connection, RedisError> {
        let client = Client::open(target)?;
        let (sender, live) = watch::channel(Err("it has not answered yet".into()));
        let suspect = Arc::new(Notify::new());
        tokio::spawn(supervise(client, timeout, sender, suspect.clone()));
        Ok(Connection {
            live,
            suspect,
            timeout,
            counts: Counts::default(),
        })
    }

    /// Waits until there is a connection, at most `patience`. If there is none by then, says why.
    pub async fn up(&self, patience: Duration) -> Result<(), String> {
        let mut live = self.live.clone();
        if let Ok(Ok(_)) = timeout(patience, live.wait_for(Result::is_ok)).await {
            return Ok(());
        }
        match &*self.live.borrow() {
            Ok(_) => Ok(()),
            Err(why) => Err(why.to_string()),
        }
    }

    /// What is counted of it.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How long a call may take, its retry included.
    pub fn patience(&self) -> Duration {
        self.timeout
    }

    /// Whether there is a connection as far as is known.
    pub fn is_up(&self) -> bool {
        self.live.borrow().is_ok()
    }

    /// Waits until a connection newer than `seen` stands, and answers with its number.
    pub async fn reconnected(&self, seen: u64) -> Option<u64> {
        let mut live = self.live.clone();
        let newer = live
            .wait_for(|live| live.as_ref().is_ok_and(|live| live.number > seen))
            .await
            .ok()?;
        newer.as_ref().ok().map(|live| live.number)
    }

    /// Sends `request` and answers with a reply a part. Within the timeout it is tried twice.
    pub async fn run(&self, request: &Request) -> Result<Vec<Value>, Unavailable> {
        if request.is_empty() {
            return Ok(Vec::new()); // sent, it would wait for a reply that never comes
        }
        let begun = Instant::now();
        let span = tracing::debug_span!("redis", script = request.name());
        let outcome = self
            .try_twice(request, begun + self.timeout)
            .instrument(span)
            .await;
        self.counts
            .asked(request.name(), begun.elapsed(), outcome.is_err());
        outcome
    }

    async fn try_twice(&self, request: &Request, deadline: Instant) -> Result<Vec<Value>, Unavailable> {
        let first = self.now()?;
        let number = first.number;
        let again = match timeout(self.timeout / 2, attempt(first, request)).await {
            Ok(Ok(replies)) => return Ok(replies),
            Ok(Err(_lost)) => {
                self.suspect.notify_one();
                self.newer_than(number, deadline).await?
            }
            Err(_late) => {
                self.suspect.notify_one();
                self.now()?
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
            Ok(Some(_)) => self.now(),
            Ok(None) | Err(_) => Err(Unavailable::Down),
        }
    }

    fn now(&self) -> Result<Live, Unavailable> {
        self.live.borrow().clone().map_err(|_| Unavailable::Down)
    }
}

/// One try. If Redis does not know a script (a restart, SCRIPT FLUSH), the whole request goes again with its scripts in
/// front, as often as they get lost on the way; the caller's time bounds it.
async fn attempt(mut live: Live, request: &Request) -> Result<Vec<Value>, RedisError> {
    let pipeline = request.pipeline();
    let unknown = |reply: &Value| matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT");
    let mut replies = live
        .connection
        .req_packed_commands(pipeline, 0, pipeline.len())
        .await?;
    while replies.iter().any(unknown) {
        let (scripts, loading) = request.with_scripts();
        replies = live
            .connection
            .req_packed_commands(&loading, scripts, pipeline.len())
            .await?;
    }
    Ok(replies)
}

/// Connects for ever, and looks after each connection until it breaks.
async fn supervise(
    client: Client,
    patience: Duration,
    sender: watch::Sender<Result<Live, Why>>,
    suspect: Arc<Notify>,
) {
    const SHORTEST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);
    let mut pause = SHORTEST;
    let mut number = 0;
    let mut said: Why = "".into();
    loop {
        match connect(&client, patience).await {
            Ok(connection) => {
                number += 1;
                pause = SHORTEST;
                said = "".into();
                tracing::debug!(number, "connected to Redis");
                drop(sender.send_replace(Ok(Live {
                    connection: connection.clone(),
                    number,
                })));
                let why = tokio::select! {
                    why = until_broken(connection, patience, &suspect) => why,
                    () = sender.closed() => return,
                };
                tracing::warn!("lost the connection to Redis: {why}");
                drop(sender.send_replace(Err(why)));
            }
            Err(why) => {
                if why != said {
                    tracing::warn!("cannot connect to Redis: {why}; trying on");
                    said = why.clone();
                }
                drop(sender.send_replace(Err(why)));
            }
        }
        tokio::select! {
            () = sleep(jittered(pause)) => {}
            () = sender.closed() => return,
        }
        pause = (pause * 2).min(LONGEST);
    }
}

async fn connect(client: &Client, patience: Duration) -> Result<MultiplexedConnection, Why> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(patience))
        .set_response_timeout(None); // each call has its own deadline
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .map_err(|error| why(&error))?;
    ping(&mut connection, patience).await?; // a server that is still loading accepts connections
    Ok(connection)
}

/// Pings once a second, and at once when a call has reason to doubt the connection.
async fn until_broken(mut connection: MultiplexedConnection, patience: Duration, suspect: &Notify) -> Why {
    loop {
        tokio::select! {
            () = suspect.notified() => {}
            () = sleep(Duration::from_secs(1)) => {}
        }
        if let Err(why) = ping(&mut connection, patience).await {
            return why;
        }
    }
}

async fn ping(connection: &mut MultiplexedConnection, patience: Duration) -> Result<(), Why> {
    match timeout(patience, redis::cmd("PING").exec_async(connection)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(why(&error)),
        Err(_) => Err(format!("no answer to PING within {patience:?}").into()),
    }
}

/// An error in one line, without the library's own words for it.
fn why(error: &RedisError) -> Why {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => "what answers there is no Redis".into(),
        _ => match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {}", detail.trim_end_matches('.')).into(),
            _ => error.to_string().lines().next().unwrap_or_default().into(),
        },
    }
}
