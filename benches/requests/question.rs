//! What is asked, as GraphQL and as the hand-written handlers have it.

use serde_json::{Value, json};

use crate::contender::Contender;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Rank,
    Top,
    CheckIn,
    Score,
}

impl Question {
    pub const ALL: [Question; 4] = [Question::Rank, Question::Top, Question::CheckIn, Question::Score];

    pub fn name(self) -> &'static str {
        match self {
            Question::Rank => "rank",
            Question::Top => "top 10",
            Question::CheckIn => "checkIn",
            Question::Score => "submitScore",
        }
    }

    fn document(self) -> &'static str {
        match self {
            Question::Rank => "query ($u: ID!) { rank(board: \"points\", userId: $u) { rank points } }",
            Question::Top => {
                "{ leaderboard(board: \"points\") { top(first: 10) { rank points user { id name } } } }"
            }
            Question::CheckIn => {
                "mutation ($u: ID!) { checkIn(userId: $u) { outcome streak { current } wallet { points } } }"
            }
            Question::Score => {
                "mutation ($u: ID!, $p: SafeInt!) { submitScore(input: { board: \"points\", userId: $u, points: $p }) \
                 { outcome } }"
            }
        }
    }

    fn path(self) -> &'static str {
        match self {
            Question::Rank => "/rank",
            Question::Top => "/top",
            Question::CheckIn => "/check-in",
            Question::Score => "/score",
        }
    }

    /// Request number `turn`, as bytes. Every check-in is another user's, so that each is the day's first until all
    /// have checked in; other questions are about users far apart.
    pub fn request(self, contender: Contender, users: u64, turn: u64) -> Vec<u8> {
        let user = match self {
            Question::CheckIn => turn % users,
            _ => turn.wrapping_mul(7_919) % users,
        };
        let variables = match self {
            Question::Top => json!({}),
            Question::Score => json!({ "u": user_id(user), "p": 1 + turn % 100 }),
            _ => json!({ "u": user_id(user) }),
        };
        match contender {
            Contender::Hand => post(self.path(), &variables),
            _ => post(
                "/graphql",
                &json!({ "query": self.document(), "variables": variables }),
            ),
        }
    }
}

pub fn user_id(number: u64) -> String {
    format!("user-{number:08}")
}

fn post(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Dev-Role: SERVICE\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
