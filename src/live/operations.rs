//! The operations that one connection has asked for.
//!
//! Owns their ids and their course: each is a stream of messages that ends with the last one. A connection takes the
//! messages one by one, so a slow one queues nothing. An update for who has the one before comes past this, written into
//! the connection's outlet by its topic.

use std::pin::Pin;
use std::sync::Arc;

use async_graphql::{Request, Response};
use async_stream::stream;
use futures::{Stream, StreamExt};
use tokio_stream::StreamMap;

use super::Topics;
use super::fan_out::Way;
use super::outlet::Outlet;
use super::protocol::Operation;
use super::topic::errors_of;
use super::topics::Asked;
use crate::graphql::access::Caller;

/// The operations of one connection, by their ids.
#[derive(Default)]
pub struct Operations {
    messages: StreamMap<String, Pin<Box<dyn Stream<Item = Said> + Send>>>,
    /// One for each that is to be answered once, held as long as it is not.
    answering: Arc<()>,
}

/// A message of an operation. With its last one an operation is over and its id is free.
enum Said {
    More(String),
    Last(String),
}

impl Operations {
    /// Whether an operation of that id goes on.
    pub fn has(&self, id: &str) -> bool {
        self.messages.contains_key(id)
    }

    /// How many go on.
    pub fn count(&self) -> usize {
        self.messages.len()
    }

    /// Whether any of them is to be answered once, and has not been.
    pub fn is_answering(&self) -> bool {
        Arc::strong_count(&self.answering) > 1
    }

    /// Begins what `request` asks for `caller`, under an id that is free.
    pub fn begin(
        &mut self,
        id: String,
        request: Request,
        caller: Caller,
        topics: Topics,
        outlet: Arc<Outlet>,
    ) {
        let answering = self.answering.clone();
        let messages = course(Operation::new(&id), request, caller, topics, outlet, answering);
        self.messages.insert(id, Box::pin(messages));
    }

    /// Ends an operation, if it goes on.
    pub fn end(&mut self, id: &str) {
        self.messages.remove(id);
    }

    /// The next message of any of them, to be sent before this is called again; pending while there is none.
    pub async fn next(&mut self) -> String {
        match self.messages.next().await {
            Some((_, Said::More(message))) => message,
            Some((id, Said::Last(message))) => {
                self.messages.remove(&id);
                message
            }
            None => std::future::pending().await,
        }
    }
}

/// The messages of one operation.
fn course(
    operation: Operation,
    request: Request,
    caller: Caller,
    topics: Topics,
    outlet: Arc<Outlet>,
    answering: Arc<()>,
) -> impl Stream<Item = Said> + Send {
    let (opening, closing) = operation.around_answer();
    let way = Way {
        outlet,
        opening: opening.into(),
        closing,
    };
    stream! {
        match topics.ask(request, &caller, Some(way)).await {
            Asked::Refused(errors) => yield Said::Last(operation.error(&errors)),
            Asked::Once(request) => {
                let response = topics.api().execute(*request).await;
                match as_json(&response) {
                    Ok(payload) => {
                        yield Said::More(operation.next(&payload));
                        yield Said::Last(operation.complete());
                    }
                    Err(errors) => yield Said::Last(operation.error(&errors)),
                }
                drop(answering);
            }
            Asked::Subscription(mut joined) => {
                drop(answering);
                while let Some(answer) = joined.next().await {
                    match answer {
                        Ok(payload) => yield Said::More(operation.next(&payload)),
                        Err(errors) => {
                            yield Said::Last(operation.error(&errors));
                            return;
                        }
                    }
                }
                yield Said::Last(operation.complete());
            }
        }
    }
}

/// An answer as JSON; or only its errors, if the operation was refused before it was executed: by its syntax, its names,
/// its limits.
pub fn as_json(response: &Response) -> Result<String, String> {
    let never_began = response.data == async_graphql::Value::Null
        && !response.errors.is_empty()
        && response.errors.iter().all(|error| error.path.is_empty());
    if never_began {
        return Err(errors_of(response));
    }
    serde_json::to_string(response).map_err(|error| {
        tracing::error!(%error, "an answer that is no JSON");
        "[]".into()
    })
}
