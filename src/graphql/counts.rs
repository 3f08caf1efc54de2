//! What the API counts, as Prometheus reads it.
//!
//! Owns the metrics' names. Counted around the schema and not within it: with an extension async-graphql would call us for
//! every field.

use std::time::Duration;

use async_graphql::Response;
use async_graphql::parser::types::OperationType;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// What a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Kind {
    /// `query`, `mutation`, `subscription`, or `none` for what is no operation.
    pub operation: &'static str,
}

impl Kind {
    /// Of an operation; `None`: it could not be found out.
    pub fn of(operation: Option<OperationType>) -> Kind {
        let operation = match operation {
            Some(OperationType::Query) => "query",
            Some(OperationType::Mutation) => "mutation",
            Some(OperationType::Subscription) => "subscription",
            None => "none",
        };
        Kind { operation }
    }
}

/// What a request is and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    operation: &'static str,
    /// `OK`, or the code of the first error.
    outcome: &'static str,
}

/// What is counted; clones share it.
#[derive(Clone)]
pub struct Requests {
    answered: Family<Answered, Counter>,
    seconds: Family<Kind, Histogram, fn() -> Histogram>,
}

fn seconds() -> Histogram {
    Histogram::new([
        0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    ])
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            answered: Family::default(),
            seconds: Family::new_with_constructor(seconds),
        }
    }
}

impl Requests {
    /// A request was answered, or a subscription begun.
    pub fn count(&self, kind: Kind, response: Option<&Response>, took: Duration) {
        let operation = kind.operation;
        let outcome = response.map_or("OK", outcome);
        self.answered
            .get_or_create(&Answered { operation, outcome })
            .inc();
        self.seconds.get_or_create(&kind).observe(took.as_secs_f64());
    }

    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let requests = registry.sub_registry_with_prefix("tallyboard_requests");
        let help = "Operations answered and subscriptions begun, by kind and by OK or the first error's code";
        requests.register("answered", help, self.answered.clone());
        let help = "How long they took, from the parsed request to its answer";
        requests.register_with_unit("duration", help, Unit::Seconds, self.seconds.clone());
    }
}

/// Codes are few, and known here so that no caller can make up another label.
fn outcome(response: &Response) -> &'static str {
    const CODES: [&str; 8] = [
        "UNAUTHENTICATED",
        "FORBIDDEN",
        "BAD_USER_INPUT",
        "NOT_FOUND",
        "RATE_LIMITED",
        "UNAVAILABLE",
        "INTERNAL",
        "PERSISTED_QUERY_NOT_FOUND",
    ];
    let Some(error) = response.errors.first() else {
        return "OK";
    };
    let code = error
        .extensions
        .as_ref()
        .and_then(|extensions| extensions.get("code"));
    let known = CODES
        .into_iter()
        .find(|known| matches!(code, Some(async_graphql::Value::String(code)) if code == known));
    known.unwrap_or("OTHER")
}
