//! The four servers, each a process of its own with one thread on a core of its own.

use std::net::SocketAddr;

use tempfile::TempDir;

use crate::compared::{REDIS_URL, ROLE};
use crate::process::{self, Owned};
use crate::store::Redis;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// Handlers written by hand: JSON in, the same use case, JSON out.
    Hand,
    /// `tallyboard serve`.
    Ours,
    /// Our schema behind async-graphql-axum as its documentation shows it.
    Stock,
    /// GraphQL Yoga with ioredis.
    Node,
}

impl Contender {
    pub fn named(name: &str) -> Contender {
        let all = [
            Contender::Hand,
            Contender::Ours,
            Contender::Stock,
            Contender::Node,
        ];
        let found = all.into_iter().find(|contender| contender.name() == name.trim());
        found.unwrap_or_else(|| panic!("{name:?} is none of hand, ours, stock, node"))
    }

    pub fn name(self) -> &'static str {
        match self {
            Contender::Hand => "hand",
            Contender::Ours => "ours",
            Contender::Stock => "stock",
            Contender::Node => "node",
        }
    }
}

/// A contender that listens.
pub struct Server {
    process: Owned,
    pub address: SocketAddr,
    _dir: TempDir,
}

impl Server {
    pub fn start(contender: Contender, redis: &Redis) -> Server {
        let dir = TempDir::new().unwrap();
        let settings = format!(
            "[redis]\nurl = {:?}\ntimeout_ms = 10000\n[[board]]\nid = \"points\"\n",
            redis.url()
        );
        let mut command = match contender {
            Contender::Ours => process::tallyboard(dir.path(), &settings),
            Contender::Node => process::node("requests.mjs"),
            Contender::Hand | Contender::Stock => {
                let mut command = process::on_servers_core(std::env::current_exe().unwrap());
                command.env(ROLE, contender.name());
                command
            }
        };
        command
            .env(REDIS_URL, redis.url())
            .env("TOKIO_WORKER_THREADS", "1");
        let (process, address) = process::listening(command, contender.name());
        Server {
            process,
            address,
            _dir: dir,
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}
