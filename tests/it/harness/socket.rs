//! A WebSocket that speaks graphql-transport-ws, message by message.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::{Caller, shape};

/// Longer than anything that should come takes; an event that never comes fails the test by it.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    query: String,
}

impl Socket {
    /// Connects and is acknowledged.
    pub async fn open(caller: &Caller<'_>) -> Socket {
        let mut socket = Socket::connect(caller).await;
        socket
            .send(json!({ "type": "connection_init", "payload": caller.claims() }))
            .await;
        assert_eq!(socket.receive().await["type"], "connection_ack");
        socket
    }

    /// Connects, asking to count as a session at `place`, and is acknowledged.
    pub async fn present(caller: &Caller<'_>, place: Value) -> Socket {
        let mut socket = Socket::connect(caller).await;
        let mut payload = caller.claims();
        payload["presence"] = place;
        socket
            .send(json!({ "type": "connection_init", "payload": payload }))
            .await;
        assert_eq!(socket.receive().await["type"], "connection_ack");
        socket
    }

    /// Closes, and waits until the other side agrees.
    pub async fn close(mut self) {
        self.stream.close(None).await.unwrap();
        while let Some(Ok(_)) = self.stream.next().await {}
    }

    /// The code with which the other side closes.
    pub async fn closed(mut self) -> u16 {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.stream.next()).await;
            if let Message::Close(frame) = message.expect("nothing came").expect("the socket ended").unwrap()
            {
                return frame.unwrap().code.into();
            }
        }
    }

    /// Connects and says nothing yet.
    pub async fn connect(caller: &Caller<'_>) -> Socket {
        let url = caller.app.url().replace("http://", "ws://");
        let mut request = url.into_client_request().unwrap();
        request
            .headers_mut()
            .insert("Sec-WebSocket-Protocol", "graphql-transport-ws".parse().unwrap());
        let (stream, _) = connect_async(request).await.unwrap();
        Socket {
            stream,
            query: String::new(),
        }
    }

    pub async fn send(&mut self, message: Value) {
        self.stream
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    /// The next message that is no ping of either kind.
    pub async fn receive(&mut self) -> Value {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.stream.next())
                .await
                .expect("nothing came");
            match message.expect("the socket ended").unwrap() {
                Message::Text(text) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if message["type"] != "ping" {
                        return message;
                    }
                }
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    /// Subscribes under the id `1`.
    pub async fn subscribe(&mut self, query: &str, variables: Value) {
        self.query = query.into();
        let payload = json!({ "query": query, "variables": variables });
        self.send(json!({ "id": "1", "type": "subscribe", "payload": payload }))
            .await;
    }

    /// The next update of the only subscribed field, its shape checked against the schema.
    pub async fn update(&mut self) -> Value {
        let message = self.receive().await;
        assert_eq!(message["type"], "next", "{message}");
        shape::check(&self.query, &message["payload"]);
        let data = message["payload"]["data"]
            .as_object()
            .unwrap_or_else(|| panic!("{message}"));
        data.values().next().unwrap().clone()
    }
}
