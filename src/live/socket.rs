//! One WebSocket that speaks graphql-transport-ws.
//!
//! Owns the course of a connection: who is asking, what is done about each message, pings, and how it ends. The spelling
//! is [`super::protocol`]'s, the operations are [`super::operations`]'.
//!
//! One message is taken and sent at a time, so what a client does not read waits in the topic, where the newest state
//! replaces the one before: a connection holds no more than one message and its buffers.

use std::pin::Pin;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::SinkExt;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tungstenite::error::Error as WsError;

use super::Topics;
use super::connections::Connected;
use super::operations::Operations;
use super::protocol::{ACK, ClientMessage, Close, PING, pong};
use crate::config;
use crate::graphql::access::Caller;

/// How long a client may take to answer a close.
const FAREWELL: Duration = Duration::from_secs(2);

/// So many bytes are written together, if there is more than one message.
const TOGETHER: usize = 64 * 1024;

/// What every socket of a server has in common.
#[derive(Clone)]
pub struct Terms {
    /// Executes.
    pub topics: Topics,
    /// Limits and times.
    pub live: config::Live,
    /// Who is asking, from the payload of `connection_init`; or why nobody is let in.
    pub identify: fn(Value) -> Result<Caller, String>,
}

/// Why a connection ends.
enum End {
    /// This side says so.
    Close(Close),
    /// The other side said so, and waits for the answer that the WebSocket layer gives.
    Agreed,
    /// The other side is gone.
    Gone,
    /// The other side does not take what is sent, or does not answer.
    Stalled,
}

struct Socket {
    stream: WebSocket,
    terms: Terms,
    caller: Option<Caller>,
    operations: Operations,
    /// Before the acknowledgement: when it is too late for it. After: when to ping. Kept from message to message, since
    /// setting a timer costs more than sending one.
    deadline: Pin<Box<Sleep>>,
    heard_at: Instant,
    pinged_at: Option<Instant>,
}

/// Serves a socket until it ends.
pub async fn serve(stream: WebSocket, terms: Terms, connected: Connected) {
    let now = Instant::now();
    let mut socket = Socket {
        stream,
        caller: None,
        operations: Operations::default(),
        deadline: Box::pin(sleep(Duration::from_secs(terms.live.init_timeout_seconds))),
        heard_at: now,
        pinged_at: None,
        terms,
    };
    let end = tokio::select! {
        end = socket.run() => end,
        () = connected.time_to_go() => End::Close(Close::going_away()),
    };
    socket.operations = Operations::default();
    match end {
        End::Close(close) => leave(socket.stream, Some(close)).await,
        End::Agreed => leave(socket.stream, None).await,
        End::Gone => {}
        End::Stalled => {
            socket.terms.topics.gauges().dropped.inc();
            tracing::debug!("dropped a socket whose client takes nothing");
        }
    }
}

/// Closes a socket from this side, or agrees to the other's close, and waits a moment for the end.
pub async fn leave(mut stream: WebSocket, close: Option<Close>) {
    let frame = close.map(|close| CloseFrame {
        code: close.code,
        reason: close.reason.into(),
    });
    let farewell = async {
        let said = match frame {
            Some(frame) => stream.send(Message::Close(Some(frame))).await,
            None => Ok(()),
        };
        if said.is_ok() {
            while let Some(Ok(_)) = stream.recv().await {}
        }
    };
    if timeout(FAREWELL, farewell).await.is_err() {
        tracing::trace!("a client did not answer a close");
    }
}

impl Socket {
    async fn run(&mut self) -> End {
        loop {
            let step = tokio::select! {
                biased; // what is ready to be sent is sent, and the rest is looked at once
                text = self.operations.next() => self.say_all(text).await,
                message = self.stream.recv() => self.received(message).await,
                () = &mut self.deadline => self.is_late().await,
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn received(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(self.unreadable(error)),
            None => return Err(End::Gone),
        };
        self.heard_at = Instant::now();
        match message {
            Message::Text(text) => {
                let message = ClientMessage::read(&text).map_err(End::Close)?;
                self.answer(message).await
            }
            Message::Binary(_) => Err(End::Close(Close::invalid("messages are text"))),
            Message::Ping(_) | Message::Pong(_) => Ok(()), // the WebSocket layer answers pings by itself
            Message::Close(_) => Err(End::Agreed),
        }
    }

    fn unreadable(&self, error: axum::Error) -> End {
        match error.into_inner().downcast_ref::<WsError>() {
            Some(WsError::Capacity(_)) => End::Close(Close::too_big(self.terms.live.max_message_bytes)),
            Some(WsError::Utf8(_)) => End::Close(Close::invalid("not UTF-8")),
            _ => End::Gone,
        }
    }

    async fn answer(&mut self, message: ClientMessage) -> Result<(), End> {
        match message {
            ClientMessage::ConnectionInit { .. } if self.caller.is_some() => {
                Err(End::Close(Close::init_twice()))
            }
            ClientMessage::ConnectionInit { payload } => {
                let caller = (self.terms.identify)(payload);
                self.caller = Some(caller.map_err(|why| End::Close(Close::forbidden(&why)))?);
                self.ping_later(Instant::now());
                self.say(ACK.into()).await
            }
            ClientMessage::Ping { payload } => self.say(pong(payload.as_ref())).await,
            ClientMessage::Pong {} => Ok(()),
            ClientMessage::Subscribe { id, payload } => {
                let Some(caller) = self.caller.clone() else {
                    return Err(End::Close(Close::unauthorized()));
                };
                if self.operations.has(&id) {
                    return Err(End::Close(Close::duplicate(&id)));
                }
                if self.operations.count() >= self.terms.live.max_subscriptions {
                    return Err(End::Close(Close::try_again_later(
                        "too many subscriptions on this socket",
                    )));
                }
                self.operations
                    .begin(id, *payload, caller, self.terms.topics.clone());
                Ok(())
            }
            ClientMessage::Complete { id } => {
                self.operations.end(&id);
                Ok(())
            }
        }
    }

    /// What to do when the deadline has come.
    async fn is_late(&mut self) -> Result<(), End> {
        if self.caller.is_none() {
            return Err(End::Close(Close::init_timeout()));
        }
        if self.pinged_at.is_some_and(|pinged_at| self.heard_at < pinged_at) {
            return Err(End::Stalled);
        }
        let now = Instant::now();
        self.pinged_at = Some(now);
        self.ping_later(now);
        // The protocol's own ping is for clients that watch for silence; the frame's every WebSocket answers by itself.
        self.write(Message::Ping(Default::default())).await?;
        self.say(PING.into()).await
    }

    fn ping_later(&mut self, now: Instant) {
        let pause = Duration::from_secs(self.terms.live.ping_seconds);
        self.deadline.as_mut().reset(now + pause);
    }

    async fn say(&mut self, text: String) -> Result<(), End> {
        self.write(Message::Text(text.into())).await
    }

    /// Sends a message, and together with it those that are ready as well.
    async fn say_all(&mut self, text: String) -> Result<(), End> {
        let mut next = Some(text);
        let mut bytes = 0;
        let sending = async {
            while let Some(text) = next.take() {
                bytes += text.len();
                self.terms.topics.gauges().delivered.inc();
                self.stream.feed(Message::Text(text.into())).await?;
                if bytes < TOGETHER {
                    next = self.operations.ready();
                }
            }
            self.stream.flush().await
        };
        in_time(&self.terms.live, sending).await
    }

    async fn write(&mut self, message: Message) -> Result<(), End> {
        in_time(&self.terms.live, self.stream.send(message)).await
    }
}

async fn in_time(
    live: &config::Live,
    sending: impl Future<Output = Result<(), axum::Error>>,
) -> Result<(), End> {
    match timeout(Duration::from_secs(live.send_timeout_seconds), sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::Gone),
        Err(_) => Err(End::Stalled),
    }
}
