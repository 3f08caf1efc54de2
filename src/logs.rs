//! Logs and traces: where they go and how they look.
//!
//! Owns what is set up once for the whole process: the filter, the format, that panics are logged as everything else is,
//! and the traces that are sent to a collector by OTLP, if one is named. A trace has a span for the request, one for each
//! operation in it and one for each call of Redis; without a collector only the first is made, for the log.

use std::env;
use std::io::IsTerminal;
use std::sync::OnceLock;

use axum::http::{HeaderMap, HeaderName};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config::{Log, LogFormat};

/// The variables by which OpenTelemetry names a collector everywhere.
const VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// Why logs could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Somebody else was first.
    #[error("the log is set up already: {0}")]
    Twice(#[from] TryInitError),
    /// No traces can be sent to where they should go.
    #[error("log.otlp_endpoint or OTEL_EXPORTER_OTLP_ENDPOINT: {0}; http://127.0.0.1:4318 would do")]
    Collector(#[from] ExporterBuildError),
}

/// What sends traces, as long as the process lives.
static TRACES: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Sends what was not sent yet, if the collector takes it. For the end of the process.
pub fn finish() {
    if let Some(Err(error)) = TRACES.get().map(SdkTracerProvider::shutdown) {
        tracing::warn!(%error, "the last traces were not sent");
    }
}

/// Starts to log to standard error. `RUST_LOG` wins over the settings' level.
pub fn start(settings: &Log) -> Result<(), LogError> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(&settings.level));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match settings.format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    let provider = collector(settings)?;
    let traces = provider.as_ref().map(|provider| {
        // What the exporter itself does must not be traced.
        let ours = Targets::new().with_target("tallyboard", tracing::Level::DEBUG);
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("tallyboard"));
        layer.with_filter(ours)
    });
    let subscriber = tracing_subscriber::registry();
    subscriber
        .with(lines.with_filter(filter))
        .with(traces)
        .try_init()?;
    std::panic::set_hook(Box::new(log_panic));
    if let Some(provider) = provider {
        TRACES.get_or_init(|| provider);
    }
    Ok(())
}

/// Makes a request's span a part of the trace that whoever sent it began (`traceparent`), if traces are sent.
pub fn join(span: &Span, headers: &HeaderMap) {
    struct Headers<'h>(&'h HeaderMap);

    impl Extractor for Headers<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.get(key)?.to_str().ok()
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(HeaderName::as_str).collect()
        }
    }

    if TRACES.get().is_some() && headers.contains_key("traceparent") {
        let begun = TraceContextPropagator::new().extract(&Headers(headers));
        if let Err(error) = span.set_parent(begun) {
            tracing::debug!(%error, "a trace that goes on by itself");
        }
    }
}

/// What sends traces, if the settings or the environment name a collector.
fn collector(settings: &Log) -> Result<Option<SdkTracerProvider>, LogError> {
    let exporter = SpanExporter::builder().with_http();
    let exporter = match settings.otlp_endpoint.trim_end_matches('/') {
        "" if VARIABLES.iter().all(|name| env::var_os(name).is_none()) => return Ok(None),
        "" => exporter,
        endpoint => exporter.with_endpoint(format!("{endpoint}/v1/traces")),
    };
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter.build()?)
        .with_resource(Resource::builder().with_service_name("tallyboard").build());
    Ok(Some(provider.build()))
}

/// A panic within a request is logged with that request's id.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let at = panic.location().map(ToString::to_string);
    let said = panic.payload();
    let said = said
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| said.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("something that is no text");
    tracing::error!(at, said, "panicked");
}
