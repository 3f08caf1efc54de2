//! The routes: `/graphql` (POST, GET, WebSocket, streams), `/healthz`, `/readyz`, `/metrics`, `/`.
//!
//! Owns which path leads where. What is done there is [`super::over_http`]'s and its neighbours'.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};

use super::metrics::Metrics;
use super::{dev_only, dev_token, over_http};
use crate::app::App;
use crate::auth::Identity;
use crate::live::socket::Terms;
use crate::live::{Connections, Topics};

/// What every route may need.
#[derive(Clone)]
pub struct Door {
    /// What is served.
    pub app: Arc<App>,
    metrics: Metrics,
    /// What sockets have in common.
    pub terms: Terms,
    /// Who is connected.
    pub connections: Connections,
}

/// All routes over one app.
pub fn router(app: Arc<App>, topics: Topics, connections: Connections, identity: Identity) -> Router {
    let routes = Router::new()
        .route("/", get(|| async { Html(include_str!("../../web/index.html")) }))
        .route("/graphql", get(over_http::query_or_socket).post(over_http::post))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(|State(door): State<Door>| async move { door.metrics.shown() }),
        )
        .layer(DefaultBodyLimit::max(app.settings.graphql.max_body_bytes));
    let routes = match identity.is_dev() {
        true => routes
            .merge(dev_token::route())
            .layer(middleware::from_fn(dev_only::guard)),
        false => routes,
    };
    routes.with_state(Door {
        metrics: Metrics::of(&app),
        terms: Terms {
            topics,
            live: app.settings.live_in_the_window(),
            attendance: app.attendance.clone(),
            identity,
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
