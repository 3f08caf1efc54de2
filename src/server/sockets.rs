//! WebSockets on `/graphql`: which protocol, and whether there is room.
//!
//! Owns the upgrade. What is then spoken is [`crate::live`]'s.

use std::net::IpAddr;

use async_graphql_axum::GraphQLProtocol;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tracing::Instrument;

use super::doorway::Peer;
use super::over_http::{Media, answer};
use super::router::Door;
use super::visitor::Visitor;
use crate::error::Error;
use crate::live::protocol::Close;
use crate::live::{legacy, protocol, socket};
use crate::request_id;

/// A small buffer, since a server has thousands of sockets and says more than it hears: the library's is 128 KiB. A larger
/// message is read in steps.
const READ_BUFFER: usize = 1024;

/// Each frame is written when it is sent, in one piece: the outlet, where others may write, keeps what must wait.
const WRITE_BUFFER: usize = 0;

/// Takes a WebSocket; `old` is how async-graphql names the protocol, for the one that it speaks.
pub fn take(
    door: Door,
    peer: Peer,
    visitor: Visitor,
    headers: &HeaderMap,
    upgrade: WebSocketUpgrade,
    old: Option<GraphQLProtocol>,
) -> Response {
    // Browsers let any page open a socket, and say only which page it is. In `--dev` that was looked at before.
    if !door.terms.identity.is_dev() && !door.origins.may_connect(headers) {
        let reason =
            "pages of that origin may not open sockets here; server.cors_origins lists those that may";
        return answer::turned_away(Media::Json, StatusCode::FORBIDDEN, Error::Forbidden(reason));
    }
    let most = door.terms.live.max_message_bytes;
    let upgrade = upgrade
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(most)
        .max_frame_size(most)
        .protocols([protocol::SUBPROTOCOL, legacy::SUBPROTOCOL]);
    let chosen = upgrade.selected_protocol().cloned();
    match (chosen.as_ref().and_then(|protocol| protocol.to_str().ok()), old) {
        (Some(protocol::SUBPROTOCOL), _) => upgrade.on_upgrade(move |stream| {
            for_visitor(visitor, move |address| async move {
                match door.connections.admit(protocol::SUBPROTOCOL) {
                    Some(connected) => {
                        socket::serve(stream, peer.outlet, address, door.terms, connected).await;
                    }
                    None => full(stream).await,
                }
            })
        }),
        (Some(legacy::SUBPROTOCOL), Some(old)) => upgrade.on_upgrade(move |stream| {
            for_visitor(visitor, move |address| async move {
                match door.connections.admit(legacy::SUBPROTOCOL) {
                    Some(connected) => legacy::serve(stream, old, address, door.terms, connected).await,
                    None => full(stream).await,
                }
            })
        }),
        _ => upgrade.on_upgrade(|stream| socket::refuse(stream, Close::unspoken())),
    }
}

/// A socket is served by a task of its own; what is logged there is still of the request that opened it.
fn for_visitor<S: Future<Output = ()>>(
    visitor: Visitor,
    serve: impl FnOnce(IpAddr) -> S,
) -> impl Future<Output = ()> {
    let span = visitor.span();
    request_id::within(visitor.id, serve(visitor.address)).instrument(span)
}

async fn full(stream: WebSocket) {
    socket::refuse(
        stream,
        Close::try_again_later("this server has all the sockets that it can take"),
    )
    .await;
}
