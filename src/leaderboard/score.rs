//! A score as Redis stores it: points and tie in one exact number, best first in ascending order.
//!
//! Owns the formula, as whole numbers to read and to test: `score.lua` writes keys and [`super::span`] reads them by it,
//! which the tests of boards show at both ends of points and ticks. Pure.

use super::plan::PeriodPlan;
use super::{BoardOrder, plan};
use crate::day::Period;

/// The sign that makes the best score the smallest key.
pub fn sign(order: BoardOrder) -> i64 {
    match order {
        BoardOrder::HighestFirst => -1,
        BoardOrder::LowestFirst => 1,
    }
}

/// `sign * points * 2^t + tie`. The plan keeps it within 53 bits.
pub fn encode(order: BoardOrder, plan: &PeriodPlan, points: i64, tie: i64) -> i64 {
    sign(order) * points * plan.tie_range() + tie
}

/// The points and the tie of a key.
pub fn decode(order: BoardOrder, plan: &PeriodPlan, key: i64) -> (i64, i64) {
    // Floored, not truncated: the tie counts up from the points' own place on both sides of zero.
    (
        sign(order) * key.div_euclid(plan.tie_range()),
        key.rem_euclid(plan.tie_range()),
    )
}

/// The tick of `at` in a period that began at `began` (both in ms since 1970); before it counts as its first.
pub fn tick(plan: &PeriodPlan, began: i64, at: i64) -> i64 {
    ((at - began) / plan.tick_ms).clamp(0, plan.tie_range() - 1)
}

/// When a tie was reached, never later than `now` (all in ms since 1970). `None` where ties do not tell time.
pub fn reached_at(plan: &PeriodPlan, began: i64, tie: i64, now: i64) -> Option<i64> {
    (plan.tie_bits > 0).then(|| began.saturating_add(tie.saturating_mul(plan.tick_ms)).min(now))
}

/// When the ticks of a period begin, in ms since 1970; `starts_at` is the period's own start, if it has one.
pub fn ticks_begin(period: Period, starts_at: Option<i64>) -> i64 {
    match period {
        Period::AllTime => plan::ALL_TIME_FROM,
        _ => starts_at.unwrap_or(plan::ALL_TIME_FROM),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::first_to_reach;
    use super::*;
    use proptest::prelude::*;

    fn orders() -> impl Strategy<Value = BoardOrder> {
        prop_oneof![Just(BoardOrder::HighestFirst), Just(BoardOrder::LowestFirst)]
    }

    proptest! {
        #[test]
        fn a_score_decodes_to_itself_and_is_exact_as_a_double(
            order in orders(), max in 1_i64..100_000_000, share in -1.0..=1.0, tie_share in 0.0..1.0,
        ) {
            let plan = first_to_reach(Period::Day, max, 5_000).unwrap();
            let points = (max as f64 * share) as i64;
            let tie = (plan.tie_range() as f64 * tie_share) as i64;
            let key = encode(order, &plan, points, tie);
            prop_assert_eq!((key as f64) as i64, key);
            prop_assert_eq!(decode(order, &plan, key), (points, tie));
        }

        #[test]
        fn better_points_come_first_and_among_equals_whoever_was_first(
            order in orders(), a in (-1_000_i64..1_000, 0_i64..1_000), b in (-1_000_i64..1_000, 0_i64..1_000),
        ) {
            let plan = first_to_reach(Period::Week, 1_000, 5_000).unwrap();
            let key = |(points, tie)| encode(order, &plan, points, tie);
            let wanted = (sign(order) * a.0, a.1).cmp(&(sign(order) * b.0, b.1));
            prop_assert_eq!(key(a).cmp(&key(b)), wanted);
        }
    }

    #[test]
    fn the_largest_and_smallest_points_keep_their_first_and_last_tick() {
        for order in [BoardOrder::HighestFirst, BoardOrder::LowestFirst] {
            let plan = first_to_reach(Period::Month, 10_000_000, 5_000).unwrap();
            for points in [-10_000_000, -1, 0, 1, 10_000_000] {
                for tie in [0, plan.tie_range() - 1] {
                    let key = encode(order, &plan, points, tie);
                    assert!(key.abs() < 1 << 53);
                    assert_eq!(decode(order, &plan, key), (points, tie));
                }
            }
        }
    }

    #[test]
    fn a_time_before_the_period_counts_as_its_start_and_none_is_later_than_now() {
        let plan = first_to_reach(Period::AllTime, 10_000_000, 5_000).unwrap();
        assert_eq!(tick(&plan, plan::ALL_TIME_FROM, 0), 0);
        assert_eq!(
            tick(&plan, plan::ALL_TIME_FROM, i64::MAX / 2),
            plan.tie_range() - 1
        );
        assert_eq!(
            reached_at(&plan, plan::ALL_TIME_FROM, 5, plan::ALL_TIME_FROM),
            Some(plan::ALL_TIME_FROM)
        );
    }
}
