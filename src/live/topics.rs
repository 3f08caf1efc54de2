//! Who shares which topic.
//!
//! Owns the operations that subscribers ask: each is checked for its own asker, then joins the topic of those who asked
//! the same and may see the same, or begins one. A topic ends with its last subscriber.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_graphql::parser::types::{ExecutableDocument, OperationType};
use async_graphql::{Request, Response, ServerError, Variables};
use futures::StreamExt;
use tokio::task::AbortHandle;

use super::Gauges;
use super::fan_out::Way;
use super::gauges::Counted;
use super::operation::{Canonical, canonical};
use super::topic::{Mode, Subscriber, Topic, errors_of};
use crate::graphql::Api;
use crate::graphql::access::Caller;
use crate::graphql::document::chosen;
use crate::graphql::shared::Marks;
use crate::rate::Allowance;

/// All topics of a node.
#[derive(Clone)]
pub struct Topics(Arc<Inner>);

struct Inner {
    api: Api,
    marks: Marks,
    topics: Mutex<HashMap<Key, Entry>>,
    begun: AtomicU64,
    gauges: Arc<Gauges>,
}

/// What subscribers of a topic have in common: what they asked, and the caller, unless everybody may see the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    operation: String,
    caller: Option<String>,
}

struct Entry {
    topic: Topic,
    /// Tells topics of one key apart that follow each other.
    began: u64,
    subscribers: usize,
    task: AbortHandle,
    _counted: Counted,
}

/// What somebody asks for over a socket or a stream.
pub enum Asked {
    /// A subscription to follow.
    Subscription(Box<Joined>),
    /// One answer, and no more.
    Once(Box<Request>),
    /// It cannot be executed; the errors as JSON.
    Refused(Arc<str>),
}

/// A subscriber of a topic; it leaves when dropped.
pub struct Joined {
    subscriber: Subscriber,
    key: Key,
    began: u64,
    topics: Topics,
    _counted: Counted,
}

impl Joined {
    /// The next answer to send; see [`Subscriber::next`].
    pub async fn next(&mut self) -> Option<Result<Arc<str>, Arc<str>>> {
        self.subscriber.next().await
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.topics.leave(&self.key, self.began);
    }
}

impl Topics {
    /// No topics yet; operations are executed by `api`.
    pub fn new(api: Api, gauges: Arc<Gauges>) -> Topics {
        Topics(Arc::new(Inner {
            marks: Marks::read(&api.sdl()),
            api,
            topics: Mutex::default(),
            begun: AtomicU64::new(0),
            gauges,
        }))
    }

    /// What executes.
    pub fn api(&self) -> &Api {
        &self.0.api
    }

    /// What is counted.
    pub fn gauges(&self) -> &Arc<Gauges> {
        &self.0.gauges
    }

    /// Begins what `request` asks for `caller`. The updates of a subscription go by themselves where there is a way.
    pub async fn ask(&self, mut request: Request, caller: &Caller, way: Option<Way>) -> Asked {
        if self.0.api.admit(&mut request).is_err() {
            // Refused where it is executed, and paid for there.
            return Asked::Once(Box::new(request.data(caller.clone())));
        }
        let name = request.operation_name.clone();
        let document = match request.parsed_query() {
            Ok(document) => document.clone(),
            // The schema says best what is wrong.
            Err(_) => return Asked::Once(Box::new(request.data(caller.clone()))),
        };
        match chosen(&document, name.as_deref()).map(|operation| operation.ty) {
            Some(OperationType::Subscription) => {}
            Some(OperationType::Query | OperationType::Mutation) | None => {
                return Asked::Once(Box::new(request.data(caller.clone())));
            }
        }
        let allowance = Allowance::of_request(&request);
        let question = Question {
            text: request.query,
            name,
            variables: request.variables,
            document,
        };
        match self.check(&question, caller, allowance).await {
            Ok(canonical) => Asked::Subscription(Box::new(self.join(question, canonical, caller, way))),
            Err(response) => Asked::Refused(errors_of(&response).into()),
        }
    }

    /// Whether `caller` may ask this: validated and begun as its own, but not followed.
    async fn check(
        &self,
        question: &Question,
        caller: &Caller,
        allowance: Option<Allowance>,
    ) -> Result<Canonical, Response> {
        let mut request = question.request(caller).data(Mode::Check);
        if let Some(allowance) = allowance {
            request = request.data(allowance); // the subscriber pays here; the topic itself is ours
        }
        let mut refused = self.0.api.execute_stream(request);
        if let Some(response) = refused.next().await {
            return Err(response);
        }
        let refusal = |reason: String| Response::from_errors(vec![bad_input(reason)]);
        let operation = chosen(&question.document, question.name.as_deref());
        let operation = operation.ok_or_else(|| refusal("name the operation".into()))?;
        canonical(&question.document, operation, &question.variables, &self.0.marks)
            .map_err(|none| refusal(none.to_string()))
    }

    fn join(&self, question: Question, canonical: Canonical, caller: &Caller, way: Option<Way>) -> Joined {
        let key = Key {
            operation: canonical.text,
            caller: (!canonical.shared).then(|| caller.name()),
        };
        let mut topics = self.0.topics.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has ended by itself is still there for those who have not noticed.
        topics.retain(|known, entry| *known != key || !entry.task.is_finished());
        let entry = topics
            .entry(key.clone())
            .or_insert_with(|| self.begin(question, caller));
        entry.subscribers += 1;
        Joined {
            subscriber: entry.topic.subscribe(way),
            began: entry.began,
            key,
            topics: self.clone(),
            _counted: Counted::one(&self.0.gauges.subscriptions),
        }
    }

    fn begin(&self, question: Question, caller: &Caller) -> Entry {
        let execute = |mode| self.0.api.execute_stream(question.request(caller).data(mode));
        let (topic, task) = Topic::new(execute, self.0.gauges.clone());
        Entry {
            topic,
            began: self.0.begun.fetch_add(1, Ordering::Relaxed),
            subscribers: 0,
            task: tokio::spawn(task).abort_handle(),
            _counted: Counted::one(&self.0.gauges.topics),
        }
    }

    fn leave(&self, key: &Key, began: u64) {
        let mut topics = self.0.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = topics.get_mut(key).filter(|entry| entry.began == began) else {
            return;
        };
        entry.subscribers -= 1;
        if entry.subscribers == 0 {
            entry.task.abort();
            topics.remove(key);
        }
    }
}

fn bad_input(reason: String) -> ServerError {
    let mut error = ServerError::new(reason, None);
    error
        .extensions
        .get_or_insert_default()
        .set("code", "BAD_USER_INPUT");
    error
}

/// An operation as somebody sent it, to be executed more than once.
struct Question {
    text: String,
    name: Option<String>,
    variables: Variables,
    document: ExecutableDocument,
}

impl Question {
    fn request(&self, caller: &Caller) -> Request {
        let mut request = Request::new(&self.text)
            .variables(self.variables.clone())
            .data(caller.clone());
        request.operation_name = self.name.clone();
        request.set_parsed_query(self.document.clone());
        request
    }
}
