//! The operations that one connection has asked for.
//!
//! Owns their ids and their course: each becomes a stream of messages that ends with the last one. A connection takes the
//! messages one by one, so a slow one queues nothing.

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::{Request, Response};
use futures::future::{AbortHandle, Abortable};
use futures::stream::{self, BoxStream, SelectAll};
use futures::{Stream, StreamExt};

use super::Topics;
use super::protocol::Operation;
use super::topic::errors_of;
use super::topics::{Asked, Joined};
use crate::graphql::access::Caller;

/// One message of an operation.
pub struct Said {
    id: Arc<str>,
    /// The message, spelled for this connection.
    pub text: String,
    last: bool,
}

/// The operations of one connection.
#[derive(Default)]
pub struct Operations {
    running: HashMap<String, AbortHandle>,
    messages: SelectAll<Abortable<BoxStream<'static, Said>>>,
}

impl Operations {
    /// Whether an operation of that id goes on.
    pub fn has(&self, id: &str) -> bool {
        self.running.contains_key(id)
    }

    /// How many go on.
    pub fn count(&self) -> usize {
        self.running.len()
    }

    /// Begins what `request` asks for `caller`, under an id that is free.
    pub fn begin(&mut self, id: String, request: Request, caller: Caller, topics: Topics) {
        let (handle, registration) = AbortHandle::new_pair();
        let course = course(id.clone(), request, caller, topics).boxed();
        self.messages.push(Abortable::new(course, registration));
        self.running.insert(id, handle);
    }

    /// Ends an operation, if it goes on.
    pub fn end(&mut self, id: &str) {
        if let Some(handle) = self.running.remove(id) {
            handle.abort();
        }
    }

    /// The next message of any of them; pending while there is none.
    pub async fn next(&mut self) -> String {
        loop {
            match self.messages.next().await {
                Some(said) => return self.sent(said),
                None => std::future::pending().await,
            }
        }
    }

    /// Another message, if one is ready.
    pub fn ready(&mut self) -> Option<String> {
        use futures::FutureExt;
        let said = self.messages.next().now_or_never()??;
        Some(self.sent(said))
    }

    fn sent(&mut self, said: Said) -> String {
        if said.last {
            self.running.remove(&*said.id);
        }
        said.text
    }
}

/// Where an operation stands.
enum Course {
    Asked(Box<(Request, Caller, Topics)>),
    Following(Box<Joined>),
    Answered,
    Over,
}

fn course(id: String, request: Request, caller: Caller, topics: Topics) -> impl Stream<Item = Said> + Send {
    let began = (
        Course::Asked(Box::new((request, caller, topics))),
        Operation::new(&id),
        Arc::<str>::from(id),
    );
    stream::unfold(began, |(mut course, operation, id)| async move {
        let (text, last) = course.next(&operation).await?;
        let said = Said {
            id: id.clone(),
            text,
            last,
        };
        Some((said, (course, operation, id)))
    })
}

impl Course {
    /// The next message, and whether it is the last.
    async fn next(&mut self, operation: &Operation) -> Option<(String, bool)> {
        loop {
            let (next, said) = match std::mem::replace(self, Course::Over) {
                Course::Asked(asked) => {
                    let (request, caller, topics) = *asked;
                    match topics.ask(request, &caller).await {
                        Asked::Subscription(joined) => (Course::Following(joined), None),
                        Asked::Refused(errors) => (Course::Over, Some((operation.error(&errors), true))),
                        Asked::Once(request) => once(operation, &topics.schema().execute(*request).await),
                    }
                }
                Course::Following(mut joined) => match joined.next().await {
                    Some(Ok(payload)) => (Course::Following(joined), Some((operation.next(&payload), false))),
                    Some(Err(errors)) => (Course::Over, Some((operation.error(&errors), true))),
                    None => (Course::Over, Some((operation.complete(), true))),
                },
                Course::Answered => (Course::Over, Some((operation.complete(), true))),
                Course::Over => return None,
            };
            *self = next;
            if said.is_some() {
                return said;
            }
        }
    }
}

/// The course after an operation that is answered once. What could not even begin is an error, and nothing follows it.
fn once(operation: &Operation, response: &Response) -> (Course, Option<(String, bool)>) {
    if never_began(response) {
        return (Course::Over, Some((operation.error(&errors_of(response)), true)));
    }
    match serde_json::to_string(response) {
        Ok(payload) => (Course::Answered, Some((operation.next(&payload), false))),
        Err(error) => {
            tracing::error!(%error, "an answer that is no JSON");
            (Course::Over, Some((operation.complete(), true)))
        }
    }
}

/// Whether an operation was refused before it was executed: by its syntax, its names, its limits.
pub fn never_began(response: &Response) -> bool {
    response.data == async_graphql::Value::Null
        && !response.errors.is_empty()
        && response.errors.iter().all(|error| error.path.is_empty())
}
