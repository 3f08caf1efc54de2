//! A board in words, for its operator.
//!
//! Owns what `config check` says of a board: what its settings come to.

use super::{Board, TieBreak};

impl Board {
    /// Its periods and what it keeps beside them, a line each.
    pub fn in_words(&self) -> String {
        let mut text = format!(
            "board {}: {:?}, points within {} either way\n",
            self.id, self.title, self.max_points
        );
        for plan in &self.plans {
            let period = plan.period.as_str();
            match self.tie_break {
                TieBreak::FirstToReach => {
                    text += &format!(
                        "  {period:<8}  first to reach, told apart by {} ms ({} bits)\n",
                        plan.tick_ms, plan.tie_bits
                    );
                }
                TieBreak::None => text += &format!("  {period:<8}  equal points stand by user id\n"),
            }
        }
        for days in &self.windows {
            text += &format!("  last {days} days, kept up day by day\n");
        }
        if self.half_life_hours > 0.0 {
            text += &format!("  heat that halves every {} hours\n", self.half_life_hours);
        }
        if self.cap > 0 {
            let which = match self.trims_running() {
                true => "every period",
                false => "periods that are closed",
            };
            text += &format!("  of {which} the best {}\n", self.cap);
        }
        text
    }
}
