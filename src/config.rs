//! Settings: every section and key that the server reads, their defaults, and how they are gathered.
//!
//! Owns names and defaults (`docs/tallyboard.example.toml` shows them all). What a value *means* is its feature's:
//! board plans are checked by [`crate::leaderboard::Boards`], zones by [`crate::day`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::NaiveTime;
use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use crate::day::Zone;
use crate::server::origins::Origins;
use crate::server::proxies::Proxies;

mod secret;
mod sections;
mod unreadable;

pub use secret::Secret;
pub use sections::*;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file, variable or flag could not be read as settings.
    #[error("{}", unreadable::in_words(.0))]
    Unreadable(Box<figment::Error>),
    /// The named file is not there.
    #[error("there is no configuration file {0}")]
    NoFile(PathBuf),
    /// A value is well-formed but cannot work.
    #[error("{key}: {reason}")]
    Unusable {
        /// The key, as `section.key`.
        key: String,
        /// What is wrong and what would be right.
        reason: String,
    },
}

impl ConfigError {
    pub(crate) fn unusable(key: impl Into<String>, reason: impl Into<String>) -> ConfigError {
        ConfigError::Unusable {
            key: key.into(),
            reason: reason.into(),
        }
    }
}

/// What the names of environment variables begin with.
const PREFIX: &str = "TALLYBOARD_";

/// Flags that win over the file and the environment.
#[derive(Debug, Default, Clone)]
pub struct Overrides {
    /// `--data-dir`
    pub data_dir: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<SocketAddr>,
}

impl Settings {
    /// Reads defaults, then `file`, then `TALLYBOARD_…` variables, then flags; later ones win.
    pub fn load(file: Option<&Path>, flags: &Overrides) -> Result<Settings, ConfigError> {
        let mut figment = Figment::from(Serialized::defaults(Settings::default()));
        if let Some(file) = file {
            if !file.is_file() {
                return Err(ConfigError::NoFile(file.to_owned()));
            }
            figment = figment.merge(Toml::file_exact(file));
        }
        figment = figment.merge(Env::prefixed(PREFIX).split("__"));
        if let Some(dir) = &flags.data_dir {
            figment = figment.merge(Serialized::default("server.data_dir", dir));
        }
        if let Some(listen) = flags.listen {
            figment = figment.merge(Serialized::default("server.listen", listen));
        }
        let settings: Settings = figment
            .extract()
            .map_err(|error| ConfigError::Unreadable(Box::new(error)))?;
        settings.check()?;
        Ok(settings)
    }

    /// The zone that decides which date an instant belongs to.
    pub fn zone(&self) -> Result<Zone, ConfigError> {
        let tz = self.day.time_zone.parse().map_err(|_| {
            let reason = format!(
                "{:?} is no IANA time zone; Europe/Berlin or UTC would be",
                self.day.time_zone
            );
            ConfigError::unusable("day.time_zone", reason)
        })?;
        let starts_at = NaiveTime::parse_from_str(&self.day.starts_at, "%H:%M").map_err(|_| {
            let reason = format!("{:?} is no time of day; 04:00 would be", self.day.starts_at);
            ConfigError::unusable("day.starts_at", reason)
        })?;
        Ok(Zone::new(tz, starts_at))
    }

    /// The settings of live push, with sockets pinged at least twice in the window of presence: a socket that goes without
    /// a word is then found out, and its user off, within it.
    pub fn live_in_the_window(&self) -> Live {
        let mut live = self.live.clone();
        let twice = u64::from(self.presence.window_seconds) / 2;
        live.ping_seconds = live.ping_seconds.min(twice.max(1));
        live
    }

    /// How long a call to Redis may take, its retry included, so that whoever asked is answered within `redis.timeout_ms`.
    pub fn redis_timeout(&self) -> Duration {
        Duration::from_millis(self.redis.timeout_ms) * 9 / 10
    }

    /// Refuses what no feature could work with. Boards are checked where they are planned.
    fn check(&self) -> Result<(), ConfigError> {
        self.zone()?;
        if !self.redis.partitions.is_power_of_two() || self.redis.partitions > 1024 {
            let reason = format!("{} is not a power of two from 1 to 1024", self.redis.partitions);
            return Err(ConfigError::unusable("redis.partitions", reason));
        }
        let prefix = &self.redis.prefix;
        if prefix.is_empty() || prefix.len() > 32 || !prefix.bytes().all(|c| c.is_ascii_alphanumeric()) {
            return Err(ConfigError::unusable(
                "redis.prefix",
                "has 1 to 32 letters and digits",
            ));
        }
        within("redis.timeout_ms", self.redis.timeout_ms as i64, 10, 60_000)?;
        within("checkin.keep_years", self.checkin.keep_years.into(), 0, 50)?;
        within("checkin.weekly_bonus", self.checkin.weekly_bonus, 0, MAX_REWARD)?;
        if self.checkin.cycle.is_empty() || self.checkin.cycle.len() > 366 {
            return Err(ConfigError::unusable(
                "checkin.cycle",
                "has 1 to 366 entries, one for each day of the cycle",
            ));
        }
        for points in &self.checkin.cycle {
            within("checkin.cycle", *points, 0, MAX_REWARD)?;
        }
        for milestone in &self.checkin.milestone {
            within("checkin.milestone.streak", milestone.streak.into(), 1, 100_000)?;
            within("checkin.milestone.points", milestone.points, 0, MAX_REWARD)?;
            within(
                "checkin.milestone.make_up_cards",
                milestone.make_up_cards.into(),
                0,
                1_000,
            )?;
        }
        for (key, days) in [
            ("retention.day_boards_days", self.retention.day_boards_days),
            ("retention.week_boards_days", self.retention.week_boards_days),
            ("retention.month_boards_days", self.retention.month_boards_days),
        ] {
            within(key, days.into(), 0, 36_600)?;
        }
        within("makeup.window_days", self.makeup.window_days.into(), 0, 366)?;
        within(
            "presence.window_seconds",
            self.presence.window_seconds.into(),
            3,
            86_400,
        )?;
        let window = self.presence.window_seconds;
        let whole_minutes = window.is_multiple_of(60) && window <= 3_600;
        if self.presence.mode == PresenceMode::Count && !whole_minutes {
            let reason = format!(
                "{window} is not within 60 to 3600 in whole minutes, by which presence.mode = \"count\" goes"
            );
            return Err(ConfigError::unusable("presence.window_seconds", reason));
        }
        for (key, most) in [
            ("presence.max_rooms_per_user", self.presence.max_rooms_per_user),
            (
                "presence.max_sessions_per_user",
                self.presence.max_sessions_per_user,
            ),
        ] {
            within(key, most.into(), 1, 1_000)?;
        }
        within("analytics.keep_days", self.analytics.keep_days.into(), 1, 36_600)?;
        self.server.check()?;
        self.log.check()?;
        self.live.check()?;
        self.graphql.check()?;
        self.auth.check()?;
        self.check_what_is_to_come()
    }

    /// A key that is read but not served yet must not look as if it worked.
    fn check_what_is_to_come(&self) -> Result<(), ConfigError> {
        let defaults = Settings::default();
        if self.ledger.max_lag != defaults.ledger.max_lag {
            return Err(ConfigError::unusable(
                "ledger.max_lag",
                "cannot be set yet; leave it out",
            ));
        }
        if self.redis.url.contains(',') {
            return Err(ConfigError::unusable(
                "redis.url",
                "several nodes (Redis Cluster) are not supported yet; name one",
            ));
        }
        if !self.ledger.url.is_empty() {
            return Err(ConfigError::unusable(
                "ledger.url",
                "there is no ledger yet; leave it empty",
            ));
        }
        Ok(())
    }
}

fn within(key: &str, value: i64, low: i64, high: i64) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        let reason = format!("{value} is not within {low} to {high}");
        Err(ConfigError::unusable(key, reason))
    }
}

impl Server {
    fn check(&self) -> Result<(), ConfigError> {
        self.metrics_address()?;
        Proxies::parse(&self.trusted_proxies)?;
        Origins::parse(&self.cors_origins)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        let segments = self.base_path.strip_prefix('/').unwrap_or("//").split('/');
        let mut segments = segments.filter(|_| self.base_path != "/");
        if segments.all(|part| !part.is_empty() && part.chars().all(plain)) {
            return Ok(());
        }
        let reason = format!("{:?} is no path; \"/\" or \"/tally\" would be", self.base_path);
        Err(ConfigError::unusable("server.base_path", reason))
    }

    /// Where metrics have a listener of their own, if they have.
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        if self.metrics_listen.is_empty() {
            return Ok(None);
        }
        self.metrics_listen.parse().map(Some).map_err(|_| {
            let reason = format!(
                "{:?} is no address and port; 127.0.0.1:9090 would be, or nothing for the main listener",
                self.metrics_listen
            );
            ConfigError::unusable("server.metrics_listen", reason)
        })
    }

    /// A path of ours as clients see it, under the base path.
    pub fn under_base(&self, path: &str) -> String {
        format!("{}{path}", self.base_path.trim_end_matches('/'))
    }
}

impl Log {
    fn check(&self) -> Result<(), ConfigError> {
        EnvFilter::try_new(&self.level).map(drop).map_err(|error| {
            let reason = format!(
                "{:?} is no filter ({error}); info or info,tallyboard=debug would be",
                self.level
            );
            ConfigError::unusable("log.level", reason)
        })
    }
}

impl Live {
    fn check(&self) -> Result<(), ConfigError> {
        within("live.interval_ms", self.interval_ms as i64, 1, 60_000)?;
        within("live.max_sockets", self.max_sockets as i64, 1, 1_000_000)?;
        within("live.max_subscriptions", self.max_subscriptions as i64, 1, 10_000)?;
        within(
            "live.max_message_bytes",
            self.max_message_bytes as i64,
            1_024,
            16 << 20,
        )?;
        within(
            "live.init_timeout_seconds",
            self.init_timeout_seconds as i64,
            1,
            60,
        )?;
        // Proxies often give up on a connection that is silent for 30 s.
        within("live.ping_seconds", self.ping_seconds as i64, 1, 25)?;
        within(
            "live.send_timeout_seconds",
            self.send_timeout_seconds as i64,
            1,
            300,
        )
    }
}

impl GraphQl {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, value, low, high) in [
            ("graphql.max_body_bytes", self.max_body_bytes, 1_024, 64 << 20),
            ("graphql.max_batch", self.max_batch, 1, 1_000),
            ("graphql.max_tokens", self.max_tokens, 100, 20_000),
            ("graphql.max_depth", self.max_depth, 2, 100),
            ("graphql.max_fields", self.max_fields, 10, 100_000),
            ("graphql.max_aliases", self.max_aliases, 0, 100_000),
            ("graphql.max_directives", self.max_directives, 0, 100_000),
            ("graphql.max_complexity", self.max_complexity, 100, 10_000_000),
        ] {
            within(key, value as i64, low, high)?;
        }
        match (self.persisted, self.documents_file.is_empty()) {
            (Persisted::Only, true) => Err(ConfigError::unusable(
                "graphql.documents_file",
                "names the documents that graphql.persisted = \"only\" serves; set it",
            )),
            (Persisted::Off, false) => Err(ConfigError::unusable(
                "graphql.documents_file",
                "is of no use with graphql.persisted = \"off\"; leave it out, or set \"automatic\" or \"only\"",
            )),
            _ => Ok(()),
        }
    }
}

impl Auth {
    /// What can be said without reading key files.
    fn check(&self) -> Result<(), ConfigError> {
        within("auth.leeway_seconds", self.leeway_seconds.into(), 0, 300)?;
        let keys = [
            ("auth.jwt_secret", self.jwt_secret.is_empty()),
            ("auth.jwt_secret_file", self.jwt_secret_file.is_empty()),
            ("auth.jwt_key_file", self.jwt_key_file.is_empty()),
        ];
        let mut set = keys.iter().filter(|(_, empty)| !empty).map(|(key, _)| key);
        if let (Some(one), Some(other)) = (set.next(), set.next()) {
            let reason = format!(
                "cannot be set beside {one}: tokens are signed by one kind of key; leave one of them out"
            );
            return Err(ConfigError::unusable(*other, reason));
        }
        for (key, claim) in [
            ("auth.user_claim", &self.user_claim),
            ("auth.role_claim", &self.role_claim),
        ] {
            if claim.is_empty() {
                return Err(ConfigError::unusable(key, "names a claim; it is not empty"));
            }
        }
        if self.user_claim == self.role_claim {
            let reason = format!(
                "is {:?}, as auth.user_claim is; they are two claims",
                self.role_claim
            );
            return Err(ConfigError::unusable("auth.role_claim", reason));
        }
        Ok(())
    }
}

/// The largest reward of one rule, in points: far below what a wallet holds, so that sums stay exact.
const MAX_REWARD: i64 = 1_000_000_000;
