//! Requests to our server: one after the other with their answers, or pipelined so that a slow server slows nobody.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a server that has fallen behind may take for what it was sent.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection on which requests are sent without waiting for the answers to earlier ones. They are done in order.
pub struct Posts {
    out: OwnedWriteHalf,
    answers: JoinHandle<()>,
}

impl Posts {
    /// For `count` requests; `answered` counts their answers.
    pub async fn open(address: SocketAddr, count: usize, answered: Arc<AtomicUsize>) -> Posts {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (answers, out) = stream.into_split();
        let answers = tokio::spawn(async move {
            let mut answers = BufReader::new(answers);
            for _ in 0..count {
                read(&mut answers).await.expect("an answer");
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
        Posts { out, answers }
    }

    /// Waits for the last answer, within limits: a server may drop what it has not begun when its caller leaves.
    pub async fn finish(self) {
        if let Ok(answered) = timeout(PATIENCE, self.answers).await {
            answered.expect("an answer");
        }
    }

    pub async fn send(&mut self, query: &str, variables: &Value) {
        self.out.write_all(&request(query, variables)).await.unwrap();
    }
}

/// One request and its answer.
pub async fn ask(address: SocketAddr, query: &str, variables: &Value) {
    let (answers, mut out) = TcpStream::connect(address).await.unwrap().into_split();
    out.write_all(&request(query, variables)).await.unwrap();
    read(&mut BufReader::new(answers)).await.expect("an answer");
}

fn request(query: &str, variables: &Value) -> Vec<u8> {
    let body = json!({ "query": query, "variables": variables }).to_string();
    format!(
        "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Dev-Role: SERVICE\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads one answer, which must be a good one; nothing when the connection has ended.
async fn read(answers: &mut BufReader<OwnedReadHalf>) -> Option<()> {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let began = head.len();
        if answers.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
        if let Some((name, value)) = head[began..].split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    answers.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8_lossy(&body);
    let good =
        head.starts_with("HTTP/1.1 200 ") && !body.contains(r#""errors""#) && !body.contains("REJECTED");
    assert!(good, "{head}{body}");
    Some(())
}
