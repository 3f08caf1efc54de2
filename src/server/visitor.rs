//! Who is at the door, before anybody asks who they say they are.
//!
//! Owns the address that counts, the id of a request, and the span that puts both into each line that is logged for it.

use std::net::IpAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use super::doorway::Peer;
use super::router::Door;
use crate::logs;
use crate::request_id::{self, RequestId};

/// The header that a request's id comes and goes by.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What is known of a request besides what it asks.
#[derive(Clone)]
pub struct Visitor {
    /// Whom it comes from, as far as trusted proxies tell.
    pub address: IpAddr,
    /// Names it in logs.
    pub id: RequestId,
}

impl Visitor {
    /// What is logged for it stands within this.
    pub fn span(&self) -> tracing::Span {
        tracing::info_span!("request", id = %self.id, client = %self.address, otel.kind = "server")
    }
}

/// Looks at each request once.
pub async fn meet(
    State(door): State<Door>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    door.farewell.request_begins();
    let visitor = Visitor {
        address: door.proxies.client(peer.address.ip(), request.headers()),
        id: named(request.headers()),
    };
    let span = visitor.span();
    logs::join(&span, request.headers());
    request.extensions_mut().insert(visitor.clone());
    let answered = request_id::within(visitor.id.clone(), next.run(request));
    let mut response = answered.instrument(span).await;
    if door.farewell.has_begun() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Ok(id) = HeaderValue::from_str(visitor.id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The id that a request brings, if it is one that may stand in a log, or a new one.
fn named(headers: &HeaderMap) -> RequestId {
    let brought = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    brought.and_then(RequestId::parse).unwrap_or_else(RequestId::new)
}
