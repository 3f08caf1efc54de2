//! Making missed days up: which can be, what it costs, what it mends and what it leaves alone.

mod counting;
mod joining;
mod long_runs;
mod parallel;
mod refusals;

use tallyboard::config::Milestone;

use crate::harness::*;

const NOTHING: Reward = Reward {
    points: 0,
    make_up_cards: 0,
};

fn milestone(streak: u32, points: i64, make_up_cards: u32) -> Milestone {
    Milestone {
        streak,
        points,
        make_up_cards,
    }
}

/// Checks `user` in at noon on each of these days of March 2027.
async fn in_march(app: &TestApp, user: &str, days: impl IntoIterator<Item = u32>) {
    for day in days {
        app.set(&format!("2027-03-{day:02}T12:00:00Z"));
        assert_eq!(app.user(user).check_in().await.outcome, "CHECKED_IN");
    }
}
