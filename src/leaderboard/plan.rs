//! How a board's points and ties share the 53 bits that a Redis score holds exactly.
//!
//! Owns the arithmetic that chooses bits and ticks, and the refusal of boards that do not fit. Pure. How a score is put
//! together and taken apart is [`super::score`]'s.

use crate::day::Period;

/// Whole numbers up to 2^53 are exact in a double.
const BITS: u32 = 53;

/// With fewer bits for the tie a handful of equals would use them up.
const FEWEST_BITS: u32 = 8;

/// ALL_TIME ticks run from here, in milliseconds since 1970 …
pub const ALL_TIME_FROM: i64 = 1_577_836_800_000; // 2020-01-01T00:00:00Z
/// … until here.
pub const ALL_TIME_UNTIL: i64 = 3_597_523_200_000; // 2084-01-01T00:00:00Z

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// The longest that a period can last, in milliseconds. A day that a clock change lengthens has 25 hours; the spare
/// ticks take up the few stranger ones that history knows.
fn longest(period: Period) -> i64 {
    match period {
        Period::Day => DAY + HOUR,
        Period::Week => 7 * DAY + HOUR,
        Period::Month => 31 * DAY + HOUR,
        Period::AllTime => ALL_TIME_UNTIL - ALL_TIME_FROM,
    }
}

/// How one period of a board is encoded: `key = sign * points * 2^tie_bits + tie`, `0 <= tie < 2^tie_bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodPlan {
    /// Which period.
    pub period: Period,
    /// t: bits for the tie. 0 when ties go by user id.
    pub tie_bits: u32,
    /// One step of the tie, in milliseconds.
    pub tick_ms: i64,
}

impl PeriodPlan {
    /// 2^t.
    pub fn tie_range(&self) -> i64 {
        1 << self.tie_bits
    }
}

/// Why a board cannot keep the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Points alone need more bits than there are.
    #[error("max_points = {max_points} is not within 1 to 2^53 - 1 = 9007199254740991")]
    PointsOutOfRange {
        /// As configured.
        max_points: i64,
    },
    /// The points leave too few bits for the time.
    #[error(
        "{period} cannot tell who reached equal points first: with max_points = {max_points}, {tie_bits} bits are left \
         for time, one tick would last {needed_ms} ms and max_tick_ms = {max_tick_ms} allows less. What would fit: \
         {remedies}"
    )]
    TickTooCoarse {
        /// The period that does not fit.
        period: &'static str,
        /// As configured.
        max_points: i64,
        /// As configured.
        max_tick_ms: i64,
        /// What `max_points` leaves.
        tie_bits: u32,
        /// The tick that those bits would give.
        needed_ms: i64,
        /// Which numbers would do.
        remedies: String,
    },
}

/// Plans one period of a board that keeps the order of arrival: the finest whole-millisecond tick with ticks to spare.
pub fn first_to_reach(period: Period, max_points: i64, max_tick_ms: i64) -> Result<PeriodPlan, PlanError> {
    let tie_bits = bits_left(max_points)?;
    match tick(period, tie_bits) {
        Some(tick_ms) if tick_ms <= max_tick_ms && tie_bits >= FEWEST_BITS => Ok(PeriodPlan {
            period,
            tie_bits,
            tick_ms,
        }),
        needed => Err(PlanError::TickTooCoarse {
            period: period.as_str(),
            max_points,
            max_tick_ms,
            tie_bits,
            needed_ms: needed.unwrap_or(i64::MAX),
            remedies: remedies(period, max_tick_ms, needed.filter(|_| tie_bits >= FEWEST_BITS)),
        }),
    }
}

/// Plans one period of a board whose ties go by user id: all bits are the points'.
pub fn by_user_id(period: Period, max_points: i64) -> Result<PeriodPlan, PlanError> {
    bits_left(max_points)?;
    Ok(PeriodPlan {
        period,
        tie_bits: 0,
        tick_ms: 1,
    })
}

/// The largest t with `max_points * 2^t + 2^t - 1 < 2^53`, so that both ends of the points keep all their ties.
fn bits_left(max_points: i64) -> Result<u32, PlanError> {
    if !(1..1 << BITS).contains(&max_points) {
        return Err(PlanError::PointsOutOfRange { max_points });
    }
    Ok(((1_i64 << BITS) / (max_points + 1)).ilog2())
}

/// The finest tick by which the whole period fits into `tie_bits`, spare ticks left over: writes that arrive in the last
/// ticks, and crowds that push ties ahead of the time, still find room.
fn tick(period: Period, tie_bits: u32) -> Option<i64> {
    let ticks = 1_i64 << tie_bits;
    let spare = (ticks / 16).min(65_536);
    let usable = ticks - spare;
    (usable > 0).then(|| div_ceil(longest(period), usable))
}

fn div_ceil(length: i64, parts: i64) -> i64 {
    (length + parts - 1) / parts
}

fn remedies(period: Period, max_tick_ms: i64, needed: Option<i64>) -> String {
    let mut ways = Vec::new();
    let enough_bits = (FEWEST_BITS..BITS).find(|&t| tick(period, t).is_some_and(|ms| ms <= max_tick_ms));
    if let Some(t) = enough_bits {
        ways.push(format!("max_points up to {}", (1_i64 << (BITS - t)) - 1));
    }
    if let Some(ms) = needed {
        ways.push(format!("max_tick_ms from {ms}"));
    }
    ways.push(format!("periods without {}", period.as_str()));
    ways.push("tie_break = \"NONE\"".into());
    ways.join(", or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Period::*;

    #[test]
    fn ten_million_points_leave_29_bits_and_the_ticks_of_the_design() {
        let plan = |period| first_to_reach(period, 10_000_000, 5_000).unwrap();
        for (period, tick_ms) in [(Day, 1), (Week, 2), (Month, 5), (AllTime, 3_763)] {
            assert_eq!(
                plan(period),
                PeriodPlan {
                    period,
                    tie_bits: 29,
                    tick_ms
                }
            );
        }
    }

    #[test]
    fn both_ends_of_the_points_keep_all_their_ties_within_53_bits() {
        for max_points in [1, 2, 1_000, 10_000_000, 1 << 40, (1 << 53) - 1] {
            let bits = bits_left(max_points).unwrap();
            let widest = |t: u32| i128::from(max_points) * (1_i128 << t) + (1_i128 << t) - 1;
            assert!(widest(bits) < 1 << 53, "{max_points}");
            assert!(
                widest(bits + 1) >= 1 << 53,
                "{max_points}: one bit more would fit"
            );
        }
    }

    #[test]
    fn a_board_that_cannot_fit_is_refused_with_numbers_that_do() {
        let refused = first_to_reach(AllTime, 1_000_000_000_000, 5_000)
            .unwrap_err()
            .to_string();
        for part in [
            "ALL_TIME",
            "max_points up to 16777215",
            "max_tick_ms from",
            "tie_break = \"NONE\"",
        ] {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(
            first_to_reach(AllTime, 16_777_215, 5_000).is_ok(),
            "what the message promises"
        );
        assert!(first_to_reach(AllTime, 16_777_216, 5_000).is_err());
        assert!(by_user_id(AllTime, 1_000_000_000_000).is_ok());
        assert!(by_user_id(AllTime, 1 << 53).is_err());
        assert!(by_user_id(AllTime, 0).is_err());
    }

    #[test]
    fn every_tick_covers_its_period_with_ticks_to_spare() {
        for max_points in [1, 1_000, 10_000_000, 100_000_000] {
            for period in [Day, Week, Month, AllTime] {
                let Ok(plan) = first_to_reach(period, max_points, 5_000) else {
                    continue;
                };
                let used = div_ceil(longest(period), plan.tick_ms);
                assert!(
                    plan.tie_range() - used >= (plan.tie_range() / 16).min(65_536),
                    "{plan:?}"
                );
            }
        }
    }
}
