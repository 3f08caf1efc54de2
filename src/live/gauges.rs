//! What live push counts, as Prometheus reads it.
//!
//! Owns the metrics' names. Who moves them is whoever does what they count.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A number that goes up and down.
pub type Level = Gauge<i64, AtomicI64>;

/// By which protocol somebody is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Over {
    /// Its name.
    pub protocol: &'static str,
}

/// What live push counts.
pub struct Gauges {
    /// Open connections that hear updates, by protocol.
    pub sockets: Family<Over, Level>,
    /// Subscriptions on them.
    pub subscriptions: Level,
    /// Topics that are executed for them.
    pub topics: Level,
    /// From the first change heard to the bytes that tell of it.
    pub lag: Histogram,
    /// Updates handed to sockets and streams.
    pub delivered: Counter,
    /// Connections closed because the client did not take what was sent.
    pub dropped: Counter,
    /// Times that changes may have been missed and everybody got the full state.
    pub resyncs: Counter,
    /// 1 while changes in Redis are not heard.
    pub deaf: Level,
}

impl Default for Gauges {
    fn default() -> Gauges {
        let lag = [
            0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
        ];
        Gauges {
            sockets: Family::default(),
            subscriptions: Level::default(),
            topics: Level::default(),
            lag: Histogram::new(lag),
            delivered: Counter::default(),
            dropped: Counter::default(),
            resyncs: Counter::default(),
            deaf: Level::default(),
        }
    }
}

impl Gauges {
    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let live = registry.sub_registry_with_prefix("tallyboard_live");
        live.register(
            "sockets",
            "Open connections that hear updates",
            self.sockets.clone(),
        );
        live.register(
            "subscriptions",
            "Subscriptions on them",
            self.subscriptions.clone(),
        );
        live.register(
            "topics",
            "Operations executed for them, each once for all its subscribers",
            self.topics.clone(),
        );
        live.register(
            "lag_seconds",
            "From the first change heard to the bytes that tell of it",
            self.lag.clone(),
        );
        live.register(
            "delivered",
            "Updates handed to connections",
            self.delivered.clone(),
        );
        live.register(
            "dropped",
            "Connections closed because the client did not take what was sent",
            self.dropped.clone(),
        );
        live.register(
            "resyncs",
            "Times that changes may have been missed and everybody got the full state",
            self.resyncs.clone(),
        );
        live.register(
            "deaf",
            "1 while changes in Redis are not heard",
            self.deaf.clone(),
        );
    }
}

/// One more of something, as long as this lives.
pub struct Counted(Level);

impl Counted {
    /// Counts one more.
    pub fn one(level: &Level) -> Counted {
        level.inc();
        Counted(level.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
