//! The four servers, each a process of its own on a core of its own.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::compared::{CHANNEL, REDIS_SOCKET, ROLE};
use crate::process::{Owned, on_servers_core};
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
            Contender::Ours => tallyboard(dir.path(), redis, boards),
            Contender::Node => node(),
            Contender::Stock | Contender::Shared => {
                let mut command = on_servers_core(std::env::current_exe().unwrap());
                command.env(ROLE, contender.name());
                command
            }
        };
        command.env(REDIS_SOCKET, redis.socket());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        let process = Owned(child);
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

/// At noon of a fixed day, so that no period turns meanwhile.
fn tallyboard(dir: &Path, redis: &Redis, boards: &[String]) -> Command {
    let mut settings = format!("[redis]\nurl = {:?}\ntimeout_ms = 10000\n", redis.url());
    for board in boards {
        write!(settings, "[[board]]\nid = {board:?}\n").unwrap();
    }
    let file = dir.join("tallyboard.toml");
    std::fs::write(&file, settings).unwrap();
    let mut command = on_servers_core(env!("CARGO_BIN_EXE_tallyboard"));
    command.args([
        "serve",
        "--dev",
        "--listen",
        "127.0.0.1:0",
        "--now",
        "2027-06-15T12:00:00Z",
    ]);
    command
        .arg("--config")
        .arg(file)
        .arg("--data-dir")
        .arg(dir.join("data"));
    command.env("RUST_LOG", "warn");
    command
}

/// Installs its packages the first time.
fn node() -> Command {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/live/node");
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
    command.arg(home.join("server.mjs")).arg(state::for_node());
    command.env("NODE_ENV", "production").env("CHANNEL", CHANNEL);
    command
}
