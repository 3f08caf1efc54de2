//! Who is online.

use serde_json::json;

use crate::harness::*;

impl Caller<'_> {
    async fn beat(&self, room: Option<&str>) -> u64 {
        let query = "mutation ($room: ID) { heartbeat(room: $room, session: \"tab\") { onlineCount nextWithinSeconds } }";
        let data = self.data(query, json!({ "room": room })).await;
        assert_eq!(data["heartbeat"]["nextWithinSeconds"], 100);
        data["heartbeat"]["onlineCount"].as_u64().unwrap()
    }

    async fn online(&self, room: Option<&str>) -> u64 {
        self.field(
            "query ($room: ID) { onlineCount(room: $room) }",
            json!({ "room": room }),
        )
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_counts_once_until_the_window_has_passed() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        for _ in 0..3 {
            app.user("amy").beat(Some("lobby")).await;
        }
        assert_eq!(app.user("bob").beat(None).await, 2, "the site counts all");
        assert_eq!(app.anonymous().online(Some("lobby")).await, 1);
        assert_eq!(app.anonymous().online(Some("bar")).await, 0);

        app.set("2027-03-01T08:05:00Z");
        assert_eq!(
            app.anonymous().online(None).await,
            2,
            "seen within 300 s, both ends included"
        );
        app.set("2027-03-01T08:05:00.001Z");
        assert_eq!(app.anonymous().online(None).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_left_are_cleared_away_by_those_who_come() {
    let app = spawn_app().at("2027-03-01T08:00:00Z").await;
    for i in 0..40 {
        app.user(&format!("user-{i}")).beat(Some("lobby")).await;
    }
    app.set("2027-03-01T09:00:00Z");
    for i in 0..10 {
        app.user(&format!("late-{i}")).beat(Some("lobby")).await;
    }
    let mut redis = app.redis().await;
    for set in ["tb:{0}:seen-on-site", "tb:{0}:seen-in:lobby"] {
        let members: u64 = redis::cmd("ZCARD")
            .arg(set)
            .query_async(&mut redis)
            .await
            .unwrap();
        assert_eq!(members, 10, "{set}");
    }
}
