//! From a resolver to a stream of updates.
//!
//! Owns when a followed state is read anew and which update tells of it. A resolver says what it follows ([`Followed`])
//! and calls [`follow`]: within a topic the stream answers for all the topic's subscribers, under a stock transport for
//! one. What is followed is the feature's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_graphql::{Context, Enum, OutputType};
use async_stream::stream;
use futures::Stream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Pulse;
use super::topic::{Mode, Note, TopicEnd};
use crate::error::Error;

/// How long to wait before reading again what could not be read.
const PATIENCE: Duration = Duration::from_millis(200);

/// Why an update was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Enum)]
pub enum UpdateCause {
    /// The first, full state.
    Snapshot,
    /// Something has changed since the update before.
    Changed,
    /// Some states were skipped, or changes may have been missed; the state is full.
    Resynced,
    /// A new period has begun; the state is full.
    PeriodStarted,
}

/// What has happened between two states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing that anybody needs to know.
    Same,
    /// A change that can be told as one.
    Changed,
    /// The later state stands for itself, for this cause.
    Anew(UpdateCause),
    /// The state that was read is the older one: it must not be shown.
    Back,
}

/// What a subscription follows: a state in Redis, read anew when something has changed.
pub trait Followed: Send + Sync + 'static {
    /// What is read.
    type State: Send + Sync + 'static;
    /// What a subscriber gets.
    type Update: OutputType + 'static;

    /// What wakes it.
    fn pulses(&self) -> watch::Receiver<Pulse>;

    /// How often it changes by itself, if it does.
    fn drifts(&self) -> Option<Duration> {
        None
    }

    /// Reads the state as it is now. `before` is the state that subscribers have, as of the pulse of that number.
    fn read(
        &self,
        before: Option<(&Self::State, u64)>,
        pulse: &Pulse,
    ) -> impl Future<Output = Result<Self::State, Error>> + Send;

    /// What has happened between two states.
    fn step(&self, before: &Self::State, now: &Self::State) -> Step;

    /// The update that tells of `now`; `before` is what the subscriber has, for [`UpdateCause::Changed`] only.
    fn update(&self, cause: UpdateCause, before: Option<&Self::State>, now: &Self::State) -> Self::Update;
}

/// A stream of updates.
pub type Updates<U> = Pin<Box<dyn Stream<Item = U> + Send>>;

/// Follows `followed` for whoever executes this subscription: a topic, or one subscriber of a stock transport.
pub fn follow<F: Followed>(ctx: &Context<'_>, followed: F) -> Updates<F::Update> {
    match ctx.data_opt::<Mode>() {
        Some(Mode::Check) => Box::pin(futures::stream::empty()),
        Some(Mode::Topic(end)) => match end.take() {
            Some(end) => Box::pin(ForTopic::new(followed, end).updates()),
            None => Box::pin(futures::stream::empty()),
        },
        None => Box::pin(Follower::new(followed).updates()),
    }
}

/// What subscribers have.
struct Known<S> {
    state: Arc<S>,
    /// As of which pulse.
    pulse: u64,
    gaps: u64,
    at: Instant,
}

/// What they do not have yet.
struct News<S> {
    cause: UpdateCause,
    known: Known<S>,
    heard_at: Option<Instant>,
}

/// One who reads the state whenever it may have changed.
struct Follower<F: Followed> {
    followed: F,
    pulses: watch::Receiver<Pulse>,
    known: Option<Known<F::State>>,
    due: bool,
    /// Not to be read before this, after a failure.
    not_before: Option<Instant>,
    /// Whether an older state than is known was read last: said once.
    saw_older: bool,
}

impl<F: Followed> Follower<F> {
    fn new(followed: F) -> Follower<F> {
        Follower {
            pulses: followed.pulses(),
            followed,
            known: None,
            due: true,
            not_before: None,
            saw_older: false,
        }
    }

    /// The updates for one subscriber, until the server stops.
    fn updates(self) -> impl Stream<Item = F::Update> + Send {
        let mut follower = self;
        stream! {
            while follower.wait().await {
                if let Some(news) = follower.look().await {
                    let before = follower.known.as_ref().map(|known| &*known.state);
                    let before = before.filter(|_| news.cause == UpdateCause::Changed);
                    let update = follower.followed.update(news.cause, before, &news.known.state);
                    follower.known = Some(news.known);
                    yield update;
                }
            }
        }
    }

    /// Waits until there may be something new; false when there never will be. May be dropped while it waits.
    async fn wait(&mut self) -> bool {
        while !self.due {
            let drifted = match (self.followed.drifts(), &self.known) {
                (Some(drift), Some(known)) => Some(known.at + drift),
                _ => None,
            };
            tokio::select! {
                changed = self.pulses.changed() => match changed {
                    Ok(()) => self.due = true,
                    Err(_) => return false,
                },
                () = until(drifted) => self.due = true,
            }
        }
        if let Some(at) = self.not_before {
            sleep_until(at).await;
            self.not_before = None;
        }
        true
    }

    /// Reads; answers with what subscribers do not know yet.
    async fn look(&mut self) -> Option<News<F::State>> {
        let pulse = self.pulses.borrow_and_update().clone();
        let before = self.known.as_ref().map(|known| (&*known.state, known.pulse));
        let state = match self.followed.read(before, &pulse).await {
            Ok(state) => state,
            Err(error) => {
                // Subscribers keep waiting and get the true state once Redis answers again.
                tracing::debug!(?error, "cannot read what is followed; trying on");
                self.again_later();
                return None;
            }
        };
        self.due = false;
        // Else it was read anew because of time, or of a failure, and nothing lags.
        let woken = self
            .known
            .as_ref()
            .is_some_and(|known| known.pulse != pulse.number);
        let step = match &self.known {
            None => Step::Anew(UpdateCause::Snapshot),
            Some(known) => match self.followed.step(&known.state, &state) {
                Step::Back => Step::Back,
                _ if pulse.gaps != known.gaps => Step::Anew(UpdateCause::Resynced),
                step => step,
            },
        };
        let cause = match step {
            Step::Same => {
                // Nobody needs to be told, but whoever joins gets what is true now.
                if let Some(known) = &mut self.known {
                    known.state = Arc::new(state);
                    (known.pulse, known.at) = (pulse.number, Instant::now());
                }
                return None;
            }
            Step::Back => {
                if !std::mem::replace(&mut self.saw_older, true) {
                    tracing::warn!("Redis answered with an older state than was read before; trying on");
                }
                self.again_later();
                return None;
            }
            Step::Changed => UpdateCause::Changed,
            Step::Anew(cause) => cause,
        };
        self.saw_older = false;
        Some(News {
            cause,
            known: Known {
                state: Arc::new(state),
                pulse: pulse.number,
                gaps: pulse.gaps,
                at: Instant::now(),
            },
            heard_at: pulse.heard_at.filter(|_| woken),
        })
    }

    fn again_later(&mut self) {
        self.due = true;
        self.not_before = Some(Instant::now() + PATIENCE);
    }
}

/// Follows for all subscribers of a topic: each yielded update is told to the topic by a [`Note`], and counts as known
/// once the topic has taken it.
struct ForTopic<F: Followed> {
    follower: Follower<F>,
    end: TopicEnd,
    number: u64,
    /// Full states that were asked for and not given yet.
    owed: Vec<UpdateCause>,
    /// What was yielded last.
    yielded: Option<Yielded<F::State>>,
}

enum Yielded<S> {
    News(News<S>),
    Full(UpdateCause),
}

impl<F: Followed> ForTopic<F> {
    fn new(followed: F, end: TopicEnd) -> ForTopic<F> {
        ForTopic {
            follower: Follower::new(followed),
            end,
            number: 0,
            owed: Vec::new(),
            yielded: None,
        }
    }

    fn updates(self) -> impl Stream<Item = F::Update> + Send {
        let mut follower = self;
        stream! {
            while let Some(update) = follower.next().await {
                yield update;
            }
        }
    }

    async fn next(&mut self) -> Option<F::Update> {
        self.settle().await;
        loop {
            if let Some(known) = &self.follower.known
                && let Some(cause) = self.owed.pop()
            {
                let update = self.follower.followed.update(cause, None, &known.state);
                self.yielded = Some(Yielded::Full(cause));
                self.end.say(Note::Full {
                    number: self.number,
                    cause,
                });
                return Some(update);
            }
            tokio::select! {
                ask = self.end.asked() => {
                    let ask = ask?;
                    if !self.owed.contains(&ask) {
                        self.owed.push(ask);
                    }
                }
                more = self.follower.wait() => match more {
                    true => if let Some(update) = self.look().await {
                        return Some(update);
                    },
                    false => return None,
                },
            }
        }
    }

    async fn look(&mut self) -> Option<F::Update> {
        let news = self.follower.look().await?;
        let Some(before) = &self.follower.known else {
            // Nobody has anything yet: whoever waits has asked for the full state.
            (self.follower.known, self.number) = (Some(news.known), 1);
            return None;
        };
        let before = (news.cause == UpdateCause::Changed).then_some(&*before.state);
        let update = self
            .follower
            .followed
            .update(news.cause, before, &news.known.state);
        self.end.say(Note::News {
            number: self.number + 1,
            full: news.cause != UpdateCause::Changed,
            heard_at: news.heard_at,
        });
        self.yielded = Some(Yielded::News(news));
        Some(update)
    }

    /// What was yielded last is known now, unless the topic could not use it: then it is read or shown once more.
    async fn settle(&mut self) {
        let refused = self.end.refused();
        match self.yielded.take() {
            Some(Yielded::News(news)) if !refused => {
                (self.follower.known, self.number) = (Some(news.known), self.number + 1);
            }
            Some(Yielded::News(_)) => self.follower.again_later(),
            Some(Yielded::Full(cause)) if refused => {
                self.owed.push(cause);
                sleep(PATIENCE).await;
            }
            Some(Yielded::Full(_)) | None => {}
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
