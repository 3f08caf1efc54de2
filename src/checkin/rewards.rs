//! What a check-in earns. Pure; `check_in.lua` decides the same and is tested against this.

use crate::config;
use crate::ids::MAX_SAFE_INT;

/// The most points that a wallet holds: what every JSON client reads exactly. What would go beyond is not paid.
pub const MAX_POINTS: i64 = MAX_SAFE_INT;

/// The most make-up cards that a wallet holds.
pub const MAX_CARDS: u32 = 1_000_000;

/// Points and make-up cards, as earned or as held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reward {
    /// Points, within 2^53.
    pub points: i64,
    /// Make-up cards.
    pub cards: u32,
}

impl Reward {
    /// What a wallet of this holds after `earned` was paid into it.
    pub fn plus(self, earned: Reward) -> Reward {
        Reward {
            points: self.points.saturating_add(earned.points).min(MAX_POINTS),
            cards: self.cards.saturating_add(earned.cards).min(MAX_CARDS),
        }
    }
}

/// The rules of the configuration.
#[derive(Debug, Clone)]
pub struct Rewards {
    /// Points for each day of a repeating cycle; never empty.
    pub cycle: Vec<i64>,
    /// Points for each full week in a row.
    pub weekly_bonus: i64,
    /// What reaching a streak length earns, once per run.
    pub milestones: Vec<(u32, Reward)>,
}

impl From<&config::CheckIn> for Rewards {
    fn from(settings: &config::CheckIn) -> Rewards {
        let milestone = |m: &config::Milestone| {
            (
                m.streak,
                Reward {
                    points: m.points,
                    cards: m.make_up_cards,
                },
            )
        };
        Rewards {
            cycle: settings.cycle.clone(),
            weekly_bonus: settings.weekly_bonus,
            milestones: settings.milestone.iter().map(milestone).collect(),
        }
    }
}

impl Rewards {
    /// What the check-in that makes the streak `streak` days long earns; `streak` counts from 1.
    pub fn for_streak(&self, streak: u32) -> Reward {
        let slot = streak.saturating_sub(1) as usize % self.cycle.len().max(1);
        let mut reward = Reward {
            points: self.cycle.get(slot).copied().unwrap_or(0),
            cards: 0,
        };
        if streak > 0 && streak.is_multiple_of(7) {
            reward.points += self.weekly_bonus;
        }
        let milestones = self.for_reaching(streak.saturating_sub(1), streak);
        reward.points += milestones.points;
        reward.cards += milestones.cards;
        reward
    }

    /// What the milestones beyond `before` and up to `streak` days earn.
    pub fn for_reaching(&self, before: u32, streak: u32) -> Reward {
        let reached = |length: u32| before < length && length <= streak;
        let mut reward = Reward::default();
        for (_, extra) in self.milestones.iter().filter(|(length, _)| reached(*length)) {
            reward.points += extra.points;
            reward.cards += extra.cards;
        }
        reward
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seventh_day_pays_its_slot_and_the_week_and_the_eighth_begins_the_cycle_anew() {
        let rewards = Rewards::from(&config::CheckIn {
            milestone: vec![config::Milestone {
                streak: 8,
                points: 500,
                make_up_cards: 1,
            }],
            ..Default::default()
        });
        let points = |streak| rewards.for_streak(streak).points;
        assert_eq!([1, 6, 7, 9, 14, 21].map(points), [10, 10, 150, 10, 150, 150]);
        assert_eq!(
            rewards.for_streak(8),
            Reward {
                points: 510,
                cards: 1
            }
        );
    }
}
