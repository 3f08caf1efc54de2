//! What wakes a follower, and what it says of who moved.
//!
//! Owns what is gathered between two pulses of a board, and how long it is kept for who did not come along. Pure but for the
//! instants at which something was heard.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::message::Scored;
use crate::ids::UserId;

/// The scores of how many pulses are kept for who did not come along.
const KEPT_PULSES: usize = 16;

/// The most users whose moves one pulse bears; more than that count as a gap in what was heard.
const MOST_MOVED: usize = 10_000;

/// A board may have changed.
#[derive(Debug, Clone, Default)]
pub struct Pulse {
    /// Counts the pulses.
    pub number: u64,
    /// Counts the gaps in hearing so far.
    pub gaps: u64,
    /// When the first change was heard that this pulse is about.
    pub heard_at: Option<Instant>,
    /// The scores of this pulse and of some before, oldest first.
    heard: VecDeque<Arc<Heard>>,
}

/// Who scored between two pulses, in which span from where to where.
#[derive(Debug, Default)]
pub struct Heard {
    pulse: u64,
    moved: HashMap<UserId, Vec<Step>>,
    /// Whose profile has changed.
    touched: HashSet<UserId>,
}

/// Where somebody was and is within one span, and when that was heard last.
#[derive(Debug)]
struct Step {
    span: String,
    before: Option<f64>,
    after: f64,
    at: Instant,
}

impl Pulse {
    /// The moves within `span` after the pulse `number` that were heard after `at`, if that is given: who, first key
    /// before, last key after. `None` if some of them are no longer known.
    pub fn moved_since(
        &self,
        number: u64,
        span: &str,
        at: Option<Instant>,
    ) -> Option<Vec<(&UserId, Option<f64>, f64)>> {
        if number == self.number {
            return Some(Vec::new());
        }
        let known = self.heard.front().is_some_and(|first| first.pulse <= number + 1);
        let mut all: HashMap<&UserId, (Option<f64>, f64)> = HashMap::new();
        for heard in self.heard.iter().filter(|heard| heard.pulse > number) {
            for (user, steps) in &heard.moved {
                let in_time = |step: &&Step| step.span == span && at.is_none_or(|at| step.at > at);
                for step in steps.iter().filter(in_time) {
                    all.entry(user).or_insert((step.before, step.after)).1 = step.after;
                }
            }
        }
        let moved = all
            .into_iter()
            .map(|(user, (before, after))| (user, before, after));
        known.then(|| moved.collect())
    }

    /// Whether what others see of one of `users` has changed after the pulse `number`, as far as is still known.
    pub fn looks_different(&self, number: u64, users: &[&UserId]) -> bool {
        let later = self.heard.iter().filter(|heard| heard.pulse > number);
        later
            .into_iter()
            .any(|heard| users.iter().any(|&user| heard.touched.contains(user)))
    }

    /// What is read from now on may tell of what nobody heard.
    pub(super) fn deafened(&mut self) {
        self.gaps += 1;
        self.heard.clear();
    }

    /// The next pulse, about what has been gathered.
    pub(super) fn beat(&mut self, gathered: Gathered) {
        self.number += 1;
        self.heard_at = gathered.heard_at;
        self.gaps += u64::from(gathered.gap);
        if gathered.gap || gathered.overflown {
            self.heard.clear();
        }
        if self.heard.len() == KEPT_PULSES {
            self.heard.pop_front();
        }
        if !gathered.overflown {
            self.heard.push_back(Arc::new(Heard {
                pulse: self.number,
                ..gathered.heard
            }));
        }
    }
}

/// What has been heard of a board since its last pulse.
#[derive(Default)]
pub(super) struct Gathered {
    /// When the first of it was heard.
    pub(super) heard_at: Option<Instant>,
    /// Whether something may have been missed.
    pub(super) gap: bool,
    /// Too much to be kept.
    overflown: bool,
    heard: Heard,
}

impl Gathered {
    /// Somebody scored, or looks different.
    pub(super) fn add(&mut self, scored: Scored) {
        if self.heard.moved.len() + self.heard.touched.len() >= MOST_MOVED {
            self.overflown = true;
            self.heard.moved.clear();
        }
        if self.overflown {
            return;
        }
        if scored.moved.is_empty() {
            self.heard.touched.insert(scored.user);
            return;
        }
        let steps = self.heard.moved.entry(scored.user).or_default();
        let at = Instant::now();
        for moved in scored.moved {
            match steps.iter_mut().find(|step| step.span == moved.span) {
                Some(step) => (step.after, step.at) = (moved.after, at),
                None => steps.push(Step {
                    span: moved.span,
                    before: moved.before,
                    after: moved.after,
                    at,
                }),
            }
        }
    }
}
