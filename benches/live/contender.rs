//! The four servers, each a process of its own on a core of its own.

use std::fmt::Write as _;
use std::net::SocketAddr;

use tempfile::TempDir;

use crate::compared::{CHANNEL, REDIS_SOCKET, ROLE};
use crate::process::{self, Owned};
use crate::state;
use crate::store::Redis;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// `tallyboard serve`.
    Ours,
    /// async-graphql with its stock transport.
    Stock,
    /// One message written to all sockets: the limit.
    Shared,
    /// The usual Node stack.
    Node,
}

impl Contender {
    pub fn named(name: &str) -> Contender {
        let all = [
            Contender::Ours,
            Contender::Stock,
            Contender::Shared,
            Contender::Node,
        ];
        let found = all.into_iter().find(|contender| contender.name() == name.trim());
        found.unwrap_or_else(|| panic!("{name:?} is none of ours, stock, shared, node"))
    }

    pub fn name(self) -> &'static str {
        match self {
            Contender::Ours => "ours",
            Contender::Stock => "stock",
            Contender::Shared => "shared",
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
    pub fn start(contender: Contender, redis: &Redis, boards: &[String]) -> Server {
        let dir = TempDir::new().unwrap();
        let mut command = match contender {
            Contender::Ours => process::tallyboard(dir.path(), &settings(redis, boards)),
            Contender::Node => {
                let mut command = process::node("server.mjs");
                command.arg(state::for_node()).env("CHANNEL", CHANNEL);
                command
            }
            Contender::Stock | Contender::Shared => {
                let mut command = process::on_servers_core(std::env::current_exe().unwrap());
                command.env(ROLE, contender.name());
                command
            }
        };
        command.env(REDIS_SOCKET, redis.socket());
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

fn settings(redis: &Redis, boards: &[String]) -> String {
    let mut settings = format!("[redis]\nurl = {:?}\ntimeout_ms = 10000\n", redis.url());
    for board in boards {
        write!(settings, "[[board]]\nid = {board:?}\n").unwrap();
    }
    settings
}
