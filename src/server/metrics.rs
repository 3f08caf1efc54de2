//! `/metrics`: what Prometheus scrapes.
//!
//! Owns the registry and its encoding. What is counted is each part's own.

use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::app::App;
use crate::graphql::counts::Requests;
use crate::rate::Rates;
use crate::sampled::Sampled;

/// Everything that a server counts.
#[derive(Clone)]
pub struct Metrics(Arc<Registry>);

impl Metrics {
    /// The metrics of an app.
    pub fn of(app: &App, rates: &Rates, requests: &Requests, sampled: &Sampled) -> Metrics {
        let mut registry = Registry::default();
        app.gauges.register(&mut registry);
        rates.register(&mut registry);
        requests.register(&mut registry);
        app.keyspace.counts().register(&mut registry);
        sampled.register(&mut registry);
        Metrics(Arc::new(registry))
    }

    /// As OpenMetrics text, which Prometheus reads.
    pub fn shown(&self) -> Response {
        let mut out = String::new();
        match text::encode(&mut out, &self.0) {
            Ok(()) => {
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                ([(header::CONTENT_TYPE, kind)], out).into_response()
            }
            Err(error) => {
                tracing::error!(%error, "the metrics cannot be written");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}
