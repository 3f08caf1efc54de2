//! One WebSocket that speaks graphql-transport-ws.
//!
//! Owns the course of a connection: who is asking, what is done about each message, pings, and how it ends. The spelling
//! is [`super::protocol`]'s, the operations are [`super::operations`]'.
//!
//! One message is taken and sent at a time, so what a client does not read waits in the topic, where the newest state
//! replaces the one before: a connection holds no more than one message and its buffers. Most updates do not come by here:
//! their topic writes them into the [`super::outlet`].

use std::future::pending;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::stream::{BoxStream, SelectAll, SplitSink, SplitStream, once, select_all, unfold};
use futures::{FutureExt, SinkExt, StreamExt};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tungstenite::error::Error as WsError;

use super::Topics;
use super::connections::Connected;
use super::operations::Operations;
use super::outlet::Outlet;
use super::protocol::{ACK, ClientMessage, Close, PING, pong};
use crate::auth::{Identity, Refused};
use crate::config;
use crate::graphql::access::Caller;
use crate::presence::attendance::{Attendance, Seat};
use crate::rate::{Allowance, Rates};

/// How long a client may take to answer a close.
const FAREWELL: Duration = Duration::from_secs(2);

/// What every socket of a server has in common.
#[derive(Clone)]
pub struct Terms {
    /// Executes.
    pub topics: Topics,
    /// Limits and times.
    pub live: config::Live,
    /// Which sockets count as sessions.
    pub attendance: Attendance,
    /// Who is asking.
    pub identity: Identity,
    /// How much may be asked.
    pub rates: Rates,
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

/// What may happen to a socket besides a message that is to be sent.
enum Event {
    /// The client said something; `None` when it never will again.
    Said(Option<Result<Message, axum::Error>>),
    /// It is time to have said who is asking.
    InitOver,
    /// It is time to ping.
    Ping,
    /// Who is asking is no longer to be believed.
    Expired,
    /// The server stops, and it is this socket's turn to go.
    Go,
}

struct Socket {
    out: SplitSink<WebSocket, Message>,
    /// Where `out` leads.
    outlet: Arc<Outlet>,
    events: SelectAll<BoxStream<'static, Event>>,
    terms: Terms,
    /// Where the client is.
    address: IpAddr,
    /// Who is asking, and at whose cost.
    caller: Option<(Caller, Allowance)>,
    /// Its place, if it counts as a session.
    seat: Option<Seat>,
    operations: Operations,
    /// The server stops: nothing more is begun, and it goes when what was begun is answered.
    leaving: bool,
    heard_at: Instant,
    pinged_at: Option<Instant>,
}

/// Serves a socket until it ends.
pub async fn serve(
    stream: WebSocket,
    outlet: Arc<Outlet>,
    address: IpAddr,
    terms: Terms,
    connected: Connected,
) {
    outlet.framed();
    let (out, said) = stream.split();
    let mut socket = Socket {
        out,
        outlet,
        events: events(said, &terms.live, connected),
        caller: None,
        seat: None,
        operations: Operations::default(),
        leaving: false,
        heard_at: Instant::now(),
        pinged_at: None,
        address,
        terms,
    };
    let end = socket.run().await;
    let Socket {
        out,
        outlet,
        events,
        terms,
        operations,
        seat,
        ..
    } = socket;
    drop((operations, seat)); // they end before the farewell
    let rest = events.filter_map(|event| async {
        if let Event::Said(said) = event {
            Some(said)
        } else {
            None
        }
    });
    match end {
        End::Close(close) => leave(out, rest.boxed(), Some(close)).await,
        End::Agreed => leave(out, rest.boxed(), None).await,
        End::Gone => {}
        End::Stalled => {
            terms.topics.gauges().dropped.inc();
            tracing::debug!("dropped a socket whose client takes nothing");
            return;
        }
    }
    // The WebSocket layer holds its answer to a close for sent when the outlet has accepted it.
    if !matches!(timeout(FAREWELL, outlet.drained()).await, Ok(Ok(()))) {
        tracing::trace!("a client went before it had all that was sent");
    }
}

fn events(
    said: SplitStream<WebSocket>,
    live: &config::Live,
    connected: Connected,
) -> SelectAll<BoxStream<'static, Event>> {
    let said = said
        .map(|said| Event::Said(Some(said)))
        .chain(once(async { Event::Said(None) }));
    let init = Duration::from_secs(live.init_timeout_seconds);
    let init = once(async move {
        sleep(init).await;
        Event::InitOver
    });
    let pause = Duration::from_secs(live.ping_seconds);
    let ping = unfold((), move |()| async move {
        sleep(pause).await;
        Some((Event::Ping, ()))
    });
    let go = once(async move {
        connected.time_to_go().await;
        (Event::Go, connected)
    });
    // Counted as connected until the end, also while it says farewell.
    let go = go.flat_map(|(go, connected)| {
        once(async { go }).chain(once(async move {
            let _connected = connected;
            pending().await
        }))
    });
    select_all([said.boxed(), init.boxed(), ping.boxed(), go.boxed()])
}

/// Closes a socket that is not served, or no more.
pub async fn refuse(stream: WebSocket, close: Close) {
    let (out, said) = stream.split();
    leave(out, said.map(Some).boxed(), Some(close)).await;
}

/// Closes a socket from this side, or agrees to the other's close, and waits a moment for the end.
async fn leave(
    mut out: SplitSink<WebSocket, Message>,
    mut rest: BoxStream<'_, Option<Result<Message, axum::Error>>>,
    close: Option<Close>,
) {
    let frame = close.map(|close| CloseFrame {
        code: close.code,
        reason: close.reason.into(),
    });
    let farewell = async {
        let said = match frame {
            Some(frame) => out.send(Message::Close(Some(frame))).await,
            None => Ok(()),
        };
        if said.is_ok() {
            while let Some(Some(Ok(_))) = rest.next().await {}
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
                text = self.operations.next() => self.deliver(text).await,
                () = self.outlet.stuck() => in_time(&self.terms.live, self.out.flush()).await,
                event = self.events.next() => match event {
                    Some(event) => self.met(event).await,
                    None => Err(End::Gone),
                },
            };
            if let Err(end) = step {
                return end;
            }
            if self.leaving && !self.operations.is_answering() {
                return End::Close(Close::going_away());
            }
        }
    }

    async fn met(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Said(Some(Ok(message))) => self.received(message).await,
            Event::Said(Some(Err(error))) => Err(self.unreadable(error)),
            Event::Said(None) => Err(End::Gone),
            Event::InitOver if self.caller.is_none() => Err(End::Close(Close::init_timeout())),
            Event::InitOver => Ok(()),
            Event::Ping => self.ping().await,
            Event::Expired => Err(End::Close(Close::forbidden(&Refused::Expired.to_string()))),
            Event::Go => {
                self.leaving = true;
                Ok(())
            }
        }
    }

    async fn received(&mut self, message: Message) -> Result<(), End> {
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
                let payload = payload.map_or(Value::Null, Value::Object);
                let place = self.terms.attendance.asked(&payload);
                let place = place.map_err(|why| End::Close(Close::invalid(&why)))?;
                let identity = self.terms.identity.clone();
                let identified = identity.of_payload(&payload);
                let identified = identified.map_err(|why| End::Close(Close::forbidden(&why.to_string())))?;
                let caller = identified.caller.clone();
                if let Some(place) = place {
                    let user = caller.user.clone().ok_or_else(|| {
                        End::Close(Close::forbidden("presence is of a user, and nobody is signed in"))
                    })?;
                    self.seat = Some(self.terms.attendance.take(user, place));
                }
                let allowance = self.terms.rates.of(&caller, self.address);
                self.caller = Some((caller, allowance));
                if identified.expires_at.is_some() {
                    let expired = async move { identity.expired(&identified).await };
                    self.events.push(once(expired.map(|()| Event::Expired)).boxed());
                }
                self.say(ACK.into()).await
            }
            ClientMessage::Ping { payload } => self.say(pong(payload)).await,
            ClientMessage::Pong { .. } => Ok(()),
            ClientMessage::Subscribe { .. } if self.leaving => Ok(()), // it gets no answer but the close
            ClientMessage::Subscribe { id, payload } => {
                let Some((caller, allowance)) = self.caller.clone() else {
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
                let topics = self.terms.topics.clone();
                let request = payload.data(allowance);
                self.operations
                    .begin(id, request, caller, topics, self.outlet.clone());
                Ok(())
            }
            ClientMessage::Complete { id } => {
                self.operations.end(&id);
                Ok(())
            }
        }
    }

    /// Pings; a client that has said nothing at all since the ping before is gone.
    async fn ping(&mut self) -> Result<(), End> {
        if self.pinged_at.is_some_and(|pinged_at| self.heard_at < pinged_at) {
            return Err(End::Stalled);
        }
        self.pinged_at = Some(Instant::now());
        // The protocol's own ping is for clients that watch for silence; the frame's every WebSocket answers by itself.
        self.write(Message::Ping(Default::default())).await?;
        self.say(PING.into()).await
    }

    async fn say(&mut self, text: String) -> Result<(), End> {
        self.write(Message::Text(text.into())).await
    }

    async fn deliver(&mut self, text: String) -> Result<(), End> {
        self.terms.topics.gauges().delivered.inc();
        self.say(text).await
    }

    async fn write(&mut self, message: Message) -> Result<(), End> {
        in_time(&self.terms.live, self.out.send(message)).await
    }
}

async fn in_time(
    live: &config::Live,
    sending: impl Future<Output = Result<(), axum::Error>>,
) -> Result<(), End> {
    let mut sending = pin!(sending);
    // Most messages go at once, and need no timer.
    let sent = match sending.as_mut().now_or_never() {
        Some(sent) => Ok(sent),
        None => timeout(Duration::from_secs(live.send_timeout_seconds), sending).await,
    };
    match sent {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(End::Gone),
        Err(_) => Err(End::Stalled),
    }
}
