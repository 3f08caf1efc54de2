//! The routes: `/graphql` (POST, GET, WebSocket), `/healthz`, `/readyz`, `/`.
//!
//! Owns how a request becomes an execution of the schema and how its answer is sent.

use std::sync::Arc;

use async_graphql::http::{ALL_WEBSOCKET_PROTOCOLS, parse_query_string};
use async_graphql::parser::types::OperationType;
use async_graphql::{Data, Request, Response as Answer, ServerError};
use async_graphql_axum::{GraphQLProtocol, GraphQLWebSocket};
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{DefaultBodyLimit, FromRef, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use tokio::sync::watch;

use super::dev_only;
use super::identity::DevClaims;
use crate::app::App;
use crate::graphql::TallyboardSchema;

/// The largest document with its variables, in bytes.
const MAX_BODY: usize = 1 << 20;

#[derive(Clone)]
struct Door {
    app: Arc<App>,
    schema: TallyboardSchema,
    stopping: watch::Receiver<bool>,
}

impl FromRef<Door> for TallyboardSchema {
    fn from_ref(door: &Door) -> TallyboardSchema {
        door.schema.clone()
    }
}

/// All routes over one app.
pub fn router(app: Arc<App>, schema: TallyboardSchema, stopping: watch::Receiver<bool>) -> Router {
    Router::new()
        .route("/", get(|| async { Html(include_str!("../../web/index.html")) }))
        .route("/graphql", get(query_or_socket).post(post))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn(dev_only::guard))
        .with_state(Door {
            app,
            schema,
            stopping,
        })
}

async fn ready(State(door): State<Door>) -> Response {
    let troubles = door.app.troubles();
    let status = if troubles.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        Json(serde_json::json!({ "ready": troubles.is_empty(), "troubles": troubles })),
    )
        .into_response()
}

async fn post(State(schema): State<TallyboardSchema>, headers: HeaderMap, body: Bytes) -> Response {
    let json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    if !json.to_ascii_lowercase().starts_with("application/json") {
        return refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send the request as application/json",
        );
    }
    match serde_json::from_slice::<Request>(&body) {
        Ok(request) => execute(&schema, &headers, request).await,
        Err(error) => refused(
            StatusCode::BAD_REQUEST,
            &format!("the body is no GraphQL request: {error}"),
        ),
    }
}

async fn query_or_socket(
    State(door): State<Door>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    protocol: Result<GraphQLProtocol, StatusCode>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if let (Ok(protocol), Ok(upgrade)) = (protocol, upgrade) {
        return upgrade
            .protocols(ALL_WEBSOCKET_PROTOCOLS)
            .on_upgrade(move |stream| serve_socket(door, protocol, stream));
    }
    let mut request = match parse_query_string(&query.unwrap_or_default()) {
        Ok(request) => request,
        Err(error) => return refused(StatusCode::BAD_REQUEST, &format!("no GraphQL request: {error}")),
    };
    // A link must never change anything.
    if let Ok(document) = request.parsed_query()
        && document
            .operations
            .iter()
            .any(|(_, operation)| operation.node.ty != OperationType::Query)
    {
        return refused(StatusCode::METHOD_NOT_ALLOWED, "only queries may be sent by GET");
    }
    execute(&door.schema, &headers, request).await
}

async fn serve_socket(door: Door, protocol: GraphQLProtocol, stream: axum::extract::ws::WebSocket) {
    let Door {
        schema, mut stopping, ..
    } = door;
    let socket = GraphQLWebSocket::new(stream, schema, protocol).on_connection_init(|payload| async {
        let caller = DevClaims::from_payload(payload).and_then(DevClaims::caller)?;
        let mut data = Data::default();
        data.insert(caller);
        Ok(data)
    });
    tokio::select! {
        () = socket.serve() => {}
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}

async fn execute(schema: &TallyboardSchema, headers: &HeaderMap, request: Request) -> Response {
    match DevClaims::from_headers(headers).and_then(DevClaims::caller) {
        Ok(caller) => Json(schema.execute(request.data(caller)).await).into_response(),
        Err(reason) => refused(StatusCode::BAD_REQUEST, &reason),
    }
}

/// A refusal before execution, in the shape of a GraphQL answer.
fn refused(status: StatusCode, message: &str) -> Response {
    let mut error = ServerError::new(message, None);
    error
        .extensions
        .get_or_insert_default()
        .set("code", "BAD_USER_INPUT");
    (status, Json(Answer::from_errors(vec![error]))).into_response()
}
