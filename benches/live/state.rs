//! What every contender shows: one board's top 10, whose first has as many points as the last change's number says.
//!
//! The same ids, names and points everywhere, so that every contender sends the same JSON.

use async_graphql::{Enum, ID, SimpleObject};
use serde::Serialize;
use serde_json::json;

/// Points of the first before the first change; change number n makes them `BASE + n`.
pub const BASE: i64 = 1_000_000;

/// What all subscribers ask for.
pub fn subscription(board: &str) -> String {
    format!(
        "subscription {{ leaderboardChanged(board: \"{board}\", first: 10) {{ cause leaderboard {{ id version \
         participants }} top {{ rank points user {{ id name }} }} }} }}"
    )
}

/// Ids and names, best first.
pub const USERS: [(&str, &str); 10] = [
    ("c9k2m4xq7w1z", "Amara Okafor"),
    ("c9k2m4xr0p3b", "Yusuf Demir"),
    ("usr-71f0a3c92", "Lena Vogel"),
    ("usr-71f0a3d15", "Tomás Rivera"),
    ("c9k2m5ab8t6n", "Mei-Ling Chen"),
    ("c9k2m5ac4h2y", "Oliver Grant"),
    ("usr-71f0b8e407", "Priya Raman"),
    ("usr-71f0b8f662", "Noah Lindqvist"),
    ("c9k2m6dd1s9vke", "Sofia Marchetti"),
    ("c9k2m6de5j0ula", "Kwame Mensah"),
];

/// The points of the one at `place` (0 is the first) before the first change.
pub fn points_at(place: usize) -> i64 {
    match place {
        0 => BASE,
        _ => 990_000 - 7_919 * place as i64,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Enum, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UpdateCause {
    Snapshot,
    Changed,
}

#[derive(SimpleObject, Serialize)]
pub struct LeaderboardUpdate {
    cause: UpdateCause,
    leaderboard: Leaderboard,
    top: Vec<Standing>,
}

#[derive(SimpleObject, Serialize)]
struct Leaderboard {
    id: ID,
    version: i64,
    participants: i64,
}

#[derive(SimpleObject, Serialize)]
struct Standing {
    rank: i64,
    points: i64,
    user: User,
}

#[derive(SimpleObject, Serialize)]
struct User {
    id: ID,
    name: Option<String>,
}

impl LeaderboardUpdate {
    /// The state when the first has `sequence` points.
    pub fn after(sequence: i64) -> LeaderboardUpdate {
        let standing = |(place, (id, name)): (usize, &(&str, &str))| Standing {
            rank: place as i64 + 1,
            points: if place == 0 { sequence } else { points_at(place) },
            user: User {
                id: ID::from(*id),
                name: Some((*name).to_owned()),
            },
        };
        LeaderboardUpdate {
            cause: match sequence {
                BASE => UpdateCause::Snapshot,
                _ => UpdateCause::Changed,
            },
            leaderboard: Leaderboard {
                id: ID::from("points/2027-06-15"),
                version: sequence - BASE + USERS.len() as i64,
                participants: USERS.len() as i64,
            },
            top: USERS.iter().enumerate().map(standing).collect(),
        }
    }

    /// The message that carries it to the subscription `1`.
    pub fn message(&self) -> String {
        let update = serde_json::to_string(self).unwrap();
        format!(r#"{{"type":"next","id":"1","payload":{{"data":{{"leaderboardChanged":{update}}}}}}}"#)
    }
}

/// The same for `node/server.mjs`.
pub fn for_node() -> String {
    let update = LeaderboardUpdate::after(BASE);
    json!({ "base": BASE, "leaderboard": update.leaderboard, "top": update.top }).to_string()
}
