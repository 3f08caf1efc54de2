//! An app over a private Redis of its own.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use redis::aio::MultiplexedConnection;
use tallyboard::app::{App, Backing};
use tallyboard::clock::Clock;
use tallyboard::config::{Durability, Settings};

pub struct Bench {
    pub app: Arc<App>,
    pub clock: Clock,
    pub redis: MultiplexedConnection,
    backing: Backing,
    _dir: tempfile::TempDir,
}

impl Bench {
    pub async fn start(now: &str, change: impl FnOnce(&mut Settings)) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.server.data_dir = dir.path().join("data");
        settings.redis.durability = Durability::EverySec;
        settings.redis.timeout_ms = 60_000;
        change(&mut settings);
        let backing = Backing::start(&settings).await.unwrap();
        let now: DateTime<Utc> = now.parse().unwrap();
        let clock = Clock::manual(now);
        let app = App::open(settings, clock.clone(), &backing).await.unwrap();
        let client = redis::Client::open(backing.address().clone()).unwrap();
        let redis = client.get_multiplexed_async_connection().await.unwrap();
        Bench {
            app,
            clock,
            redis,
            backing,
            _dir: dir,
        }
    }

    pub async fn stop(self) {
        drop(self.app);
        self.backing.stop().await;
    }

    pub async fn command<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.redis).await.unwrap()
    }

    /// Redis' memory in use, in bytes.
    pub async fn used(&mut self) -> i64 {
        let info: String = self.command(&["INFO", "memory"]).await;
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.unwrap().trim().parse().unwrap()
    }
}
