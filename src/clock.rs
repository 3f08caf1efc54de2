//! The clock: the one place that reads the time.
//!
//! Owns what "now" is, in whole milliseconds of UTC. Everything else is handed an instant; `clippy.toml` bans the
//! wall clock elsewhere. It does not know about dates: which day an instant belongs to is [`crate::day`]'s.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound, Utc};
use tokio::sync::watch;
use tokio::time::sleep;

/// The longest sleep without another look: a host's clock may be set, and a host may sleep itself.
const LOOK: Duration = Duration::from_secs(30);

/// A source of instants, shared by cloning.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    /// The host's own clock.
    Wall,
    /// Started at an instant of the operator's choice and running on from there (`--dev --now`).
    Started { at: DateTime<Utc>, since: Instant },
    /// Moved by hand, in milliseconds since 1970 (tests).
    Manual(watch::Sender<i64>),
}

impl Clock {
    /// The host's clock.
    pub fn wall() -> Clock {
        Clock(Arc::new(Source::Wall))
    }

    /// A clock that shows `at` now and runs on from there.
    pub fn started_at(at: DateTime<Utc>) -> Clock {
        Clock(Arc::new(Source::Started {
            at,
            since: Instant::now(),
        }))
    }

    /// A clock that stands at `at` until [`Clock::set`] moves it.
    pub fn manual(at: DateTime<Utc>) -> Clock {
        Clock(Arc::new(Source::Manual(watch::channel(at.timestamp_millis()).0)))
    }

    /// Now, in whole milliseconds.
    #[allow(clippy::disallowed_methods)] // the place that the ban points to
    pub fn now(&self) -> DateTime<Utc> {
        let now = match &*self.0 {
            Source::Wall => Utc::now(),
            Source::Started { at, since } => *at + since.elapsed(),
            Source::Manual(ms) => DateTime::from_timestamp_millis(*ms.borrow()).unwrap_or_default(),
        };
        now.trunc_subsecs(3)
    }

    /// Moves a manual clock; the others stay as they are, since their time is not ours to set.
    pub fn set(&self, at: DateTime<Utc>) {
        if let Source::Manual(ms) = &*self.0 {
            ms.send_replace(at.timestamp_millis());
        }
    }

    /// Waits until this clock shows `at` or later.
    pub async fn until(&self, at: DateTime<Utc>) {
        if let Source::Manual(ms) = &*self.0 {
            let mut moved = ms.subscribe();
            let there = moved.wait_for(|ms| *ms >= at.timestamp_millis()).await;
            debug_assert!(there.is_ok(), "a clock outlives those who borrow it");
            return;
        }
        while let Ok(left) = (at - self.now()).to_std()
            && !left.is_zero()
        {
            sleep(left.min(LOOK)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_can_wait_for_an_instant_by_any_clock() {
        let start = DateTime::from_timestamp_millis(1_000).unwrap();
        for clock in [Clock::wall(), Clock::started_at(start)] {
            let at = clock.now() + TimeDelta::milliseconds(20);
            assert!(clock.until(at).now_or_never().is_none());
            clock.until(at).await;
            assert!(clock.now() >= at);
            clock.until(start).await; // long ago
        }
        let clock = Clock::manual(start);
        let later = start + TimeDelta::hours(1);
        assert!(clock.until(later).now_or_never().is_none());
        tokio::join!(clock.until(later), async { clock.set(later) });
        assert!(clock.until(DateTime::<Utc>::MAX_UTC).now_or_never().is_none());
    }
}
