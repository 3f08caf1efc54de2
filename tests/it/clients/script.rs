//! A script of `tests/clients`, running; `tests/clients/line-protocol.mjs` says what it is told and what it answers.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::harness::*;

/// Longer than Node takes to start, or a client to try again, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client that frontends use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    GraphqlWs,
    Urql,
    Apollo,
    Relay,
    GraphqlSse,
    SubscriptionsTransportWs,
    ApolloMultipart,
    /// graphql-ws with what an update's moves lead to.
    Moves,
}

impl Client {
    fn script(self) -> &'static str {
        match self {
            Client::GraphqlWs => "graphql-ws.mjs",
            Client::Urql => "urql.mjs",
            Client::Apollo => "apollo.mjs",
            Client::Relay => "relay.mjs",
            Client::GraphqlSse => "graphql-sse.mjs",
            Client::SubscriptionsTransportWs => "subscriptions-transport-ws.mjs",
            Client::ApolloMultipart => "apollo-multipart.mjs",
            Client::Moves => "moves.mjs",
        }
    }

    /// Whether all its operations share one WebSocket.
    pub fn has_socket(self) -> bool {
        !matches!(self, Client::GraphqlSse | Client::ApolloMultipart)
    }

    /// Whether it closes its socket with its last subscription.
    pub fn is_lazy(self) -> bool {
        self.has_socket() && self != Client::SubscriptionsTransportWs
    }
}

/// A client's script, running.
pub struct Script {
    client: Client,
    process: Child,
    commands: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// Events that have come and nobody has asked for yet.
    kept: VecDeque<Value>,
}

impl Script {
    /// Starts it as `caller`, subscribed to nothing.
    pub async fn start(client: Client, caller: &Caller<'_>) -> Script {
        let url = match client.has_socket() {
            true => caller.app.url().replace("http://", "ws://"),
            false => caller.app.url(),
        };
        let mut process = Command::new("node")
            .arg(client.script())
            .args([url, caller.claims().to_string()])
            .current_dir(home().await)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node is missing: scripts/setup test says how to get it");
        Script {
            client,
            commands: process.stdin.take().unwrap(),
            lines: BufReader::new(process.stdout.take().unwrap()).lines(),
            process,
            kept: VecDeque::new(),
        }
    }

    pub async fn subscribe(&mut self, name: &str, query: &str, variables: Value) {
        self.tell(json!({ "subscribe": { "as": name, "query": query, "variables": variables } }))
            .await;
    }

    /// The answer to a query (`kind` is `query`) or a mutation (`mutate`), which must end then.
    pub async fn answer(&mut self, kind: &str, query: &str) -> Value {
        self.tell(json!({ kind: { "as": kind, "query": query } })).await;
        let answer = self.payload(kind).await;
        self.event("the answer's end", |event| {
            event["as"] == kind && event["complete"] == true
        })
        .await;
        answer
    }

    /// Ends a subscription; it has been ended at the client when this returns.
    pub async fn complete(&mut self, name: &str) {
        self.tell(json!({ "complete": name })).await;
        self.event("the end of a subscription", |event| {
            event["as"] == name && event["ended"] == true
        })
        .await;
    }

    /// Closes the client.
    pub async fn close(&mut self) {
        self.tell(json!({ "close": true })).await;
    }

    /// How many messages of operations its sockets have got.
    pub async fn messages(&mut self) -> u64 {
        self.tell(json!({ "count": true })).await;
        let answer = self
            .event("the count", |event| event.get("count").is_some())
            .await;
        ["next", "data"]
            .iter()
            .filter_map(|kind| answer["count"][kind].as_u64())
            .sum()
    }

    /// The next update of the subscription's only field.
    pub async fn update(&mut self, name: &str) -> Value {
        let data = self.payload(name).await;
        let fields = data.as_object();
        fields
            .and_then(|fields| fields.values().next())
            .unwrap_or_else(|| panic!("{:?}: no field in {data}", self.client))
            .clone()
    }

    /// The next data of an operation, without the type names that some clients ask for.
    async fn payload(&mut self, name: &str) -> Value {
        let mut event = self.event("data", |event| of_operation(event, name)).await;
        if event["next"]["data"].is_null() || event["next"].get("errors").is_some() {
            self.fail(&format!("data was expected, and not {event}")).await;
        }
        without_type_names(event["next"]["data"].take())
    }

    /// The event that says why an operation failed.
    pub async fn refusal(&mut self, name: &str) -> Value {
        let event = self.event("an error", |event| of_operation(event, name)).await;
        if event.get("error").is_none() && event["next"].get("errors").is_none() {
            self.fail(&format!("an error was expected, and not {event}"))
                .await;
        }
        event
    }

    /// Waits for the next event of which `wanted` holds, and keeps others for later.
    pub async fn event(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            match timeout(PATIENCE, self.lines.next_line()).await {
                Ok(Ok(Some(line))) => {
                    let event = serde_json::from_str(&line)
                        .unwrap_or_else(|error| panic!("{:?} printed {line}: {error}", self.client));
                    if wanted(&event) {
                        return event;
                    }
                    self.kept.push_back(event);
                }
                Ok(_) => self.fail(&format!("it ended before {what}")).await,
                Err(_) => self.fail(&format!("waited in vain for {what}")).await,
            }
        }
    }

    /// Events of an operation that came and were not asked for.
    pub fn left_over(&self, name: &str) -> Vec<&Value> {
        self.kept
            .iter()
            .filter(|event| event["as"] == name && event.get("next").is_some())
            .collect()
    }

    /// How often a socket was acknowledged, as far as events have been read.
    pub fn connections(&self) -> usize {
        self.kept
            .iter()
            .filter(|event| event.get("connected").is_some())
            .count()
    }

    async fn tell(&mut self, command: Value) {
        let told = self.commands.write_all(format!("{command}\n").as_bytes()).await;
        if let Err(error) = told {
            self.fail(&format!("it does not listen: {error}")).await;
        }
    }

    /// Fails the test with all that the script has said.
    async fn fail(&mut self, reason: &str) -> ! {
        self.process.kill().await.unwrap();
        let mut said = String::new();
        let stderr = self.process.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).await.unwrap();
        panic!(
            "{}: {reason}\nother events: {:?}\nit said: {said}",
            self.client.script(),
            self.kept
        );
    }
}

/// An event with an operation's data or error, or its end.
fn of_operation(event: &Value, name: &str) -> bool {
    event["as"] == name && event.get("ended").is_none()
}

fn without_type_names(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(key, _)| key != "__typename")
            .map(|(key, value)| (key, without_type_names(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_type_names).collect(),
        plain => plain,
    }
}

/// Where the scripts are, with their npm packages, which `scripts/setup test` installs too.
pub async fn home() -> PathBuf {
    static ONCE: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    ONCE.get_or_init(|| async {
        if home.join("node_modules/.package-lock.json").exists() {
            return;
        }
        let installed = Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&home)
            .output()
            .await;
        let good = installed.as_ref().is_ok_and(|output| output.status.success());
        assert!(
            good,
            "the npm packages of tests/clients are missing and `npm ci` failed; run scripts/setup test: {installed:?}"
        );
    })
    .await;
    home
}
