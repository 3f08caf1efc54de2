//! Boards over any span, and what time does to them.

use chrono::{Days, NaiveDate};
use serde::Deserialize;
use serde_json::{Value, json};
use tallyboard::config::{Durability, Settings};
use tallyboard::keyspace::keeper::Keeper;

use super::{Caller, STANDING, Scored, Standing, TestApp};

/// A board over one span.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub period_key: String,
    pub closed: bool,
    pub previous_on: Option<String>,
    pub next_on: Option<String>,
    pub participants: u64,
    pub top: Vec<Standing>,
}

impl Shown {
    /// Who stands there with how many points, best first.
    pub fn order(&self) -> Vec<(String, i64)> {
        order(&self.top)
    }
}

/// Who stands there with how many points, as they come.
pub fn order(standings: &[Standing]) -> Vec<(String, i64)> {
    standings
        .iter()
        .map(|standing| (standing.user.id.clone(), standing.points))
        .collect()
}

pub fn period(period: &str) -> Value {
    json!({ "period": period })
}

pub fn last_days(days: u32) -> Value {
    json!({ "lastDays": days })
}

pub fn heat() -> Value {
    json!({ "heat": true })
}

/// The dates of the last `days` days, oldest first.
pub fn days_until(today: NaiveDate, days: u32) -> impl Iterator<Item = NaiveDate> {
    (0..u64::from(days))
        .rev()
        .map(move |back| today - Days::new(back))
}

impl Caller<'_> {
    /// The best 500 of a board.
    pub async fn board(&self, board: &str, span: &Value, on: Option<NaiveDate>) -> Shown {
        let query = format!(
            "query ($board: ID!, $span: BoardSpan, $on: Date) {{ leaderboard(board: $board, span: $span, on: $on) {{
                periodKey closed previousOn nextOn participants top(first: 500) {{ {STANDING} }} }} }}"
        );
        self.field(&query, json!({ "board": board, "span": span, "on": on }))
            .await
    }

    pub async fn place(&self, board: &str, span: &Value, user: &str) -> Option<Standing> {
        let query = format!(
            "query ($board: ID!, $span: BoardSpan, $user: ID) {{ rank(board: $board, span: $span, userId: $user)
                {{ {STANDING} }} }}"
        );
        self.field(&query, json!({ "board": board, "span": span, "user": user }))
            .await
    }

    /// Submits one score as it is given.
    pub async fn submit(&self, input: Value) -> Scored {
        let query = format!(
            "mutation ($input: SubmitScoreInput!) {{ submitScore(input: $input) {{ outcome standings {{
                period periodKey previousPoints standing {{ {STANDING} }} }} rejection {{ code message }} }} }}"
        );
        self.field(&query, json!({ "input": input })).await
    }

    /// Submits many scores at once.
    pub async fn submit_all(&self, inputs: &[Value]) -> Vec<Scored> {
        let query = format!(
            "mutation ($inputs: [SubmitScoreInput!]!) {{ submitScores(inputs: $inputs) {{ outcome standings {{
                period periodKey previousPoints standing {{ {STANDING} }} }} rejection {{ code message }} }} }}"
        );
        self.field(&query, json!({ "inputs": inputs })).await
    }

    /// Submits many scores at once; each changes something.
    pub async fn apply_all(&self, inputs: &[Value]) {
        let query = "mutation ($inputs: [SubmitScoreInput!]!) { submitScores(inputs: $inputs) { outcome } }";
        let scored: Vec<Value> = self.field(query, json!({ "inputs": inputs })).await;
        assert_eq!(scored, vec![json!({ "outcome": "APPLIED" }); inputs.len()]);
    }

    pub async fn remove(&self, board: &str, user: &str) -> bool {
        let query = "mutation ($board: ID!, $user: ID!) { removeFromBoard(board: $board, userId: $user) { removed } }";
        let payload: Value = self.field(query, json!({ "board": board, "user": user })).await;
        payload["removed"].as_bool().unwrap()
    }
}

/// For tests of many writes and no crash: Redis need not wait for the disk.
pub fn off_disk(settings: &mut Settings) {
    settings.redis.durability = Durability::EverySec;
}

impl TestApp {
    /// One turn of upkeep over all partitions.
    pub async fn look_after(&self) {
        let app = &self.running().app;
        let (partitions, now): (Vec<_>, _) = (app.keyspace.partitions().collect(), self.clock.now());
        app.checkins.look_after(&partitions, now).await.unwrap();
        app.boards.look_after(&partitions, now).await.unwrap();
    }

    /// A keeper that holds every lease instead of the server's own.
    pub async fn only_keeper(&self) -> Keeper {
        let app = &self.running().app;
        let keeper = Keeper::new(app.keyspace.clone());
        let mut redis = self.redis().await;
        loop {
            for p in app.keyspace.partitions() {
                let mut give_up = redis::cmd("DEL");
                give_up.arg(app.keyspace.keys().lease(p));
                give_up.exec_async(&mut redis).await.unwrap();
            }
            if keeper.partitions().await.unwrap().len() == app.keyspace.partition_count() {
                return keeper;
            }
        }
    }

    /// The keys that match `pattern`, each with its TTL in milliseconds (-1: none).
    pub async fn ttls(&self, pattern: &str) -> Vec<(String, i64)> {
        let mut redis = self.redis().await;
        let mut keys: Vec<String> = redis::cmd("KEYS") // a test's few keys
            .arg(pattern)
            .query_async(&mut redis)
            .await
            .unwrap();
        keys.sort();
        let mut ttls = Vec::with_capacity(keys.len());
        for key in keys {
            let ttl = redis::cmd("PTTL")
                .arg(&key)
                .query_async(&mut redis)
                .await
                .unwrap();
            if ttl != -2 {
                ttls.push((key, ttl)); // else it went in between
            }
        }
        ttls
    }
}
