//! SIGTERM under load: whatever was accepted is answered, and whatever was done was told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::*;

const SCORE: &str =
    "mutation { submitScore(input: { board: \"points\", userId: \"amy\", points: 1 }) { outcome } }";

/// What the clients of a server have seen.
#[derive(Default)]
struct Seen {
    answered: AtomicUsize,
    over_sockets: AtomicUsize,
    /// Requests on a connection that had answered before, which then ended without an answer.
    cut: AtomicUsize,
}

/// One answer; `None` if the connection ends before it is whole.
async fn answer(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let (_, length) = head.split_once("content-length: ").unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if body.len() >= length {
                return Some((head, serde_json::from_str(body).unwrap()));
            }
        }
        match stream.read_buf(&mut read).await {
            Ok(more) if more > 0 => {}
            _ => return None,
        }
    }
}

/// Posts on a connection that it keeps, and on another whenever it is told that an answer was the last one on it.
async fn post(address: String, seen: Arc<Seen>) {
    let body = json!({ "query": SCORE }).to_string();
    let request = format!(
        "POST /graphql HTTP/1.1\r\nHost: {address}\r\nX-Dev-Role: SERVICE\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    while let Ok(mut stream) = TcpStream::connect(&address).await {
        let mut answers_here = 0;
        loop {
            let sent = stream.write_all(request.as_bytes()).await.is_ok();
            let Some((head, answer)) = (if sent { answer(&mut stream).await } else { None }) else {
                // One that never answered anything may not have been accepted.
                seen.cut
                    .fetch_add(usize::from(answers_here > 0), Ordering::SeqCst);
                break;
            };
            assert_eq!(answer["data"]["submitScore"]["outcome"], "APPLIED", "{answer}");
            seen.answered.fetch_add(1, Ordering::SeqCst);
            answers_here += 1;
            if head.contains("connection: close") {
                break;
            }
        }
    }
}

/// Asks over a socket, one after another, until it is told to go.
async fn ask(address: String, protocol: &'static str, seen: Arc<Seen>) {
    let begin = if protocol == "graphql-ws" {
        "start"
    } else {
        "subscribe"
    };
    let mut wire = Wire::connect(&address, Some(protocol)).await;
    wire.send(json!({ "type": "connection_init", "payload": { "devRole": "SERVICE" } }))
        .await;
    for id in 0.. {
        let payload = json!({ "query": SCORE });
        let message = json!({ "id": id.to_string(), "type": begin, "payload": payload }).to_string();
        if wire.try_write(frame(Kind::Text, message)).await.is_err() {
            return;
        }
        loop {
            match wire.next().await {
                Came::Message(message) if message["payload"]["data"].is_object() => {
                    seen.answered.fetch_add(1, Ordering::SeqCst);
                    seen.over_sockets.fetch_add(1, Ordering::SeqCst);
                }
                Came::Message(message) if message["type"] == "complete" => break,
                Came::Close(code, _) => {
                    assert_eq!(code, 1001);
                    return;
                }
                Came::End => panic!("a socket ended with no farewell"),
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_under_load_cuts_nothing_that_was_accepted() {
    let place =
        Place::new("[[board]]\nid = \"points\"\nperiods = [\"ALL_TIME\"]\n[redis]\ntimeout_ms = 10000\n");
    let mut told = 0;
    for round in 0..3 {
        let server = Server::start(place.serve());
        let seen = Arc::new(Seen::default());
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..16 {
            clients.spawn(post(server.address().to_owned(), seen.clone()));
        }
        for protocol in ["graphql-transport-ws", "graphql-ws"] {
            for _ in 0..4 {
                clients.spawn(ask(server.address().to_owned(), protocol, seen.clone()));
            }
        }
        eventually("some load", async || {
            seen.answered.load(Ordering::SeqCst) > 200 && seen.over_sockets.load(Ordering::SeqCst) > 20
        })
        .await;
        let ended = tokio::task::spawn_blocking(move || server.end("TERM"))
            .await
            .unwrap();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        assert_eq!(seen.cut.load(Ordering::SeqCst), 0, "round {round}");
        told += seen.answered.load(Ordering::SeqCst);
    }
    // Nothing was done either that nobody was told of.
    let server = Server::start(place.serve());
    assert_eq!(server.points("points", "amy").await, told);
}
