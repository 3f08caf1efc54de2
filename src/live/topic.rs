//! One operation that is executed once for everybody who asked it.
//!
//! Owns the bytes: the task of a topic executes the operation through the schema whenever there is news, serialises the
//! answer once and hands it to all its subscribers; the newest state wins. A subscriber that has the state before gets
//! the change, everybody else the full state. Who joins which topic is [`super::topics`]'s.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_graphql::Response;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::fan_out::{FanOut, Way};
use super::{Gauges, UpdateCause};

/// For whom a subscription is executed; without one among the request's data, for one subscriber of a stock transport.
pub enum Mode {
    /// To see whether it may be: nothing is followed.
    Check,
    /// For a topic.
    Topic(Slot),
}

/// Holds a topic's end until the resolver takes it.
pub struct Slot(Mutex<Option<TopicEnd>>);

impl Slot {
    /// Takes it out.
    pub fn take(&self) -> Option<TopicEnd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The resolver's end of a topic: what it is asked, and what it says of each update that it yields.
pub struct TopicEnd {
    asks: mpsc::UnboundedReceiver<UpdateCause>,
    notes: mpsc::UnboundedSender<Note>,
    refused: Arc<AtomicBool>,
}

/// What an update is that was yielded.
pub enum Note {
    /// The state of that number in full, as somebody asked.
    Full {
        /// The state's number within the topic.
        number: u64,
        /// What it was asked for.
        cause: UpdateCause,
    },
    /// A new state.
    News {
        /// The state's number within the topic.
        number: u64,
        /// Whether it stands for itself; else only who has the state before can use it.
        full: bool,
        /// When the first change was heard that it tells of.
        heard_at: Option<Instant>,
    },
}

impl TopicEnd {
    /// Waits for somebody to ask for the full state; `None` when nobody can any more.
    pub async fn asked(&mut self) -> Option<UpdateCause> {
        self.asks.recv().await
    }

    /// Says what the update is that is yielded next.
    pub fn say(&self, note: Note) {
        if self.notes.send(note).is_err() {
            tracing::debug!("a topic ended while it was followed");
        }
    }

    /// Whether the topic could not use what was yielded last.
    pub fn refused(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }
}

/// A state as its subscribers get it: the answer in JSON.
#[derive(Clone, Debug)]
pub struct Published {
    /// Counts the states of the topic.
    pub number: u64,
    /// Whether it stands for itself; else only who has the state before can use it.
    pub full: bool,
    /// The answer.
    pub payload: Arc<str>,
}

/// Somebody asks for the full state.
struct Want {
    cause: UpdateCause,
    reply: oneshot::Sender<Result<Published, Arc<str>>>,
}

/// The subscribers' end of a topic.
#[derive(Clone)]
pub struct Topic {
    wants: mpsc::UnboundedSender<Want>,
    states: watch::Receiver<Option<Published>>,
    fan_out: Arc<FanOut>,
}

impl Topic {
    /// A topic and its task. `execute` runs the operation with the given mode among its data.
    pub fn new(
        execute: impl FnOnce(Mode) -> BoxStream<'static, Response>,
        gauges: Arc<Gauges>,
    ) -> (Topic, impl Future<Output = ()> + Send + 'static) {
        let (asks, asked) = mpsc::unbounded_channel();
        let (notes, noted) = mpsc::unbounded_channel();
        let (wants, wanted) = mpsc::unbounded_channel();
        let (states, seen) = watch::channel(None);
        let refused = Arc::new(AtomicBool::new(false));
        let end = TopicEnd {
            asks: asked,
            notes,
            refused: refused.clone(),
        };
        let task = Task {
            responses: execute(Mode::Topic(Slot(Mutex::new(Some(end))))),
            notes: noted,
            asks,
            refused,
            states,
            waiting: Vec::new(),
            failed: None,
            gauges: gauges.clone(),
        };
        let topic = Topic {
            wants,
            fan_out: Arc::new(FanOut::new(seen.clone(), gauges)),
            states: seen,
        };
        (topic, task.run(wanted))
    }

    /// A subscriber of it. Given a way, it is written to there whenever it has nothing to catch up with; without one it
    /// fetches every state.
    pub fn subscribe(&self, way: Option<Way>) -> Subscriber {
        Subscriber {
            topic: self.clone(),
            way,
            has: None,
            asked: None,
        }
    }

    fn want(&self, cause: UpdateCause) -> oneshot::Receiver<Result<Published, Arc<str>>> {
        let (reply, answer) = oneshot::channel();
        if self.wants.send(Want { cause, reply }).is_err() {
            tracing::debug!("a topic has ended"); // which the receiver will see
        }
        answer
    }
}

/// One who gets the states of a topic.
pub struct Subscriber {
    topic: Topic,
    way: Option<Way>,
    /// The number of the state that it has.
    has: Option<u64>,
    asked: Option<oneshot::Receiver<Result<Published, Arc<str>>>>,
}

impl Subscriber {
    /// The next answer to send, which must be sent before this is called again; an error ends the subscription, `None` too.
    ///
    /// With a way, what is written there meanwhile is forgotten if this is dropped before it is done.
    pub async fn next(&mut self) -> Option<Result<Arc<str>, Arc<str>>> {
        loop {
            if let Some(asked) = &mut self.asked {
                let answer = asked.await;
                self.asked = None;
                return match answer {
                    Ok(Ok(full)) => {
                        self.has = Some(full.number);
                        Some(Ok(full.payload))
                    }
                    Ok(Err(errors)) => Some(Err(errors)),
                    Err(_) => None,
                };
            }
            let Some(has) = self.has else {
                self.asked = Some(self.topic.want(UpdateCause::Snapshot));
                continue;
            };
            let newest = self.topic.states.borrow_and_update().clone();
            match newest.filter(|newest| newest.number > has) {
                Some(newest) if newest.full || newest.number == has + 1 => {
                    self.has = Some(newest.number);
                    return Some(Ok(newest.payload));
                }
                Some(_) => self.asked = Some(self.topic.want(UpdateCause::Resynced)),
                None => self.wait(has).await?,
            }
        }
    }

    /// Waits for a state that is to be fetched; `None`: there will be none.
    async fn wait(&mut self, has: u64) -> Option<()> {
        match &self.way {
            Some(way) => self.has = Some(self.topic.fan_out.keep_up(way, has).await?),
            None => self.topic.states.changed().await.ok()?,
        }
        Some(())
    }
}

/// The task of a topic.
struct Task {
    responses: BoxStream<'static, Response>,
    notes: mpsc::UnboundedReceiver<Note>,
    asks: mpsc::UnboundedSender<UpdateCause>,
    refused: Arc<AtomicBool>,
    states: watch::Sender<Option<Published>>,
    waiting: Vec<Want>,
    /// The errors of an operation that failed as a whole.
    failed: Option<Arc<str>>,
    gauges: Arc<Gauges>,
}

impl Task {
    async fn run(mut self, mut wants: mpsc::UnboundedReceiver<Want>) {
        loop {
            tokio::select! {
                want = wants.recv() => match want {
                    Some(want) => self.wanted(want),
                    None => return,
                },
                response = self.responses.next() => match response {
                    Some(response) => self.answered(&response),
                    None => break,
                },
            }
        }
        wants.close();
        while let Ok(want) = wants.try_recv() {
            self.wanted(want);
        }
    }

    fn wanted(&mut self, want: Want) {
        if let Some(errors) = &self.failed {
            return give(want, Err(errors.clone()));
        }
        // Who left while Redis was away must not be kept in mind for as long as it is.
        self.waiting.retain(|waiting| !waiting.reply.is_closed());
        let asked = self.waiting.iter().any(|waiting| waiting.cause == want.cause);
        if !asked && self.asks.send(want.cause).is_err() {
            return; // the operation has ended, and so does the topic
        }
        self.waiting.push(want);
    }

    fn answered(&mut self, response: &Response) {
        let payload: Arc<str> = match serde_json::to_string(response) {
            Ok(json) => json.into(),
            Err(error) => return tracing::error!(%error, "an answer that is no JSON"),
        };
        let Ok(note) = self.notes.try_recv() else {
            // Not an update: the operation itself failed.
            let errors: Arc<str> = errors_of(response).into();
            self.failed = Some(errors.clone());
            return self
                .waiting
                .drain(..)
                .for_each(|want| give(want, Err(errors.clone())));
        };
        // What Redis could not answer in the middle of it must not reach a thousand subscribers as nulls.
        if response.errors.iter().any(is_unavailable) {
            return self.refused.store(true, Ordering::Relaxed);
        }
        match note {
            Note::Full { number, cause } => {
                let full = Published {
                    number,
                    full: true,
                    payload,
                };
                let (given, waiting) = self.waiting.drain(..).partition(|want| want.cause == cause);
                self.waiting = waiting;
                let given: Vec<Want> = given;
                given.into_iter().for_each(|want| give(want, Ok(full.clone())));
            }
            Note::News {
                number,
                full,
                heard_at,
            } => {
                if let Some(heard_at) = heard_at {
                    self.gauges.lag.observe(heard_at.elapsed().as_secs_f64());
                }
                self.states.send_replace(Some(Published {
                    number,
                    full,
                    payload,
                }));
            }
        }
    }
}

fn give(want: Want, answer: Result<Published, Arc<str>>) {
    if want.reply.send(answer).is_err() {
        tracing::trace!("a subscriber left while it waited");
    }
}

/// The errors of an answer as JSON.
pub fn errors_of(response: &Response) -> String {
    serde_json::to_string(&response.errors).unwrap_or_else(|_| "[]".into())
}

fn is_unavailable(error: &async_graphql::ServerError) -> bool {
    let code = error
        .extensions
        .as_ref()
        .and_then(|extensions| extensions.get("code"));
    code == Some(&async_graphql::Value::from("UNAVAILABLE"))
}
