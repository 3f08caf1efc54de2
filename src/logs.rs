//! Logs: where they go and how they look.
//!
//! Owns what is set up once for the whole process: the filter, the format, and that panics are logged as everything else is.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config::{Log, LogFormat};

/// Why logs could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Somebody else was first.
    #[error("the log is set up already: {0}")]
    Twice(#[from] TryInitError),
}

/// Starts to log to standard error. `RUST_LOG` wins over the settings' level.
pub fn start(settings: &Log) -> Result<(), LogError> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(&settings.level));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match settings.format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .try_init()?;
    // A panic within a request is logged with that request's id.
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let said = panic.payload();
        let said = said
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| said.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("something that is no text");
        tracing::error!(at, said, "panicked");
    }));
    Ok(())
}
