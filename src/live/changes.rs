//! The node's ear at Redis' channel of changes.
//!
//! Owns the one subscriber of this node, its supervision, and who is woken by what. Messages may get lost, so they only
//! say "look again"; after every (re)connect everybody looks again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use redis::{Client, ConnectionInfo, RedisError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::ids::BoardId;
use crate::random::jittered;

/// How often the subscription is pinged; with the patience for its answer a frozen Redis is noticed within 10 s.
const PING_EVERY: Duration = Duration::from_secs(4);
const PING_PATIENCE: Duration = Duration::from_secs(4);

/// Who is woken by what. The listener ends when this is dropped.
pub struct Changes {
    shared: Arc<Shared>,
    listener: JoinHandle<()>,
}

struct Shared {
    /// For each board how often it was said to have changed.
    boards: HashMap<BoardId, watch::Sender<u64>>,
    hearing: watch::Sender<bool>,
}

impl Changes {
    /// Listens to `channel` of `target` for changes of `boards`.
    pub fn listen(
        target: ConnectionInfo,
        channel: String,
        boards: impl IntoIterator<Item = BoardId>,
    ) -> Result<Changes, RedisError> {
        let client = Client::open(target)?;
        let boards = boards
            .into_iter()
            .map(|board| (board, watch::channel(0).0))
            .collect();
        let shared = Arc::new(Shared {
            boards,
            hearing: watch::channel(false).0,
        });
        let listener = tokio::spawn(supervise(client, channel, shared.clone()));
        Ok(Changes { shared, listener })
    }

    /// A receiver that is woken whenever `board` may have changed; `None` for a board that is not configured.
    pub fn of_board(&self, board: &BoardId) -> Option<watch::Receiver<u64>> {
        self.shared.boards.get(board).map(watch::Sender::subscribe)
    }

    /// Waits until changes are heard, at most `patience`; whether they are.
    pub async fn heard_within(&self, patience: Duration) -> bool {
        let mut hearing = self.shared.hearing.subscribe();
        timeout(patience, hearing.wait_for(|hearing| *hearing))
            .await
            .is_ok_and(|heard| heard.is_ok())
    }

    /// Whether changes are heard at present.
    pub fn hearing(&self) -> bool {
        *self.shared.hearing.borrow()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Shared {
    fn heard(&self, message: &str) {
        let board = message
            .strip_prefix("board ")
            .and_then(|id| BoardId::parse(id).ok());
        // Another node may know boards that this one does not.
        if let Some(sender) = board.and_then(|board| self.boards.get(&board)) {
            sender.send_modify(|count| *count += 1);
        }
    }

    fn everything_may_have_changed(&self) {
        self.boards
            .values()
            .for_each(|sender| sender.send_modify(|count| *count += 1));
    }
}

async fn supervise(client: Client, channel: String, shared: Arc<Shared>) {
    const SHORTEST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);
    let mut pause = SHORTEST;
    loop {
        let error = listen(&client, &channel, &shared).await;
        if shared.hearing.send_replace(false) {
            pause = SHORTEST;
            tracing::warn!(%error, "deaf: lost the subscription to Redis");
        }
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Subscribes and listens until that fails.
async fn listen(client: &Client, channel: &str, shared: &Shared) -> RedisError {
    let subscribed = async {
        let mut pubsub = client.get_async_pubsub().await?;
        pubsub.subscribe(channel).await?;
        Ok::<_, RedisError>(pubsub)
    };
    let (mut sink, mut messages) = match timeout(PING_PATIENCE, subscribed).await {
        Ok(Ok(pubsub)) => pubsub.split(),
        Ok(Err(error)) => return error,
        Err(_) => return too_late("SUBSCRIBE was not confirmed in time"),
    };
    shared.hearing.send_replace(true);
    shared.everything_may_have_changed();
    loop {
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => match message.get_payload::<String>() {
                    Ok(text) => shared.heard(&text),
                    Err(error) => tracing::debug!(%error, "a message that is no text"),
                },
                None => return too_late("the subscription ended"),
            },
            () = sleep(PING_EVERY) => {
                match timeout(PING_PATIENCE, sink.ping::<redis::Value>()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => return error,
                    Err(_) => return too_late("no answer to a ping in time"),
                }
            }
        }
    }
}

fn too_late(what: &'static str) -> RedisError {
    RedisError::from((redis::ErrorKind::Io, what))
}
