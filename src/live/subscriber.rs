//! The node's ear at Redis' channel of changes.
//!
//! Owns the one subscription of this node and its supervision: it redials for ever, notices a frozen Redis within 10 s, and
//! only says that it hears once SUBSCRIBE is confirmed. Who is woken is [`super::changes`]'s.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use redis::{Client, RedisError};
use tokio::time::{sleep, timeout};

use super::changes::Shared;
use crate::random::jittered;

/// How often the subscription is pinged; with the patience for its answer a frozen Redis is noticed within 10 s.
const PING_EVERY: Duration = Duration::from_secs(4);
const PING_PATIENCE: Duration = Duration::from_secs(4);

/// Listens for ever.
pub(super) async fn supervise(client: Client, channel: String, shared: Arc<Shared>) {
    const SHORTEST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);
    let mut pause = SHORTEST;
    loop {
        let error = listen(&client, &channel, &shared).await;
        if shared.is_deaf() {
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
        Err(_) => return broken("SUBSCRIBE was not confirmed in time"),
    };
    shared.hears_again();
    let mut next_ping = Box::pin(sleep(PING_EVERY));
    loop {
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => match message.get_payload::<String>() {
                    Ok(text) => shared.heard(&text),
                    Err(error) => tracing::debug!(%error, "a message that is no text"),
                },
                None => return broken("the subscription ended"),
            },
            () = &mut next_ping => {
                match timeout(PING_PATIENCE, sink.ping::<redis::Value>()).await {
                    Ok(Ok(_)) => next_ping = Box::pin(sleep(PING_EVERY)),
                    Ok(Err(error)) => return error,
                    Err(_) => return broken("no answer to a ping in time"),
                }
            }
        }
    }
}

fn broken(what: &'static str) -> RedisError {
    RedisError::from((redis::ErrorKind::Io, what))
}
