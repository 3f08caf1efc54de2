//! Subscriptions over WebSocket.

use serde_json::json;

use crate::harness::*;

const CHANGES: &str = "subscription { leaderboardChanged(board: \"points\", first: 2) {
    cause sinceVersion moves { from } leaderboard { id version participants } top { user { id } points rank } } }";

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_gets_a_full_state_and_then_every_change() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        app.service().score("points", "amy", 5).await;
        let mut socket = Socket::open(&app.anonymous()).await;
        socket.subscribe(CHANGES, json!({})).await;
        let snapshot = socket.update().await;
        assert_eq!(snapshot["cause"], "SNAPSHOT");
        assert_eq!(
            snapshot["top"],
            json!([{ "user": { "id": "amy" }, "points": 5, "rank": 1 }])
        );

        app.service().score("points", "zed", 7).await;
        let change = socket.update().await;
        assert_eq!(change["cause"], "CHANGED");
        assert_eq!(change["leaderboard"]["participants"], 2);
        assert_eq!(change["top"][0]["user"]["id"], "zed");
        assert!(change["leaderboard"]["version"].as_u64() > snapshot["leaderboard"]["version"].as_u64());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_changes_become_few_updates_and_the_last_one_is_the_final_state() {
    let app = spawn_app().await;
    let mut socket = Socket::open(&app.anonymous()).await;
    socket.subscribe(CHANGES, json!({})).await;
    socket.update().await;
    for _ in 0..200 {
        app.service().score("points", "amy", 1).await;
    }
    let mut updates = 0;
    loop {
        updates += 1;
        if socket.update().await["top"][0]["points"] == 200 {
            break;
        }
    }
    assert!(updates < 200, "{updates} updates for 200 changes");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turn_of_the_day_is_told_to_subscribers() {
    let app = spawn_app().at("2027-03-01T23:59:59Z").await;
    app.service().score("points", "amy", 5).await;
    let mut socket = Socket::open(&app.anonymous()).await;
    socket.subscribe(CHANGES, json!({})).await;
    assert_eq!(socket.update().await["leaderboard"]["id"], "points/2027-03-01");
    app.set("2027-03-02T00:00:00Z");
    let turned = socket.update().await;
    assert_eq!(
        (&turned["cause"], &turned["top"]),
        (&json!("PERIOD_STARTED"), &json!([]))
    );
    assert_eq!(turned["leaderboard"]["id"], "points/2027-03-02");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_to_nothing_is_refused_with_its_reason() {
    let app = spawn_app().await;
    let mut socket = Socket::open(&app.anonymous()).await;
    socket
        .subscribe(
            "subscription { leaderboardChanged(board: \"nowhere\") { cause } }",
            json!({}),
        )
        .await;
    let message = socket.receive().await;
    assert_eq!(message["type"], "error", "{message}");
    assert_eq!(
        message["payload"][0]["extensions"]["code"], "NOT_FOUND",
        "{message}"
    );
}
