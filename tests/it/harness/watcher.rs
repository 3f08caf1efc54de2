//! Subscribers that read all the time, and check everything they get against what was promised.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::{SinkExt, StreamExt};
use reqwest::Response;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{Caller, Socket, eventually};

/// What a board shows, in updates and in answers.
const BOARD: &str = "id epoch version participants";
const ROW: &str = "user { id name } rank ordinal: rank(method: ORDINAL) points";

fn top_query() -> String {
    format!(
        "subscription ($board: ID!, $span: BoardSpan, $first: Int!) {{
            leaderboardChanged(board: $board, span: $span, first: $first) {{
                cause sinceVersion moves {{ from to user {{ id }} }} leaderboard {{ {BOARD} }} top {{ {ROW} }} }} }}"
    )
}

fn rank_query() -> String {
    format!(
        "subscription ($board: ID!, $span: BoardSpan, $user: ID) {{
            rankChanged(board: $board, span: $span, userId: $user) {{
                cause leaderboard {{ {BOARD} }} standing {{ {ROW} }} previousRank above {{ {ROW} }} pointsToAbove
                overtakenBy {{ {ROW} }} overtakenCount }} }}"
    )
}

/// What is watched.
#[derive(Debug, Clone)]
pub enum Watched {
    /// The best so many of a board over a span.
    Top(&'static str, Value, usize),
    /// A user's place on a board over a span.
    Rank(&'static str, Value, &'static str),
}

impl Watched {
    fn query(&self) -> String {
        match self {
            Watched::Top(..) => top_query(),
            Watched::Rank(..) => rank_query(),
        }
    }

    fn variables(&self) -> Value {
        match self {
            Watched::Top(board, span, first) => json!({ "board": board, "span": span, "first": first }),
            Watched::Rank(board, span, user) => json!({ "board": board, "span": span, "user": user }),
        }
    }

    /// The same by a query: the board with its top, or the user's standing.
    pub async fn asked(&self, caller: &Caller<'_>) -> Value {
        let (wanted, definition) = match self {
            Watched::Top(..) => (format!("{BOARD} top(first: $first) {{ {ROW} }}"), "$first: Int!"),
            Watched::Rank(..) => (format!("standing(userId: $user) {{ {ROW} }}"), "$user: ID"),
        };
        let query = format!(
            "query ($board: ID!, $span: BoardSpan, {definition}) {{
                leaderboard(board: $board, span: $span) {{ {wanted} }} }}"
        );
        caller.data(&query, self.variables()).await["leaderboard"].take()
    }

    /// What an update shows, as [`Watched::asked`] answers.
    pub fn shown(&self, update: &Value) -> Value {
        match self {
            Watched::Top(..) => {
                let mut board = update["leaderboard"].clone();
                board["top"] = update["top"].clone();
                board
            }
            // Nobody is told of a rank when others come.
            Watched::Rank(..) => json!({ "standing": update["standing"] }),
        }
    }
}

/// An update and when it came.
#[derive(Debug, Clone)]
pub struct Got {
    pub at: Instant,
    pub update: Value,
}

/// A subscriber that keeps what it gets. It never comes back by itself: a connection that ends fails the test.
pub struct Watcher {
    pub watched: Watched,
    got: watch::Receiver<Vec<Got>>,
    reading: JoinHandle<()>,
}

impl Watcher {
    /// Watches over a socket of its own; the first state has come.
    pub async fn open(caller: &Caller<'_>, watched: Watched) -> Watcher {
        let mut socket = Socket::open(caller).await;
        socket.subscribe(&watched.query(), watched.variables()).await;
        let (keep, got) = watch::channel(Vec::new());
        let mut picture = Picture::of(&watched);
        let reading = tokio::spawn(async move {
            loop {
                picture.take(socket.update().await, &keep);
            }
        });
        Watcher::with_a_state(watched, got, reading).await
    }

    /// Watches over server-sent events; the first state has come.
    pub async fn open_stream(caller: &Caller<'_>, watched: Watched) -> Watcher {
        let body = json!({ "query": watched.query(), "variables": watched.variables() });
        let request = caller.app.http().post(caller.app.url());
        let request = request.header("Accept", "text/event-stream").json(&body);
        let mut events = request.send().await.unwrap().error_for_status().unwrap();
        let (keep, got) = watch::channel(Vec::new());
        let mut picture = Picture::of(&watched);
        let reading = tokio::spawn(async move {
            let mut unread = String::new();
            loop {
                picture.take(next_event(&mut events, &mut unread).await, &keep);
            }
        });
        Watcher::with_a_state(watched, got, reading).await
    }

    /// Watches over a socket of the old protocol `graphql-ws`, where nothing is shared; the first state has come.
    pub async fn open_old(caller: &Caller<'_>, watched: Watched) -> Watcher {
        let url = caller.app.url().replace("http://", "ws://");
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("Sec-WebSocket-Protocol", "graphql-ws".parse().unwrap());
        let (mut socket, _) = connect_async(request).await.unwrap();
        let payload = json!({ "query": watched.query(), "variables": watched.variables() });
        for message in [
            json!({ "type": "connection_init", "payload": caller.claims() }),
            json!({ "id": "1", "type": "start", "payload": payload }),
        ] {
            let message = Message::text(message.to_string());
            socket.send(message).await.unwrap();
        }
        let (keep, got) = watch::channel(Vec::new());
        let mut picture = Picture::of(&watched);
        let reading = tokio::spawn(async move {
            while let Some(message) = socket.next().await {
                let Message::Text(text) = message.unwrap() else {
                    continue;
                };
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == "data" {
                    let data = message["payload"]["data"].as_object();
                    let data = data.unwrap_or_else(|| panic!("{message}"));
                    picture.take(data.values().next().unwrap().clone(), &keep);
                }
            }
        });
        Watcher::with_a_state(watched, got, reading).await
    }

    async fn with_a_state(
        watched: Watched,
        got: watch::Receiver<Vec<Got>>,
        reading: JoinHandle<()>,
    ) -> Watcher {
        let watcher = Watcher {
            watched,
            got,
            reading,
        };
        watcher.until("the first state", |got| !got.is_empty()).await;
        watcher
    }

    /// How many updates have come.
    pub fn count(&self) -> usize {
        self.got.borrow().len()
    }

    /// What has come after the first `count` updates.
    pub fn since(&self, count: usize) -> Vec<Got> {
        self.got.borrow()[count..].to_vec()
    }

    pub fn last(&self) -> Value {
        self.got.borrow().last().unwrap().update.clone()
    }

    /// Waits until what has come is as wanted.
    pub async fn until(&self, what: &str, holds: impl Fn(&[Got]) -> bool) {
        let what = format!("{what} at {:?}", self.watched);
        eventually(&what, async || {
            assert!(!self.reading.is_finished(), "{:?} is not served", self.watched);
            holds(&self.got.borrow())
        })
        .await;
    }

    /// Waits until it shows what a query answers, and answers with that.
    pub async fn until_true(&self, caller: &Caller<'_>) -> Value {
        let truth = self.watched.asked(caller).await;
        let what = format!("the true state {truth}");
        self.until(&what, |got| {
            got.last()
                .is_some_and(|last| self.watched.shown(&last.update) == truth)
        })
        .await;
        truth
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn next_event(events: &mut Response, unread: &mut String) -> Value {
    loop {
        while let Some((event, rest)) = unread.split_once("\n\n") {
            let (event, rest) = (event.to_owned(), rest.to_owned());
            *unread = rest;
            if let Some((kind, data)) = event.split_once("\ndata: ") {
                assert_eq!(kind, "event: next", "{event}");
                let answer: Value = serde_json::from_str(data).unwrap();
                let data = answer["data"].as_object().unwrap_or_else(|| panic!("{event}"));
                return data.values().next().unwrap().clone();
            }
        }
        let chunk = events.chunk().await.unwrap().expect("the stream ended");
        unread.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

/// What a plain client makes of the updates.
struct Picture {
    watched: Watched,
    before: Option<Value>,
    /// Who stands in which place, by moves alone since the last full state.
    places: BTreeMap<u64, String>,
}

impl Picture {
    fn of(watched: &Watched) -> Picture {
        Picture {
            watched: watched.clone(),
            before: None,
            places: BTreeMap::new(),
        }
    }

    /// Checks an update and keeps it.
    fn take(&mut self, update: Value, keep: &watch::Sender<Vec<Got>>) {
        let at = Instant::now();
        let version = |update: &Value| update["leaderboard"]["version"].as_u64().unwrap();
        let changed = update["cause"] == "CHANGED";
        match &self.before {
            None => assert_eq!(update["cause"], "SNAPSHOT", "{update}"),
            Some(before) => {
                let (old, new) = (&before["leaderboard"], &update["leaderboard"]);
                assert_ne!(update["cause"], "SNAPSHOT", "{update}");
                if old["epoch"] == new["epoch"] {
                    assert!(version(&update) >= version(before), "{before} then {update}");
                }
                assert!(!changed || old["id"] == new["id"], "{before} then {update}");
            }
        }
        let before = self.before.replace(update.clone()).filter(|_| changed);
        match self.watched {
            Watched::Top(..) => {
                let since = before.map(|before| version(&before));
                assert_eq!(update["sinceVersion"], json!(since), "{update}");
                self.move_places(&update);
            }
            Watched::Rank(..) => check_rank(before.as_ref(), &update),
        }
        keep.send_modify(|got| got.push(Got { at, update }));
    }

    /// A change's moves, applied to the places before, give the new top; a full state replaces them.
    fn move_places(&mut self, update: &Value) {
        let top = update["top"].as_array().unwrap();
        let top = (1..).zip(
            top.iter()
                .map(|row| row["user"]["id"].as_str().unwrap().to_owned()),
        );
        let top: BTreeMap<u64, String> = top.collect();
        let moves = update["moves"].as_array().unwrap();
        if update["cause"] == "CHANGED" {
            for step in moves {
                if let Some(from) = step["from"].as_u64() {
                    let stood = self.places.remove(&from);
                    assert_eq!(stood.as_deref(), step["user"]["id"].as_str(), "{update}");
                }
            }
            for step in moves {
                assert_ne!(step["from"], step["to"], "{update}");
                if let Some(to) = step["to"].as_u64() {
                    let user = step["user"]["id"].as_str().unwrap().to_owned();
                    assert_eq!(self.places.insert(to, user), None, "two in one place: {update}");
                }
            }
            assert_eq!(self.places, top, "{update}");
        } else {
            assert!(moves.is_empty(), "{update}");
            self.places = top;
        }
    }
}

/// `before` is what a change tells of.
fn check_rank(before: Option<&Value>, update: &Value) {
    let rank_before = before.map(|before| before["standing"]["rank"].clone());
    assert_eq!(update["previousRank"], json!(rank_before), "{update}");
    let (count, by) = (
        &update["overtakenCount"],
        update["overtakenBy"].as_array().unwrap(),
    );
    let count = count.as_u64().unwrap();
    assert!(by.len() as u64 <= count.min(3), "{update}");
    assert!(before.is_some() || count == 0, "{update}");
    assert_eq!(
        update["above"].is_null(),
        update["pointsToAbove"].is_null(),
        "{update}"
    );
    assert!(
        !update["standing"].is_null() || update["above"].is_null(),
        "{update}"
    );
}
