//! Operations over plain HTTP, their answers streamed: for clients without WebSocket.
//!
//! Owns two spellings of such a stream: server-sent events as `graphql-sse` has them in its distinct connections mode
//! (<https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md>), and the parts of Apollo's multipart protocol
//! (<https://www.apollographql.com/docs/graphos/routing/operations/subscriptions/multipart-protocol>). One operation a
//! request; the topics are the sockets'.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use async_graphql::Request;
use async_stream::stream;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use tokio::time::sleep;

use super::connections::Connected;
use super::operations::as_json;
use super::socket::Terms;
use super::topic::errors_of;
use super::topics::Asked;
use crate::auth::{Identified, Refused};
use crate::error::Error;

/// How a stream is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Server-sent events.
    Events,
    /// The parts of a `multipart/mixed` answer.
    Parts,
}

impl Spelling {
    /// Its name among the protocols that are counted.
    pub fn name(self) -> &'static str {
        match self {
            Spelling::Events => "graphql-sse",
            Spelling::Parts => "multipart",
        }
    }

    fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Spelling::Events => "text/event-stream; charset=utf-8",
            Spelling::Parts => "multipart/mixed; boundary=graphql; subscriptionSpec=1.0",
        })
    }

    /// What comes first: a client knows that it is connected when it has the headers, and they go with the first bytes.
    fn opening(self) -> Bytes {
        Bytes::from_static(match self {
            Spelling::Events => b":\n\n",
            Spelling::Parts => b"\r\n--graphql",
        })
    }

    /// An answer. JSON as it is written here is one line. A part ends with the boundary of the next, since a client takes
    /// it for whole only then.
    fn next(self, payload: &str) -> Bytes {
        Bytes::from(match self {
            Spelling::Events => format!("event: next\ndata: {payload}\n\n"),
            Spelling::Parts => part(&format!(r#"{{"payload":{payload}}}"#)),
        })
    }

    fn alive(self) -> Bytes {
        match self {
            Spelling::Events => Bytes::from_static(b":\n\n"),
            Spelling::Parts => Bytes::from(part("{}")),
        }
    }

    fn complete(self) -> Bytes {
        Bytes::from_static(match self {
            Spelling::Events => b"event: complete\ndata:\n\n",
            Spelling::Parts => b"--\r\n",
        })
    }
}

fn part(json: &str) -> String {
    format!("\r\ncontent-type: application/json\r\n\r\n{json}\r\n--graphql")
}

/// The answer to `request` as a stream.
pub fn answer(
    spelling: Spelling,
    request: Request,
    identified: Identified,
    terms: Terms,
    connected: Connected,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, spelling.media_type()),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, no-transform"),
        ),
        // Proxies that gather an answer before they pass it on would gather this one for ever.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    let bytes = course(spelling, request, identified, terms, connected).map(Ok::<_, Infallible>);
    (headers, Body::from_stream(bytes)).into_response()
}

fn course(
    spelling: Spelling,
    request: Request,
    identified: Identified,
    terms: Terms,
    connected: Connected,
) -> impl Stream<Item = Bytes> + Send {
    let Terms {
        topics,
        live,
        identity,
        ..
    } = terms;
    let delivered = topics.gauges().delivered.clone();
    stream! {
        // One wait for all that is sent, since the turn to go is drawn by lot: a lot for each update would be no turn.
        let mut time_to_go = pin!(connected.time_to_go());
        let mut expired = pin!(identity.expired(&identified));
        yield spelling.opening();
        match topics.ask(request, &identified.caller, None).await {
            Asked::Refused(errors) => yield spelling.next(&of_errors(&errors)),
            Asked::Once(request) => {
                let response = topics.api().execute(*request).await;
                yield spelling.next(&as_json(&response).unwrap_or_else(|errors| of_errors(&errors)));
            }
            Asked::Subscription(mut joined) => loop {
                let answer = tokio::select! {
                    answer = joined.next() => answer,
                    // So that nobody on the way takes the silence for the end.
                    () = sleep(Duration::from_secs(live.ping_seconds)) => {
                        yield spelling.alive();
                        continue;
                    }
                    // Without the end a client knows that there is more, and comes again.
                    () = &mut time_to_go => return,
                    () = &mut expired => {
                        yield spelling.next(&of_errors(&expiry()));
                        break;
                    }
                };
                match answer {
                    Some(Ok(payload)) => {
                        delivered.inc();
                        yield spelling.next(&payload);
                    }
                    Some(Err(errors)) => {
                        yield spelling.next(&of_errors(&errors));
                        break;
                    }
                    None => break,
                }
            },
        }
        yield spelling.complete();
    }
}

/// The errors with which a stream ends whose token has expired.
fn expiry() -> String {
    errors_of(&async_graphql::Response::from_errors(vec![
        Error::from(Refused::Expired).of_request(),
    ]))
}

/// The answer to what could not be executed.
fn of_errors(errors: &str) -> String {
    format!(r#"{{"errors":{errors}}}"#)
}
