//! What is said to our server: the board as it is before the first change, and the change.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::posts;
use crate::state::{BASE, USERS, points_at};

/// A change: the first of a board gets more points.
pub const CHANGE: &str = "mutation ($input: SubmitScoreInput!) { submitScore(input: $input) { outcome } }";

/// The variables of change number `change` of `board`.
pub fn change(board: &str, change: usize) -> Value {
    score(board, 0, BASE + change as i64)
}

fn score(board: &str, place: usize, points: i64) -> Value {
    json!({ "input": { "board": board, "userId": USERS[place].0, "points": points, "operator": "SET" } })
}

/// Names the ten and puts them on every board.
pub async fn fill(address: SocketAddr, boards: &[String]) {
    const NAME: &str = "mutation ($input: ProfileInput!) { setProfile(input: $input) { id } }";
    for (id, name) in USERS {
        posts::ask(address, NAME, &json!({ "input": { "userId": id, "name": name } })).await;
    }
    for board in boards {
        for place in 0..USERS.len() {
            posts::ask(address, CHANGE, &score(board, place, points_at(place))).await;
        }
    }
}
