//! The routes: `/graphql` (POST, GET, WebSocket, streams), `/healthz`, `/readyz`, `/metrics`, `/`.
//!
//! Owns which path leads where. What is done there is [`super::over_http`]'s and its neighbours'.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};

use super::farewell::Farewell;
use super::metrics::Metrics;
use super::origins::Origins;
use super::proxies::Proxies;
use super::{dev_only, dev_token, over_http, pages, security, visitor};
use crate::app::App;
use crate::live::Connections;
use crate::live::socket::Terms;

/// What every route may need.
#[derive(Clone)]
pub struct Door {
    /// What is served.
    pub app: Arc<App>,
    /// What is counted.
    pub metrics: Metrics,
    /// What sockets have in common.
    pub terms: Terms,
    /// Whether the server is about to stop.
    pub farewell: Farewell,
    /// Who is connected.
    pub connections: Connections,
    /// Whose word is taken for where a request comes from.
    pub proxies: Proxies,
    /// Whose pages may call.
    pub origins: Origins,
}

/// All routes, under the path that a proxy serves us at.
pub fn router(door: Door) -> Router {
    let settings = &door.app.settings;
    let at = |path: &str| settings.server.under_base(path);
    let mut routes = Router::new()
        .merge(pages::routes(&settings.server))
        .route(
            &at("/graphql"),
            get(over_http::query_or_socket).post(over_http::post),
        )
        .route(&at("/healthz"), get(|| async { "ok\n" }))
        .route(&at("/readyz"), get(ready))
        .layer(DefaultBodyLimit::max(settings.graphql.max_body_bytes));
    if settings.server.metrics_listen.is_empty() {
        routes = routes.route(
            &at("/metrics"),
            get(|State(door): State<Door>| async move { door.metrics.shown() }),
        );
    }
    if door.terms.identity.is_dev() {
        routes = routes
            .route(&at("/dev/token"), dev_token::route())
            .layer(middleware::from_fn(dev_only::guard));
    }
    if let Some(cors) = door.origins.layer() {
        routes = routes.layer(cors);
    }
    routes
        .layer(middleware::from_fn_with_state(door.clone(), visitor::meet))
        .layer(middleware::map_response(security::told))
        .with_state(door)
}

/// What a listener of its own for metrics serves.
pub fn metrics_only(metrics: Metrics) -> Router {
    Router::new()
        .route("/metrics", get(|| async move { metrics.shown() }))
        .layer(middleware::map_response(security::told))
}

async fn ready(State(door): State<Door>) -> Response {
    let troubles = door.app.troubles();
    let needs = door.app.needs().into_iter();
    let checks: BTreeMap<_, _> = needs
        .map(|(name, trouble)| (name, trouble.unwrap_or("ok")))
        .collect();
    let status = if troubles.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        Json(serde_json::json!({ "ready": troubles.is_empty(), "checks": checks, "troubles": troubles })),
    )
        .into_response()
}
