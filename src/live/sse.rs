//! Operations over server-sent events, as the clients of `graphql-sse` speak it in its distinct connections mode.
//!
//! Owns the spelling of the stream (<https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md>): one operation a
//! request, `next` events with the answers, then `complete`. The topics are the sockets'.

use std::convert::Infallible;
use std::time::Duration;

use async_graphql::Request;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use tokio::time::sleep;

use super::Topics;
use super::connections::Connected;
use super::topics::{Asked, Joined};
use crate::graphql::access::Caller;

/// The media type of a stream of events.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// A comment is sent so often, so that nobody on the way takes the silence for the end.
const KEEP_ALIVE: Duration = Duration::from_secs(12);

/// Whether a request asks for a stream of events.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.split(',').any(|kind| kind.trim().starts_with(MEDIA_TYPE)))
}

/// The answer to `request` as a stream of events.
pub async fn answer(request: Request, caller: Caller, topics: Topics, connected: Connected) -> Response {
    let course = match topics.ask(request, &caller).await {
        Asked::Subscription(joined) => Course::Following(joined),
        Asked::Refused(errors) => Course::Last(next(&format!(r#"{{"data":null,"errors":{errors}}}"#))),
        Asked::Once(request) => {
            let answer = topics.schema().execute(*request).await;
            Course::Last(next(
                &serde_json::to_string(&answer).unwrap_or_else(|_| "null".into()),
            ))
        }
    };
    let gauges = topics.gauges().clone();
    let events = stream::unfold((course, connected), move |(mut course, connected)| {
        let gauges = gauges.clone();
        async move {
            let event = course.next(&connected).await?;
            gauges.delivered.inc();
            Some((Ok::<_, Infallible>(event), (course, connected)))
        }
    });
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream; charset=utf-8"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, no-transform"),
        ),
        // Proxies that gather an answer before they pass it on would gather this one for ever.
        (
            header::HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    // The first bytes go at once: a client is connected when it has the headers, and hyper sends them with the body.
    let opened = stream::once(async { Ok(Bytes::from_static(b":\n\n")) });
    (headers, Body::from_stream(opened.chain(events.boxed()))).into_response()
}

enum Course {
    Following(Box<Joined>),
    Last(Bytes),
    Complete,
    Over,
}

impl Course {
    async fn next(&mut self, connected: &Connected) -> Option<Bytes> {
        let (next, event) = match std::mem::replace(self, Course::Over) {
            Course::Following(mut joined) => tokio::select! {
                answer = joined.next() => match answer {
                    Some(Ok(payload)) => (Course::Following(joined), next(&payload)),
                    Some(Err(errors)) => (Course::Complete, next(&format!(r#"{{"data":null,"errors":{errors}}}"#))),
                    None => (Course::Over, complete()),
                },
                () = sleep(KEEP_ALIVE) => (Course::Following(joined), Bytes::from_static(b":\n\n")),
                // Without a `complete` the client knows that there is more, and comes again.
                () = connected.time_to_go() => return None,
            },
            Course::Last(event) => (Course::Complete, event),
            Course::Complete => (Course::Over, complete()),
            Course::Over => return None,
        };
        *self = next;
        Some(event)
    }
}

/// An answer. JSON has no line ends outside of strings as it is written here, so it is one line.
fn next(payload: &str) -> Bytes {
    Bytes::from(format!("event: next\ndata: {payload}\n\n"))
}

fn complete() -> Bytes {
    Bytes::from_static(b"event: complete\ndata: \n\n")
}
