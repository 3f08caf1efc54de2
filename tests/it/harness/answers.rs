//! Typed answers, and the requests that tests send most.

use serde::Deserialize;
use serde_json::json;

use super::Caller;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Streak {
    pub current: u32,
    pub longest: u32,
    pub total: u32,
    pub checked_in_today: bool,
    pub at_risk: bool,
    pub ends_at: Option<String>,
    pub last_date: Option<String>,
    pub next_reward: Option<Reward>,
    pub exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reward {
    pub points: i64,
    pub make_up_cards: u32,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CheckedIn {
    pub outcome: String,
    pub date: String,
    pub reward: Reward,
    pub streak: Streak,
    pub wallet: Reward,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    pub date: String,
    pub state: String,
    pub can_make_up: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WalletChange {
    pub outcome: String,
    pub wallet: Reward,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct User {
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    pub user: User,
    pub rank: u64,
    pub points: i64,
    pub competition: u64,
    pub dense: u64,
    pub percentile: f64,
    pub reached_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Board {
    pub id: String,
    pub participants: u64,
    pub version: u64,
    pub top: Vec<Standing>,
}

impl Board {
    /// Who stands there with how many points, best first.
    pub fn order(&self) -> Vec<(&str, i64)> {
        self.top
            .iter()
            .map(|standing| (standing.user.id.as_str(), standing.points))
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeriodStanding {
    pub period: String,
    pub period_key: String,
    pub previous_points: Option<i64>,
    pub standing: Option<Standing>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rejection {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Scored {
    pub outcome: String,
    pub standings: Vec<PeriodStanding>,
    pub rejection: Option<Rejection>,
}

pub const STREAK: &str =
    "current longest total checkedInToday atRisk endsAt lastDate nextReward { points makeUpCards } exact";

pub const STANDING: &str = "user { id } rank(method: ORDINAL) points competition: rank(method: COMPETITION)
    dense: rank(method: DENSE) percentile reachedAt";

impl Caller<'_> {
    pub async fn check_in(&self) -> CheckedIn {
        let query = format!(
            "mutation {{ checkIn {{ outcome date reward {{ points makeUpCards }} streak {{ {STREAK} }}
                wallet {{ points makeUpCards }} }} }}"
        );
        self.field(&query, json!({})).await
    }

    pub async fn make_up(&self, date: &str) -> CheckedIn {
        let query = format!(
            "mutation ($date: Date!) {{ makeUpCheckIn(date: $date) {{ outcome date reward {{ points makeUpCards }}
                streak {{ {STREAK} }} wallet {{ points makeUpCards }} }} }}"
        );
        self.field(&query, json!({ "date": date })).await
    }

    pub async fn wallet(&self) -> Reward {
        self.field("{ wallet { points makeUpCards } }", json!({})).await
    }

    /// Gives `user` make-up cards.
    pub async fn grant(&self, user: &str, cards: i32, key: Option<&str>) -> WalletChange {
        let query = "mutation ($user: ID!, $cards: Int!, $key: String) { grantMakeUpCards(userId: $user, cards: $cards,
            idempotencyKey: $key) { outcome wallet { points makeUpCards } } }";
        self.field(query, json!({ "user": user, "cards": cards, "key": key }))
            .await
    }

    /// Adds points to the wallet of `user`, or takes them out.
    pub async fn adjust(&self, user: &str, points: i64, key: Option<&str>) -> WalletChange {
        let query = "mutation ($user: ID!, $points: SafeInt!, $key: String) { adjustWallet(userId: $user, points: $points,
            reason: \"a test\", idempotencyKey: $key) { outcome wallet { points makeUpCards } } }";
        self.field(query, json!({ "user": user, "points": points, "key": key }))
            .await
    }

    pub async fn streak_on(&self, date: &str) -> Streak {
        self.streak_if_known(date).await.unwrap()
    }

    pub async fn streak_if_known(&self, date: &str) -> Option<Streak> {
        let query = format!("query ($on: Date) {{ streak(on: $on) {{ {STREAK} }} }}");
        self.field(&query, json!({ "on": date })).await
    }

    /// The check-ins of a range as date and kind.
    pub async fn kinds(&self, from: &str, to: &str) -> Vec<(String, String)> {
        self.kinds_if_known(from, to).await.unwrap()
    }

    pub async fn kinds_if_known(&self, from: &str, to: &str) -> Option<Vec<(String, String)>> {
        #[derive(Deserialize)]
        struct CheckIn {
            date: String,
            kind: String,
        }
        let query = "query ($from: Date!, $to: Date!) { checkIns(from: $from, to: $to) { date kind } }";
        let found: Option<Vec<CheckIn>> = self.field(query, json!({ "from": from, "to": to })).await;
        found.map(|found| found.into_iter().map(|found| (found.date, found.kind)).collect())
    }

    pub async fn known_since(&self) -> Option<String> {
        self.field("{ checkInsKnownSince }", json!({})).await
    }

    pub async fn streak(&self) -> Streak {
        self.field(&format!("{{ streak {{ {STREAK} }} }}"), json!({}))
            .await
    }

    /// Checks in at each of these instants.
    pub async fn check_in_at(&self, instants: &[&str]) {
        for instant in instants {
            self.app.set(instant);
            assert_eq!(self.check_in().await.outcome, "CHECKED_IN", "{instant}");
        }
    }

    pub async fn calendar(&self, month: &str) -> Vec<Day> {
        #[derive(Deserialize)]
        struct Calendar {
            days: Vec<Day>,
        }
        let query = "query ($month: Month) { calendar(month: $month) { days { date state canMakeUp } } }";
        self.field::<Calendar>(query, json!({ "month": month }))
            .await
            .days
    }

    /// Scores for `user` on `board`.
    pub async fn score(&self, board: &str, user: &str, points: i64) -> Scored {
        let query = format!(
            "mutation ($input: SubmitScoreInput!) {{ submitScore(input: $input) {{ outcome standings {{
                period periodKey previousPoints standing {{ {STANDING} }} }} rejection {{ code message }} }} }}"
        );
        self.field(
            &query,
            json!({ "input": { "board": board, "userId": user, "points": points } }),
        )
        .await
    }

    /// The best `first` of a board in a period.
    pub async fn top(&self, board: &str, period: &str, first: u32) -> Board {
        let query = format!(
            "query ($board: ID!, $span: BoardSpan, $first: Int!) {{ leaderboard(board: $board, span: $span) {{
                id participants version top(first: $first) {{ {STANDING} }} }} }}"
        );
        self.field(
            &query,
            json!({ "board": board, "span": { "period": period }, "first": first }),
        )
        .await
    }

    pub async fn rank(&self, board: &str, period: &str, user: &str) -> Option<Standing> {
        let query = format!(
            "query ($board: ID!, $span: BoardSpan, $user: ID) {{ rank(board: $board, span: $span, userId: $user)
                {{ {STANDING} }} }}"
        );
        self.field(
            &query,
            json!({ "board": board, "span": { "period": period }, "user": user }),
        )
        .await
    }
}
