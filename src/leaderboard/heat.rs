//! Heat: points that lose half their weight every half-life, ranked without ever being rewritten. Pure.
//!
//! Owns the log domain. By forward decay (Cormode et al., 2009) a heat at time t is `H * 2^-((t - base) / half-life)`,
//! where `H` only changes when points come. `H` itself outgrows a double in some 900 half-lives, so what is stored is
//! `log2 H`: it grows with `H`, so the order is the same, and never overflows. With the sign of `H` kept apart and an
//! offset that keeps the logarithm positive, a key is `sign * s * (log2 |H| + OFFSET)`; `score.lua` does the same.

use chrono::{DateTime, Utc};

use super::{BoardOrder, score};
use crate::ids::MAX_SAFE_INT;

/// How often a followed heat is shown anew while nothing else changes.
pub const COOLING: std::time::Duration = std::time::Duration::from_secs(1);

/// Above every logarithm that matters: what came more than so many half-lives before the base has no weight left.
pub const OFFSET: f64 = 1_100.0;

/// One end of a range of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// What stands first.
    Front,
    /// What stands last.
    Back,
}

/// A board's heat: its half-life and the instant its logarithms count from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat {
    half_life_ms: f64,
    base: DateTime<Utc>,
}

impl Heat {
    /// Heat that halves every `half_life_hours`, counted from `base`.
    pub fn new(half_life_hours: f64, base: DateTime<Utc>) -> Heat {
        Heat {
            half_life_ms: half_life_hours * 3_600_000.0,
            base,
        }
    }

    /// Half-lives from the base to `at`.
    pub fn half_lives(&self, at: DateTime<Utc>) -> f64 {
        (at - self.base).num_milliseconds() as f64 / self.half_life_ms
    }

    /// The heat of a key at `now`, unrounded.
    pub fn value(&self, order: BoardOrder, key: f64, now: DateTime<Utc>) -> f64 {
        if key == 0.0 {
            return 0.0;
        }
        let size = (key.abs() - OFFSET - self.half_lives(now)).exp2();
        size.copysign(key * score::sign(order) as f64)
    }

    /// The heat of a key at `now` as shown: rounded to whole points.
    pub fn shown(&self, order: BoardOrder, key: f64, now: DateTime<Utc>) -> i64 {
        // Clocks that differ may show a heat before its time, and larger than it ever was.
        (self.value(order, key, now).round() as i64).clamp(-MAX_SAFE_INT, MAX_SAFE_INT)
    }

    /// The key of a heat of `value` at `now`.
    pub fn key(&self, order: BoardOrder, value: f64, now: DateTime<Utc>) -> f64 {
        if value == 0.0 {
            return 0.0;
        }
        let size = (value.abs().log2() + self.half_lives(now) + OFFSET).max(1.0);
        size.copysign(value) * score::sign(order) as f64
    }

    /// The first or the last key that is shown as `points` at `now`; between such a key and the next there is nothing.
    pub fn bound(&self, order: BoardOrder, points: i64, end: End, now: DateTime<Utc>) -> f64 {
        // Shown heat is rounded: the bound lies half a point off, or a few keys beside that where digits end.
        let best_first = -score::sign(order);
        let ahead = match end {
            End::Front => best_first,
            End::Back => -best_first,
        };
        let mut key = self.key(order, points as f64 + 0.5 * ahead as f64, now);
        let [outward, inward] = match end {
            End::Front => [f64::next_down, f64::next_up],
            End::Back => [f64::next_up, f64::next_down],
        };
        let beyond = |key: f64| (self.shown(order, key, now) - points) * ahead > 0;
        for _ in 0..STEPS {
            match (beyond(key), beyond(outward(key))) {
                (true, _) => key = inward(key),
                (false, false) => key = outward(key),
                (false, true) => break,
            }
        }
        key
    }
}

/// How many keys a bound may lie beside where its logarithm says.
const STEPS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use proptest::prelude::*;

    fn base() -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_900_000_000_000).unwrap()
    }

    proptest! {
        #[test]
        fn a_key_is_read_back_as_its_heat_at_any_time(
            value in prop_oneof![-1e9..1e9_f64, Just(0.0)], hours in 0_i64..100_000, half_life in 0.5..500.0_f64,
        ) {
            let (heat, now) = (Heat::new(half_life, base()), base() + TimeDelta::hours(hours));
            for order in [BoardOrder::HighestFirst, BoardOrder::LowestFirst] {
                let read = heat.value(order, heat.key(order, value, now), now);
                prop_assert!((read - value).abs() <= value.abs() * 1e-9, "{} is not {}", read, value);
            }
        }

        #[test]
        fn more_heat_stands_first_and_time_changes_nothing_about_it(
            a in -1e6..1e6_f64, b in -1e6..1e6_f64, hours in 0_i64..10_000,
        ) {
            let (heat, now) = (Heat::new(24.0, base()), base() + TimeDelta::hours(hours));
            let key = |value: f64| heat.key(BoardOrder::HighestFirst, value, now);
            prop_assume!((a - b).abs() > 1e-6);
            prop_assert_eq!(key(a) < key(b), a > b);
        }
    }

    #[test]
    fn a_heat_halves_every_half_life() {
        let heat = Heat::new(6.0, base());
        let key = heat.key(BoardOrder::HighestFirst, 100.0, base());
        let shown = |hours| heat.shown(BoardOrder::HighestFirst, key, base() + TimeDelta::hours(hours));
        assert_eq!([0, 6, 12, 60].map(shown), [100, 50, 25, 0]);
    }
}
