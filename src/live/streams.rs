//! Operations over plain HTTP, their answers streamed: for clients without WebSocket.
//!
//! Owns two spellings of such a stream: server-sent events as `graphql-sse` has them in its distinct connections mode
//! (<https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md>), and the parts of Apollo's multipart protocol
//! (<https://www.apollographql.com/docs/graphos/routing/operations/subscriptions/multipart-protocol>). One operation a
//! request; the topics are the sockets'.

use std::convert::Infallible;
use std::time::Duration;

use async_graphql::Request;
use async_graphql::http::is_accept_multipart_mixed;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use tokio::time::sleep;

use super::Topics;
use super::connections::Connected;
use super::operations::never_began;
use super::topic::errors_of;
use super::topics::{Asked, Joined};
use crate::graphql::access::Caller;

/// A sign of life is sent so often, so that nobody on the way takes the silence for the end.
const KEEP_ALIVE: Duration = Duration::from_secs(12);

/// How a stream is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Server-sent events.
    Events,
    /// The parts of a `multipart/mixed` answer.
    Parts,
}

impl Spelling {
    /// What a client with these headers takes; `None`: a plain answer.
    pub fn wanted(headers: &HeaderMap) -> Option<Spelling> {
        let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
        if accept
            .split(',')
            .any(|kind| kind.trim().starts_with("text/event-stream"))
        {
            Some(Spelling::Events)
        } else {
            is_accept_multipart_mixed(accept).then_some(Spelling::Parts)
        }
    }

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
pub async fn answer(
    spelling: Spelling,
    request: Request,
    caller: Caller,
    topics: Topics,
    connected: Connected,
) -> Response {
    let course = match topics.ask(request, &caller).await {
        Asked::Subscription(joined) => Course::Following(joined),
        Asked::Refused(errors) => Course::Last(of_errors(&errors)),
        Asked::Once(request) => {
            let answer = topics.schema().execute(*request).await;
            Course::Last(match never_began(&answer) {
                true => of_errors(&errors_of(&answer)),
                false => serde_json::to_string(&answer).unwrap_or_else(|_| "null".into()),
            })
        }
    };
    let gauges = topics.gauges().clone();
    let stream = stream::unfold((course, connected), move |(mut course, connected)| {
        let gauges = gauges.clone();
        async move {
            let bytes = course.next(spelling, &connected).await?;
            gauges.delivered.inc();
            Some((Ok::<_, Infallible>(bytes), (course, connected)))
        }
    });
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
    let opening = stream::once(async move { Ok(spelling.opening()) });
    (headers, Body::from_stream(opening.chain(stream.boxed()))).into_response()
}

/// The answer to what could not be executed.
fn of_errors(errors: &str) -> String {
    format!(r#"{{"errors":{errors}}}"#)
}

enum Course {
    Following(Box<Joined>),
    Last(String),
    Complete,
    Over,
}

impl Course {
    async fn next(&mut self, spelling: Spelling, connected: &Connected) -> Option<Bytes> {
        let (next, bytes) = match std::mem::replace(self, Course::Over) {
            Course::Following(mut joined) => tokio::select! {
                answer = joined.next() => match answer {
                    Some(Ok(payload)) => (Course::Following(joined), spelling.next(&payload)),
                    Some(Err(errors)) => (Course::Complete, spelling.next(&of_errors(&errors))),
                    None => (Course::Over, spelling.complete()),
                },
                () = sleep(KEEP_ALIVE) => (Course::Following(joined), spelling.alive()),
                // Without the end a client knows that there is more, and comes again.
                () = connected.time_to_go() => return None,
            },
            Course::Last(payload) => (Course::Complete, spelling.next(&payload)),
            Course::Complete => (Course::Over, spelling.complete()),
            Course::Over => return None,
        };
        *self = next;
        Some(bytes)
    }
}
