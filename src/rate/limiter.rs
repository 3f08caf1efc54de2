//! So many a minute, by name.
//!
//! Owns the quota of one kind of caller and the memory of who has asked how much. The arithmetic is governor's (GCRA: an
//! allowance fills up evenly, and a full one may be spent at once); its time is the app's. Memory is bounded: of more
//! callers than are remembered, those seldom seen are forgotten, and begin with a full allowance again.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::{Quota, RateLimiter};
use quick_cache::UnitWeighter;
use quick_cache::unsync::Cache;

use crate::clock::Clock;

/// So many callers are remembered, some 200 bytes each.
const REMEMBERED: u64 = 50_000;

/// Room is made for so many at first.
const EXPECTED: usize = 100;

/// The time in which an allowance fills up.
const MINUTE: Duration = Duration::from_secs(60);

type Counting = RateLimiter<Arc<str>, Seen, Time, NoOpMiddleware<Duration>>;

/// Counts what was asked under each name.
pub struct Limiter {
    spending: Counting,
    /// Answers as `spending` would, and takes nothing.
    looking: Counting,
    seen: Seen,
    time: Time,
    most: NonZeroU32,
}

/// Why somebody may not ask so much.
#[derive(Debug, PartialEq, Eq)]
pub enum Denied {
    /// Not yet: after this time, and not before it.
    Until(Duration),
    /// Never, since it is more than this whole allowance.
    Never(NonZeroU32),
}

impl Limiter {
    /// So many a minute; `None` if there is no limit, which 0 stands for.
    pub fn a_minute(many: u32, clock: &Clock) -> Option<Limiter> {
        let most = NonZeroU32::new(many)?;
        let quota = Quota::with_period(MINUTE / many)?.allow_burst(most);
        let seen = Seen {
            names: Arc::new(Mutex::new(Cache::with_weighter(
                EXPECTED,
                REMEMBERED,
                UnitWeighter,
            ))),
            keeps: true,
        };
        let time = Time {
            clock: clock.clone(),
            since: clock.now() - TimeDelta::days(365),
            runs: Arc::default(),
        };
        let looking = Seen {
            keeps: false,
            ..seen.clone()
        };
        let limiter = Limiter {
            spending: RateLimiter::new(quota, seen.clone(), time.clone()),
            looking: RateLimiter::new(quota, looking, time.clone()),
            seen,
            time,
            most,
        };
        limiter.time.runs.store(true, Ordering::Relaxed);
        Some(limiter)
    }

    /// Whether so many may be asked under `name` now. Takes nothing.
    pub fn look(&self, name: &Arc<str>, many: NonZeroU32) -> Result<(), Denied> {
        let look = || match self.looking.check_key_n(name, many) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(until)) => Err(Denied::Until(whole_ms(until.wait_time_from(self.time.now())))),
            Err(_) => Err(Denied::Never(self.most)),
        };
        match look() {
            // Nothing takes longer than to fill up from nothing, unless the clock was set back meanwhile.
            Err(Denied::Until(wait)) if wait > MINUTE => {
                self.seen.forget(name);
                look()
            }
            outcome => outcome,
        }
    }

    /// Takes so many, of which [`Limiter::look`] has just said that they may be taken.
    pub fn take(&self, name: &Arc<str>, many: NonZeroU32) {
        if !matches!(self.spending.check_key_n(name, many), Ok(Ok(()))) {
            tracing::debug!("an allowance was spent while it was looked at");
        }
    }
}

/// Clocks count in milliseconds, so a wait ends with one.
fn whole_ms(wait: Duration) -> Duration {
    Duration::from_millis(wait.as_nanos().div_ceil(1_000_000) as u64)
}

/// The app's time, as governor reads it.
#[derive(Clone)]
struct Time {
    clock: Clock,
    /// Long before the start, so that a clock that is set back does not stand still.
    since: DateTime<Utc>,
    /// Before it runs it shows 0: what is begun then begins at the same instant.
    runs: Arc<AtomicBool>,
}

impl governor::clock::Clock for Time {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Time::now(self)
    }
}

impl Time {
    fn now(&self) -> Duration {
        match self.runs.load(Ordering::Relaxed) {
            true => (self.clock.now() - self.since).to_std().unwrap_or_default(),
            false => Duration::ZERO,
        }
    }
}

/// Until when each name has spent ahead.
#[derive(Clone)]
struct Seen {
    names: Arc<Mutex<Cache<Arc<str>, Nanos>>>,
    /// Whether it keeps what comes out, or only answers.
    keeps: bool,
}

impl Seen {
    fn forget(&self, name: &Arc<str>) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(name);
    }
}

impl StateStore for Seen {
    type Key = Arc<str>;

    fn measure_and_replace<T, F, E>(&self, name: &Arc<str>, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, state) = measure(names.get(name).copied())?;
        if self.keeps {
            names.insert(name.clone(), state);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(many: u32) -> NonZeroU32 {
        NonZeroU32::new(many).unwrap()
    }

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_800_000_000_000 + ms).unwrap()
    }

    #[test]
    fn waiting_as_long_as_told_is_enough_and_a_millisecond_less_is_not() {
        for a_minute in [1, 7, 59, 600, 100_000] {
            let clock = Clock::manual(at(0));
            let limiter = Limiter::a_minute(a_minute, &clock).unwrap();
            let amy: Arc<str> = "amy".into();
            assert_eq!(limiter.look(&amy, many(a_minute)), Ok(()));
            limiter.take(&amy, many(a_minute));
            let some = many(a_minute.div_ceil(3));
            let Err(Denied::Until(wait)) = limiter.look(&amy, some) else {
                panic!("more than {a_minute} a minute")
            };
            let wait = wait.as_millis() as i64;
            clock.set(at(wait - 1));
            assert_eq!(
                limiter.look(&amy, some),
                Err(Denied::Until(Duration::from_millis(1)))
            );
            clock.set(at(wait));
            assert_eq!(
                limiter.look(&amy, some),
                Ok(()),
                "{a_minute} a minute, after {wait} ms"
            );
            assert_eq!(limiter.look(&"bob".into(), many(a_minute)), Ok(()));
        }
    }

    #[test]
    fn more_than_a_whole_allowance_is_never_served() {
        let limiter = Limiter::a_minute(10, &Clock::manual(at(0))).unwrap();
        assert_eq!(
            limiter.look(&"amy".into(), many(11)),
            Err(Denied::Never(many(10)))
        );
        assert!(Limiter::a_minute(0, &Clock::manual(at(0))).is_none());
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let clock = Clock::manual(at(0));
        let limiter = Limiter::a_minute(10, &clock).unwrap();
        let amy: Arc<str> = "amy".into();
        limiter.take(&amy, many(10));
        clock.set(at(-3_600_000));
        assert_eq!(limiter.look(&amy, many(10)), Ok(()));
        limiter.take(&amy, many(10));
        clock.set(at(-3_600_000 + 59_999));
        assert!(limiter.look(&amy, many(10)).is_err());
        clock.set(at(-3_600_000 + 60_000));
        assert_eq!(limiter.look(&amy, many(10)), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_whoever_asks_most_is_not_forgotten() {
        let limiter = Limiter::a_minute(10, &Clock::manual(at(0))).unwrap();
        let amy: Arc<str> = "amy".into();
        for i in 0..3 * REMEMBERED {
            let _asked_again_and_again = limiter.look(&amy, many(10)).is_ok();
            if i == 0 {
                limiter.take(&amy, many(10));
            }
            limiter.take(&format!("user{i}").into(), many(1));
        }
        assert!(limiter.seen.names.lock().unwrap().len() as u64 <= REMEMBERED);
        assert!(limiter.look(&amy, many(1)).is_err());
    }
}
