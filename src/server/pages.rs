//! What a browser gets: the page at `/`, compiled in.
//!
//! Owns which file lies at which path.

use axum::http::header;
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::{Router, get};

use super::router::Door;
use crate::config;

/// The routes of the pages, under the base path.
pub fn routes(server: &config::Server) -> Router<Door> {
    let at = |path: &str| server.under_base(path);
    let asset = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text).into_response() })
    };
    let routes = Router::new()
        .route(
            &at("/"),
            get(|| async { Html(include_str!("../../web/index.html")) }),
        )
        .route(
            &at("/index.css"),
            asset("text/css; charset=utf-8", include_str!("../../web/index.css")),
        )
        .route(
            &at("/index.js"),
            asset(
                "text/javascript; charset=utf-8",
                include_str!("../../web/index.js"),
            ),
        );
    if at("/") == "/" {
        return routes;
    }
    // Links on the page are relative, so it must lie within its directory.
    let home = Redirect::permanent(&at("/"));
    routes.route(&server.base_path, get(|| async { home }))
}
