//! What every client must be able to do.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use super::{Client, Script};
use crate::harness::*;

/// A board with the caller's own place.
const OWN: &str = "subscription Own { leaderboardChanged(board: \"points\") {
    cause leaderboard { id standing { points user { id } } } top { points user { id } } } }";

const BOARD: &str = "subscription Board { leaderboardChanged(board: \"points\") { cause top { points } } }";

const BEST: &str = "subscription Best($board: ID!, $first: Int!) {
    leaderboardChanged(board: $board, first: $first) { cause top { points user { id } } } }";

const BEST_BY_FRAGMENT: &str = "subscription Best($board: ID!) { ...TheBest }
    fragment TheBest on Subscription { leaderboardChanged(board: $board) { ...Shown } }
    fragment Shown on LeaderboardUpdate { cause top { points user { id } } }";

pub async fn it_gets_the_state_then_changes_until_it_completes(client: Client) {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let connections = connections(&app);
    let mut script = Script::start(client, &app.user("amy")).await;
    script.subscribe("board", OWN, json!({})).await;
    let own = json!({ "points": 5, "user": { "id": "amy" } });
    assert_eq!(
        script.update("board").await,
        json!({
            "cause": "SNAPSHOT",
            "leaderboard": { "id": "points/2027-03-01", "standing": own },
            "top": [own],
        })
    );

    for points in 6..=8 {
        app.service().score("points", "zed", points).await;
        let change = script.update("board").await;
        assert_eq!(change["cause"], "CHANGED");
        assert_eq!(change["leaderboard"]["standing"], own);
        assert_eq!(
            change["top"][0],
            json!({ "points": (6..=points).sum::<i64>(), "user": { "id": "zed" } })
        );
    }

    script.complete("board").await;
    if client.is_lazy() {
        let closed = script
            .event("the close", |event| event.get("closed").is_some())
            .await;
        assert_eq!(closed["closed"]["code"], 1000);
    } else {
        script.close().await;
    }
    eventually("the server to have closed its side", async || {
        self::connections(&app) == connections
    })
    .await;
}

pub async fn a_completed_subscription_leaves_the_others_alone(client: Client) {
    let app = spawn_app().await;
    let connections = connections(&app);
    let mut script = Script::start(client, &app.user("amy")).await;
    // Some clients make one of two that are the same.
    let best = |first| json!({ "board": "points", "first": first });
    for (name, first) in [("first", 1), ("second", 2)] {
        script.subscribe(name, BEST, best(first)).await;
        assert_eq!(script.update(name).await["cause"], "SNAPSHOT");
    }
    app.service().score("points", "amy", 5).await;
    for name in ["first", "second"] {
        assert_eq!(script.update(name).await["top"][0]["points"], 5);
    }

    script.complete("first").await;
    // What follows on the same socket is done after the completion.
    script.subscribe("third", BEST, best(3)).await;
    assert_eq!(script.update("third").await["cause"], "SNAPSHOT");
    let before = script.messages().await;
    app.service().score("points", "amy", 5).await;
    for name in ["second", "third"] {
        assert_eq!(script.update(name).await["top"][0]["points"], 10);
    }
    assert_eq!(script.left_over("first"), Vec::<&Value>::new());
    if client.has_socket() {
        assert_eq!(
            script.messages().await - before,
            2,
            "messages for two that listen"
        );
        assert_eq!(script.connections(), 1, "one socket for all");
    }

    for name in ["second", "third"] {
        script.complete(name).await;
    }
    script.close().await;
    eventually("the server to have closed its side", async || {
        self::connections(&app) <= connections + 1 // the caller's own
    })
    .await;
}

pub async fn its_variables_are_used(client: Client) {
    let app = spawn_app().await;
    for (user, points) in [("amy", 5), ("bob", 6), ("zed", 7)] {
        app.service().score("points", user, points).await;
    }
    let mut script = Script::start(client, &app.anonymous()).await;
    for (name, first) in [("one", 1), ("two", 2)] {
        script
            .subscribe(name, BEST, json!({ "board": "points", "first": first }))
            .await;
        let top = &script.update(name).await["top"];
        assert_eq!(top.as_array().unwrap().len(), first, "{top}");
        assert_eq!(top[0], json!({ "points": 7, "user": { "id": "zed" } }));
    }
}

pub async fn a_fragment_at_the_root_is_followed(client: Client) {
    let app = spawn_app().await;
    let mut script = Script::start(client, &app.anonymous()).await;
    script
        .subscribe("best", BEST_BY_FRAGMENT, json!({ "board": "points" }))
        .await;
    assert_eq!(
        script.update("best").await,
        json!({ "cause": "SNAPSHOT", "top": [] })
    );
    app.service().score("points", "amy", 5).await;
    assert_eq!(
        script.update("best").await,
        json!({ "cause": "CHANGED", "top": [{ "points": 5, "user": { "id": "amy" } }] })
    );
}

pub async fn queries_and_mutations_go_the_same_way(client: Client) {
    let app = spawn_app().await;
    let mut script = Script::start(client, &app.service()).await;
    script.subscribe("board", BOARD, json!({})).await;
    script.update("board").await;

    let who = script.answer("query", "query Who { viewer { role } }").await;
    assert_eq!(who, json!({ "viewer": { "role": "SERVICE" } }));
    let score = "mutation Score { submitScore(input: { board: \"points\", userId: \"amy\", points: 5 }) { outcome } }";
    let scored = script.answer("mutate", score).await;
    assert_eq!(scored, json!({ "submitScore": { "outcome": "APPLIED" } }));
    assert_eq!(script.update("board").await["top"][0]["points"], 5);
    if client.has_socket() {
        assert_eq!(script.connections(), 1, "one socket for all");
    }
}

pub async fn a_wrong_document_is_an_error_and_nothing_more(client: Client) {
    let app = spawn_app().await;
    let mut script = Script::start(client, &app.anonymous()).await;
    script.subscribe("board", BOARD, json!({})).await;
    script.update("board").await;

    script
        .subscribe(
            "wrong",
            "subscription Wrong { leaderboardChanged(board: \"points\") { nonsense } }",
            json!({}),
        )
        .await;
    let refusal = script.refusal("wrong").await;
    assert!(refusal.to_string().contains("nonsense"), "{refusal}");
    if matches!(client, Client::GraphqlWs | Client::Relay) {
        // By graphql-transport-ws what fails before it is executed is an `error`, not a `next` with errors.
        assert_eq!(
            refusal["error"][0]["extensions"]["code"], "BAD_USER_INPUT",
            "{refusal}"
        );
    }

    app.service().score("points", "amy", 5).await;
    assert_eq!(script.update("board").await["top"][0]["points"], 5);
    if client.has_socket() {
        assert_eq!(script.connections(), 1, "one socket for all");
    }
}

pub async fn it_comes_back_after_a_restart(client: Client) {
    let listen = free_address();
    let app = spawn_app().with(|settings| settings.server.listen = listen).await;
    app.service().score("points", "amy", 5).await;
    let mut script = Script::start(client, &app.user("amy")).await;
    script.subscribe("board", OWN, json!({})).await;
    assert_eq!(script.update("board").await["top"][0]["points"], 5);

    let app = app.restarted(|_| {}).await;
    app.service().score("points", "amy", 5).await;
    let back = script.update("board").await;
    assert_eq!(
        back["cause"], "SNAPSHOT",
        "whoever comes back begins with the full state: {back}"
    );
    let mut newest = back;
    while newest["top"][0]["points"] != 10 {
        newest = script.update("board").await; // it was back before the score
    }
    assert_eq!(
        newest["leaderboard"]["standing"]["points"], 10,
        "it is still amy who asks: {newest}"
    );
}

/// An address that stays free while its server restarts: its port is none that the system gives out by itself.
fn free_address() -> std::net::SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() as u16 % 8_000;
    loop {
        let port = 20_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 8_000;
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// How many connections the server holds, those included of which the other side is gone; none where the system does not
/// tell.
fn connections(app: &TestApp) -> usize {
    const ESTABLISHED: &str = "01";
    const LEFT_BY_THE_OTHER: &str = "08";
    let address = format!(":{:04X}", app.running().address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| {
            fields.len() > 3
                && fields[1].ends_with(&address)
                && [ESTABLISHED, LEFT_BY_THE_OTHER].contains(&fields[3])
        })
        .count()
}
