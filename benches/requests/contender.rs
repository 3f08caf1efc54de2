//! The four servers, each a process of its own with one thread on a core of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::compared::{REDIS_URL, ROLE};
use crate::process::{Owned, on_servers_core};
use crate::store::Redis;

/// At noon of a fixed day, so that no period turns meanwhile.
pub const NOW: &str = "2027-06-15T12:00:00Z";

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
        let mut command = match contender {
            Contender::Ours => tallyboard(dir.path(), redis),
            Contender::Node => node(),
            Contender::Hand | Contender::Stock => {
                let mut command = on_servers_core(std::env::current_exe().unwrap());
                command.env(ROLE, contender.name());
                command
            }
        };
        command
            .env(REDIS_URL, redis.url())
            .env("TOKIO_WORKER_THREADS", "1");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let process = Owned(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{} said {line:?}", contender.name()));
        Server {
            process,
            address: address.parse().unwrap(),
            _dir: dir,
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

fn tallyboard(dir: &Path, redis: &Redis) -> Command {
    let settings = format!(
        "[redis]\nurl = {:?}\ntimeout_ms = 10000\n[[board]]\nid = \"points\"\n",
        redis.url()
    );
    let file = dir.join("tallyboard.toml");
    std::fs::write(&file, settings).unwrap();
    let mut command = on_servers_core(env!("CARGO_BIN_EXE_tallyboard"));
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--now", NOW]);
    command
        .arg("--config")
        .arg(file)
        .arg("--data-dir")
        .arg(dir.join("data"));
    command.env("RUST_LOG", "warn");
    command
}

/// Installs its packages the first time; they are those of the live benchmark.
fn node() -> Command {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let home = benches.join("live/node");
    if !home.join("node_modules").exists() {
        let mut install = Command::new("npm");
        install
            .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&home);
        let installed = install.stdout(Stdio::null()).status();
        assert!(
            installed.is_ok_and(|status| status.success()),
            "npm ci failed in {}",
            home.display()
        );
    }
    let mut command = on_servers_core("node");
    command
        .arg(home.join("requests.mjs"))
        .env("NODE_ENV", "production");
    command
}
