//! A page of requests and answers as one story: sent in their order, by a clock that stands still.
//!
//! A block of `graphql` is followed by its answer, a block of `json`; its first line says who asks (`# as amy`). After a
//! subscription a block of `json next` is the update that comes next. A block of `http` is a whole request, followed by
//! its answer.

use reqwest::Method;
use serde_json::json;

use super::likeness::{is_shown, message};
use super::page::{self, Block};
use crate::harness::*;

fn caller<'a>(app: &'a TestApp, asked: &Block) -> Caller<'a> {
    let first = asked.text.lines().next().unwrap_or_default();
    let who = first
        .strip_prefix("# as ")
        .unwrap_or_else(|| panic!("line {}: who asks? (# as …)", asked.line));
    match who.split(',').next().unwrap() {
        "anybody" => app.anonymous(),
        "a backend" => app.service(),
        "an analyst" => app.analyst(),
        user => app.user(user),
    }
}

/// Sends a block of `http`.
async fn send(app: &TestApp, asked: &Block) -> reqwest::Response {
    let (first, rest) = asked.text.split_once('\n').unwrap();
    let (method, path) = first.split_once(' ').unwrap();
    let (headers, body) = message(rest);
    let url = format!("http://{}{path}", app.address());
    let mut request = app
        .http()
        .request(Method::from_bytes(method.as_bytes()).unwrap(), url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body(body.to_owned()).send().await.unwrap()
}

/// The story of a page as it goes on.
struct Story<'a> {
    app: &'a TestApp,
    /// The subscription that was begun last.
    socket: Option<Socket>,
}

impl Story<'_> {
    /// The answer to a block of `graphql`, as it was written.
    async fn asked(&mut self, asked: &Block) -> String {
        let caller = caller(self.app, asked);
        if asked.text.contains("\nsubscription") {
            let mut socket = Socket::open(&caller).await;
            socket.subscribe(&asked.text, json!({})).await;
            self.socket = Some(socket);
            return self.next().await;
        }
        let first = asked.text.lines().next().unwrap();
        let away = first.ends_with("while the store is away");
        let redis = self.app.running().redis_pid().unwrap();
        if away {
            signal("STOP", redis);
        }
        let answer = caller.post(&asked.text, json!({})).send().await;
        if away {
            signal("CONT", redis);
        }
        answer.unwrap().text().await.unwrap()
    }

    /// What comes next on the socket.
    async fn next(&mut self) -> String {
        let socket = self.socket.as_mut().expect("nothing is subscribed to");
        let told = socket.receive().await;
        match told["type"].as_str() {
            Some("error") => json!({ "errors": told["payload"] }).to_string(),
            _ => told["payload"].to_string(),
        }
    }

    /// The answer to a block of `http`, as such a block shows it.
    async fn sent(&self, asked: &Block) -> String {
        let answer = send(self.app, asked).await;
        let mut text = format!("HTTP/1.1 {}\n", answer.status());
        for (name, value) in answer.headers() {
            text += &format!("{name}: {}\n", value.to_str().unwrap());
        }
        text + "\n" + &answer.text().await.unwrap()
    }
}

/// Tells the story of a page; what is not as it shows.
pub async fn differences(app: &TestApp, name: &str) -> Vec<String> {
    let blocks = page::blocks(&page::read(name));
    let mut story = Story { app, socket: None };
    let mut found = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        let below = |language: &str| match blocks.get(i + 1) {
            Some(below) if below.language == language => below,
            _ => panic!("docs/{name}:{}: no answer stands below", block.line),
        };
        let (shown, answer) = match (block.language.as_str(), block.note.as_str()) {
            ("graphql", _) => (below("json"), story.asked(block).await),
            ("json", "next") => (block, story.next().await),
            ("http", _) if !block.text.starts_with("HTTP/") => (below("http"), story.sent(block).await),
            _ => continue,
        };
        if !is_shown(shown, &answer) {
            found.push(format!("docs/{name}:{}: answers now\n{answer}", block.line));
        }
    }
    found
}
