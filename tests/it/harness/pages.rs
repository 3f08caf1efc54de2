//! Pages of a board by cursors.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Caller, STANDING, Standing};

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Edge {
    pub cursor: String,
    pub node: Standing,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    pub has_previous_page: bool,
    pub has_next_page: bool,
    pub start_cursor: Option<String>,
    pub end_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    pub edges: Vec<Edge>,
    pub page_info: PageInfo,
    pub total_count: usize,
}

impl Entries {
    /// Who stands there with how many points, best first.
    pub fn order(&self) -> Vec<(&str, i64)> {
        let nodes = self.edges.iter().map(|edge| &edge.node);
        nodes.map(|node| (node.user.id.as_str(), node.points)).collect()
    }

    /// The rows without their cursors.
    pub fn rows(self) -> Vec<Standing> {
        self.edges.into_iter().map(|edge| edge.node).collect()
    }
}

/// Everything that [`Entries`] reads.
pub fn entries() -> String {
    format!(
        "edges {{ cursor node {{ {STANDING} }} }} totalCount
        pageInfo {{ hasPreviousPage hasNextPage startCursor endCursor }}"
    )
}

/// A direction in which to walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    Forwards,
    Backwards,
}

impl Way {
    pub const BOTH: [Way; 2] = [Way::Forwards, Way::Backwards];

    /// The arguments of a page of `size` behind `cursor`, or of the first one.
    pub fn arguments(self, size: usize, cursor: Option<&str>) -> String {
        let (many, from) = match self {
            Way::Forwards => ("first", "after"),
            Way::Backwards => ("last", "before"),
        };
        let from = cursor
            .map(|cursor| format!(", {from}: {cursor:?}"))
            .unwrap_or_default();
        format!("({many}: {size}{from})")
    }

    /// Where the next page begins, if there is one.
    pub fn next(self, info: &PageInfo) -> Option<&str> {
        match self {
            Way::Forwards => info.end_cursor.as_deref().filter(|_| info.has_next_page),
            Way::Backwards => info.start_cursor.as_deref().filter(|_| info.has_previous_page),
        }
    }
}

impl Caller<'_> {
    /// A page of a board; `arguments` as in `(first: 3)`.
    pub async fn entries(&self, board: &str, span: &Value, arguments: &str) -> Entries {
        let query = format!(
            "query ($board: ID!, $span: BoardSpan) {{ leaderboard(board: $board, span: $span) {{
                entries{arguments} {{ {} }} }} }}",
            entries()
        );
        let mut shown: Value = self.field(&query, json!({ "board": board, "span": span })).await;
        serde_json::from_value(shown["entries"].take()).unwrap()
    }

    /// A user with its neighbours.
    pub async fn around(&self, board: &str, span: &Value, user: &str, radius: usize) -> Vec<Standing> {
        let query = format!(
            "query ($board: ID!, $span: BoardSpan, $user: ID, $radius: Int!) {{
                leaderboard(board: $board, span: $span) {{ around(userId: $user, radius: $radius) {{ {STANDING} }} }} }}"
        );
        let variables = json!({ "board": board, "span": span, "user": user, "radius": radius });
        let mut shown: Value = self.field(&query, variables).await;
        serde_json::from_value(shown["around"].take()).unwrap()
    }

    /// Scores points for many users in one go.
    pub async fn score_all(&self, board: &str, scores: &[(String, i64)]) {
        let query = "mutation ($inputs: [SubmitScoreInput!]!) { submitScores(inputs: $inputs) { outcome } }";
        for scores in scores.chunks(500) {
            let input =
                |(user, points): &(String, i64)| json!({ "board": board, "userId": user, "points": points });
            let inputs: Vec<Value> = scores.iter().map(input).collect();
            let shown: Vec<Value> = self.field(query, json!({ "inputs": inputs })).await;
            assert!(
                shown.iter().all(|scored| scored["outcome"] == "APPLIED"),
                "{shown:?}"
            );
        }
    }
}
