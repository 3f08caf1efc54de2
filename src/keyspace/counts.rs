//! What the way to Redis and the keeper count, as Prometheus reads it.
//!
//! Owns the metrics' names.

use std::time::Duration;

use chrono::{DateTime, Utc};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// What was asked of Redis: the first script of a request by its file's name, or `commands`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Asked {
    /// Its name.
    pub script: &'static str,
}

/// What is counted; clones share it.
#[derive(Clone)]
pub struct Counts {
    seconds: Family<Asked, Histogram, fn() -> Histogram>,
    failed: Family<Asked, Counter>,
    turns: Counter,
    last_turn: Gauge,
    batches: Counter,
    deleted: Counter,
}

fn seconds() -> Histogram {
    Histogram::new([
        0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5,
    ])
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            seconds: Family::new_with_constructor(seconds),
            failed: Family::default(),
            turns: Counter::default(),
            last_turn: Gauge::default(),
            batches: Counter::default(),
            deleted: Counter::default(),
        }
    }
}

impl Counts {
    /// Redis was asked, a try again included.
    pub(super) fn asked(&self, script: &'static str, took: Duration, failed: bool) {
        let asked = Asked { script };
        self.seconds.get_or_create(&asked).observe(took.as_secs_f64());
        if failed {
            self.failed.get_or_create(&asked).inc();
        }
    }

    /// The keeper has done a step, by which so many keys went.
    pub fn step(&self, keys: usize) {
        self.batches.inc();
        self.deleted.inc_by(keys as u64);
    }

    /// The keeper has been everywhere that is its to look after.
    pub fn turned(&self, now: DateTime<Utc>) {
        self.turns.inc();
        self.last_turn.set(now.timestamp());
    }

    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let redis = registry.sub_registry_with_prefix("tallyboard_redis");
        let help = "How long Redis took for a request, tries again included, by its first script";
        redis.register_with_unit("call", help, Unit::Seconds, self.seconds.clone());
        let help = "Requests that Redis did not answer, or not in time";
        redis.register("failed", help, self.failed.clone());
        let keeper = registry.sub_registry_with_prefix("tallyboard_keeper");
        keeper.register(
            "turns",
            "Times that this node has looked after its partitions",
            self.turns.clone(),
        );
        let help = "When it last did, in seconds since 1970; 0: never";
        keeper.register_with_unit("last_turn", help, Unit::Seconds, self.last_turn.clone());
        keeper.register(
            "batches",
            "Steps of deleting, trimming and building",
            self.batches.clone(),
        );
        let help = "Keys that were taken away";
        keeper.register("deleted_keys", help, self.deleted.clone());
    }
}
