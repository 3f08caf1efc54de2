//! The limit: the same transport with nothing left to do a subscriber but to write bytes that are ready.
//!
//! One message a change, built once, a clone of it (a counted reference) to each socket. It knows no GraphQL: any
//! `connection_init` is acknowledged, any `subscribe` is answered with the state.

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use tokio::sync::watch;

type States = watch::Receiver<Utf8Bytes>;

/// As our own transport has it; the default of 128 KiB is kept for each socket.
const READ_BUFFER: usize = 4 << 10;

pub fn router(states: States) -> Router {
    Router::new().route("/graphql", get(upgrade)).with_state(states)
}

async fn upgrade(State(states): State<States>, upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .protocols(["graphql-transport-ws"])
        .read_buffer_size(READ_BUFFER)
        .on_upgrade(move |socket| serve(socket, states))
}

async fn serve(mut socket: WebSocket, mut states: States) {
    let mut subscribed = false;
    loop {
        let answer = tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) if text.contains(r#""connection_init""#) => {
                    Utf8Bytes::from_static(r#"{"type":"connection_ack"}"#)
                }
                Some(Ok(Message::Text(text))) if text.contains(r#""subscribe""#) => {
                    subscribed = true;
                    states.borrow_and_update().clone()
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return,
            },
            Ok(()) = states.changed(), if subscribed => states.borrow_and_update().clone(),
        };
        if socket.send(Message::Text(answer)).await.is_err() {
            return;
        }
    }
}
