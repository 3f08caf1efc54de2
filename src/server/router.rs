//! The routes: `/graphql` (POST, GET, WebSocket, streams), `/healthz`, `/readyz`, `/metrics`, `/`.
//!
//! Owns how a request becomes an execution of the schema and how its answer is sent. WebSockets are [`super::sockets`]',
//! streams of answers [`crate::live::streams`]'.

use std::sync::Arc;

use async_graphql::parser::types::OperationType;
use async_graphql::{Request, Response as Answer, ServerError};
use async_graphql_axum::GraphQLProtocol;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::identity::DevClaims;
use super::metrics::Metrics;
use super::{dev_only, sockets};
use crate::app::App;
use crate::live::socket::Terms;
use crate::live::streams::{self, Spelling};
use crate::live::{Connections, Topics};

/// The largest document with its variables, in bytes.
const MAX_BODY: usize = 1 << 20;

/// What every route may need.
#[derive(Clone)]
pub struct Door {
    app: Arc<App>,
    metrics: Metrics,
    /// What sockets have in common.
    pub terms: Terms,
    /// Who is connected.
    pub connections: Connections,
}

/// All routes over one app.
pub fn router(app: Arc<App>, topics: Topics, connections: Connections) -> Router {
    Router::new()
        .route("/", get(|| async { Html(include_str!("../../web/index.html")) }))
        .route("/graphql", get(query_or_socket).post(post))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(|State(door): State<Door>| async move { door.metrics.shown() }),
        )
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn(dev_only::guard))
        .with_state(Door {
            metrics: Metrics::of(&app),
            terms: Terms {
                topics,
                live: app.settings.live_in_the_window(),
                attendance: app.attendance.clone(),
                identify: |payload| DevClaims::from_payload(payload).and_then(DevClaims::caller),
            },
            connections,
            app,
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

async fn post(State(door): State<Door>, headers: HeaderMap, body: Bytes) -> Response {
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
        Ok(request) => execute(&door, &headers, request).await,
        Err(error) => refused(
            StatusCode::BAD_REQUEST,
            &format!("the body is no GraphQL request: {error}"),
        ),
    }
}

async fn query_or_socket(
    State(door): State<Door>,
    headers: HeaderMap,
    uri: Uri,
    protocol: Result<GraphQLProtocol, StatusCode>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if let Ok(upgrade) = upgrade {
        return sockets::take(door, upgrade, protocol.ok());
    }
    let mut request = match linked(&uri) {
        Ok(request) => request,
        Err(reason) => return refused(StatusCode::BAD_REQUEST, &format!("no GraphQL request: {reason}")),
    };
    // A link must never change anything; to follow something changes nothing.
    let may = |ty| {
        ty == OperationType::Query
            || (ty == OperationType::Subscription && Spelling::wanted(&headers).is_some())
    };
    if let Ok(document) = request.parsed_query()
        && document
            .operations
            .iter()
            .any(|(_, operation)| !may(operation.node.ty))
    {
        return refused(StatusCode::METHOD_NOT_ALLOWED, "only queries may be sent by GET");
    }
    execute(&door, &headers, request).await
}

/// A request as a link bears it. (async-graphql's own reading knows no `operationName`.)
fn linked(uri: &Uri) -> Result<Request, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Link {
        #[serde(default)]
        query: String,
        operation_name: Option<String>,
        variables: Option<String>,
        extensions: Option<String>,
    }

    fn json<T: DeserializeOwned + Default>(name: &str, text: Option<String>) -> Result<T, String> {
        let text = text.filter(|text| !text.is_empty());
        let value = text.map(|text| serde_json::from_str(&text)).transpose();
        value
            .map(Option::unwrap_or_default)
            .map_err(|error| format!("{name}: {error}"))
    }

    let Query(link) = Query::<Link>::try_from_uri(uri).map_err(|error| error.body_text())?;
    let mut request = Request::new(link.query).variables(json("variables", link.variables)?);
    request.extensions = json("extensions", link.extensions)?;
    request.operation_name = link.operation_name.filter(|name| !name.is_empty());
    Ok(request)
}

async fn execute(door: &Door, headers: &HeaderMap, request: Request) -> Response {
    let caller = match DevClaims::from_headers(headers).and_then(DevClaims::caller) {
        Ok(caller) => caller,
        Err(reason) => return refused(StatusCode::BAD_REQUEST, &reason),
    };
    let topics = &door.terms.topics;
    let Some(spelling) = Spelling::wanted(headers) else {
        return Json(topics.api().execute(request.data(caller)).await).into_response();
    };
    match door.connections.admit(spelling.name()) {
        Some(connected) => streams::answer(spelling, request, caller, door.terms.clone(), connected),
        None => {
            let later = [(header::RETRY_AFTER, "5")];
            let refusal = refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many connections; try again later",
            );
            (later, refusal).into_response()
        }
    }
}

/// A refusal before execution, in the shape of a GraphQL answer.
fn refused(status: StatusCode, message: &str) -> Response {
    let mut error = ServerError::new(message, None);
    let code = match status {
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        _ => "BAD_USER_INPUT",
    };
    error.extensions.get_or_insert_default().set("code", code);
    (status, Json(Answer::from_errors(vec![error]))).into_response()
}
