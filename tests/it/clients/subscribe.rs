//! `tests/clients/subscribe.mjs`, which follows one subscription at a terminal: how soon a change arrives, and who asks.

#![allow(clippy::print_stdout)] // the figures that a run is asked for

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::script::home;
use crate::harness::*;

/// Longer than Node takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const BOARD: &str =
    "subscription { leaderboardChanged(board: \"points\") { cause top { points user { id } } } }";

const OWN: &str = "subscription { leaderboardChanged(board: \"points\") {
    leaderboard { standing { points user { id } } } } }";

#[tokio::test(flavor = "multi_thread")]
async fn it_gets_a_full_state_and_then_each_change_within_half_a_second() {
    const CHANGES: usize = 20;
    let app = spawn_app().await;
    let service = app.service();
    service.score("points", "amy", 5).await;
    let mut client = Subscriber::subscribe(&app, json!({}), BOARD, 1 + CHANGES).await;
    let full = client.next().await;
    assert_eq!(full["cause"], "SNAPSHOT");
    assert_eq!(full["top"], json!([{ "points": 5, "user": { "id": "amy" } }]));

    let mut took = Vec::with_capacity(CHANGES);
    for i in 1..=CHANGES {
        let sent = Instant::now();
        // The answer and the change race each other, and the client must not wait for the answer.
        let (scored, change) = tokio::join!(service.score("points", "amy", 1), async {
            let change = client.next().await;
            took.push(sent.elapsed());
            change
        });
        assert_eq!(
            (scored.outcome.as_str(), &change["cause"]),
            ("APPLIED", &json!("CHANGED"))
        );
        assert_eq!(change["top"][0]["points"], 5 + i, "{change}");
    }
    client.ended_well().await;
    took.sort();
    let (median, slowest) = (took[CHANGES / 2], took[CHANGES - 1]);
    println!("from sending a score to its change at the client: median {median:?}, slowest {slowest:?}");
    assert!(median <= Duration::from_millis(500), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_its_connection_init_names_is_who_asks() {
    let app = spawn_app()
        .with(|settings| settings.auth.public_reads = false)
        .await;
    app.service().score("points", "amy", 5).await;
    app.service().score("points", "zed", 9).await;

    let mut client = Subscriber::subscribe(&app, json!({ "devUser": "amy" }), OWN, 1).await;
    let full = client.next().await;
    let own = json!({ "points": 5, "user": { "id": "amy" } });
    assert_eq!(full["leaderboard"]["standing"], own);
    client.ended_well().await;

    let mut client = Subscriber::subscribe(&app, json!({}), OWN, 1).await;
    let refused = client.complaint().await;
    assert!(refused.contains("UNAUTHENTICATED"), "{refused}");

    let mut client = Subscriber::subscribe(&app, json!({ "devUser": "a b" }), OWN, 1).await;
    let complaint = client.complaint().await;
    assert!(complaint.contains("no spaces"), "{complaint}");
}

/// The script, running.
struct Subscriber {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Subscriber {
    async fn subscribe(app: &TestApp, params: Value, subscription: &str, count: usize) -> Subscriber {
        let mut process = Command::new("node")
            .arg("subscribe.mjs")
            .arg(app.url().replace("http://", "ws://"))
            .args([params.to_string(), subscription.to_owned(), count.to_string()])
            .current_dir(home().await)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node is missing: scripts/setup test says how to get it");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Subscriber { process, lines }
    }

    /// The next update.
    async fn next(&mut self) -> Value {
        let mut payload = self.payload().await;
        assert!(payload.get("errors").is_none(), "{payload}");
        payload["data"]["leaderboardChanged"].take()
    }

    /// The next payload that it printed.
    async fn payload(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line())
            .await
            .expect("the client printed nothing in time")
            .unwrap();
        let Some(line) = line else {
            panic!("the client ended: {}", self.complaint().await);
        };
        let mut line: Value = serde_json::from_str(&line).unwrap();
        line["payload"].take()
    }

    async fn ended_well(&mut self) {
        let status = timeout(PATIENCE, self.process.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{}", self.complaint().await);
    }

    /// What it says on standard error until it ends.
    async fn complaint(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut stderr) = self.process.stderr.take() {
            tokio::io::AsyncReadExt::read_to_string(&mut stderr, &mut said)
                .await
                .unwrap();
        }
        said
    }
}
