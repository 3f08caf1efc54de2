//! Who brings broken requests to the door: over HTTP, as streams, over sockets, and by the byte.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::broken;
use crate::harness::*;

/// As long as somebody waits who expects nothing.
const A_MOMENT: Duration = Duration::from_millis(5);

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

const CODES: [&str; 7] = [
    "UNAUTHENTICATED",
    "FORBIDDEN",
    "BAD_USER_INPUT",
    "NOT_FOUND",
    "RATE_LIMITED",
    "UNAVAILABLE",
    "PERSISTED_QUERY_NOT_FOUND",
];

/// That every error in an answer has a code, and none is a fault of ours.
fn check(answer: &Value, asked: &[u8]) {
    match answer {
        Value::Array(answers) => answers.iter().for_each(|answer| check(answer, asked)),
        _ => {
            for error in answer["errors"].as_array().into_iter().flatten() {
                let code = error["extensions"]["code"].as_str().unwrap_or_default();
                let asked = String::from_utf8_lossy(asked);
                assert!(
                    CODES.contains(&code) && error["message"].is_string(),
                    "{error} to {asked}"
                );
            }
        }
    }
}

fn role(random: &mut StdRng) -> Value {
    let claims = [
        json!({}),
        json!({ "devUser": "amy" }),
        json!({ "devRole": "SERVICE" }),
        json!({ "devRole": "ADMIN" }),
        json!({ "devRole": "ANALYST" }),
        json!({ "devUser": "bob", "devRole": "USER" }),
        json!({ "Authorization": "Bearer a.b.c" }),
    ];
    claims.choose(random).unwrap().clone()
}

fn with_role(mut request: reqwest::RequestBuilder, random: &mut StdRng) -> reqwest::RequestBuilder {
    let claims = role(random);
    for (claim, header) in [
        ("devUser", "X-Dev-User"),
        ("devRole", "X-Dev-Role"),
        ("Authorization", "Authorization"),
    ] {
        if let Some(text) = claims[claim].as_str() {
            request = request.header(header, text);
        }
    }
    request
}

/// Posts and links.
pub async fn over_http(address: &str, client: &Client, random: &mut StdRng) {
    let url = format!("http://{address}/graphql");
    let (request, asked) = if random.random_ratio(1, 5) {
        let link = broken::request(random);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs: Vec<(String, String)> = link
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        (client.get(&url).query(&pairs), link.to_string().into_bytes())
    } else {
        let methods = [
            Method::POST,
            Method::POST,
            Method::POST,
            Method::POST,
            Method::PUT,
            Method::OPTIONS,
        ];
        let kinds = [
            "application/json",
            "application/json",
            "application/json",
            "text/plain",
            "application/json; charset=\"",
            "*",
        ];
        let body = broken::body(random);
        let request = client.request(methods.choose(random).unwrap().clone(), &url);
        let request = request.header("Content-Type", *kinds.choose(random).unwrap());
        (request.body(body.clone()), body)
    };
    let accepts = [
        "application/json",
        "application/graphql-response+json",
        "*/*",
        ",;q=,",
        "text/html;q=nan",
        "",
    ];
    let request = with_role(request, random).header("Accept", *accepts.choose(random).unwrap());
    // A link may be longer than a server reads.
    let Ok(response) = timeout(PATIENCE, request.send()).await.expect("no answer") else {
        return;
    };
    let (status, json) = (
        response.status(),
        response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.to_str().unwrap().contains("json")),
    );
    let body = timeout(PATIENCE, response.bytes())
        .await
        .expect("half an answer")
        .unwrap();
    assert!(status.as_u16() != 500, "{}", String::from_utf8_lossy(&asked));
    if json {
        check(&serde_json::from_slice(&body).unwrap(), &asked);
    }
}

/// Streams that are read for a while, and left.
pub async fn over_stream(address: &str, client: &Client, random: &mut StdRng) {
    let accept = [
        "text/event-stream",
        "multipart/mixed;boundary=graphql;subscriptionSpec=1.0",
    ];
    let request = client
        .post(format!("http://{address}/graphql"))
        .header("Accept", *accept.choose(random).unwrap());
    let request = with_role(request, random)
        .header("Content-Type", "application/json")
        .body(broken::body(random));
    let Ok(mut response) = timeout(PATIENCE, request.send()).await.expect("no answer") else {
        return;
    };
    let mut read = Vec::new();
    while let Ok(Ok(Some(chunk))) = timeout(A_MOMENT, response.chunk()).await {
        read.extend_from_slice(&chunk);
        if random.random_ratio(1, 6) {
            break;
        }
    }
    let text = String::from_utf8_lossy(&read);
    assert!(!text.contains("INTERNAL"), "{text}");
}

/// A socket that says whatever, and goes in some way.
pub async fn over_socket(address: &str, random: &mut StdRng) {
    let protocols = ["graphql-transport-ws", "graphql-transport-ws", "graphql-ws"];
    let mut wire = Wire::connect(address, Some(protocols.choose(random).unwrap())).await;
    if !random.random_ratio(1, 6) {
        let mut payload = role(random);
        if random.random_ratio(1, 8) {
            payload["presence"] = json!({ "room": "lobby", "session": "tab" });
        }
        let init = json!({ "type": "connection_init", "payload": payload }).to_string();
        if wire.try_write(frame(Kind::Text, init)).await.is_err() {
            return;
        }
    }
    for _ in 0..random.random_range(1..12) {
        let message = broken::message(random);
        let bytes = match random.random_range(0..10) {
            0 => broken::bytes(random, 200),
            1 => broken::bytewise(random, frame(Kind::Text, message)),
            2 => {
                let kinds = [
                    Kind::Binary,
                    Kind::Ping,
                    Kind::Pong,
                    Kind::Close,
                    Kind::Continuation,
                ];
                frame(*kinds.choose(random).unwrap(), message)
            }
            3 => part(Kind::Text, false, message),
            _ => frame(Kind::Text, message),
        };
        if wire.try_write(bytes).await.is_err() {
            return;
        }
        while let Ok(came) = timeout(A_MOMENT, wire.next()).await {
            match came {
                Came::Message(message) => assert!(!message.to_string().contains("\"INTERNAL\""), "{message}"),
                Came::Close(..) | Came::End => return,
                Came::Ping(_) | Came::Pong(_) => {}
            }
            if random.random_ratio(1, 5) {
                break;
            }
        }
    }
    if random.random() {
        wire.reset();
    }
}

/// Bytes that may once have been a request.
pub async fn by_the_byte(address: &str, random: &mut StdRng) {
    let body = broken::body(random);
    let heads = [
        format!(
            "POST /graphql HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ),
        format!(
            "POST /graphql HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
        ),
        format!("GET /graphql?query={{__typename}} HTTP/1.1\r\nHost: {address}\r\nX-Request-Id: a\r\n\r\n"),
        format!(
            "GET /graphql HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
        ),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ];
    let mut bytes = match random.random_range(0..5) {
        0 => broken::bytes(random, 500),
        _ => heads.choose(random).unwrap().clone().into_bytes(),
    };
    if !random.random_ratio(1, 4) {
        bytes = broken::bytewise(random, bytes);
    }
    bytes.extend(body);
    let mut stream = TcpStream::connect(address).await.unwrap();
    if stream.write_all(&bytes).await.is_err() {
        return;
    }
    let mut read = [0; 1 << 12];
    while let Ok(Ok(length)) = timeout(A_MOMENT, stream.read(&mut read)).await {
        if length == 0 {
            return;
        }
    }
}
