//! One run of redis-server: its version, its arguments, its log, its end.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{Durability, ManagedError, Plan};

/// What does not depend on the data directory. No configuration file is read, so the rest is as Redis has it.
const SETTINGS: &[[&str; 2]] = &[
    // Reachable for this user only.
    ["--port", "0"],
    ["--unixsocketperm", "700"],
    // The append-only file is the record; snapshots beside it would only cost.
    ["--appendonly", "yes"],
    ["--save", ""],
    ["--aof-use-rdb-preamble", "yes"],
    // "always" has to mean it, also while the file is rewritten.
    ["--no-appendfsync-on-rewrite", "no"],
    // Nothing of ours may be evicted, and what expires is freed without stopping everybody else.
    ["--maxmemory-policy", "noeviction"],
    ["--lazyfree-lazy-expire", "yes"],
    // Buckets of users stay packed, also with ids of the full 128 bytes.
    ["--hash-max-listpack-entries", "128"],
    ["--hash-max-listpack-value", "128"],
    // It stays our child, and what we watch is Redis itself.
    ["--daemonize", "no"],
];

/// Enough complaints to tell why it ended; the whole log goes to ours.
const LAST_COMPLAINTS: usize = 3;

/// Lines that Redis before 7.2 marks as warnings although they are none.
const CHATTER: &[&str] = &[
    "oO0OoO0OoO0Oo Redis is starting",
    "Redis version=",
    "Configuration loaded",
    "Server initialized",
    "User requested shutdown",
    "Redis is now ready to exit",
];

/// Refuses a redis-server that is missing or older than 7.0.
pub(super) async fn check_version(program: &str) -> Result<(), ManagedError> {
    let run = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = run.await.map_err(not_run)?;
    suitable(&String::from_utf8_lossy(&output.stdout))
}

fn not_run(cause: io::Error) -> ManagedError {
    match cause.kind() {
        io::ErrorKind::NotFound => ManagedError::Missing,
        _ => ManagedError::NotRunnable(cause),
    }
}

/// Judges a line such as `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64`; Valkey's is alike.
fn suitable(line: &str) -> Result<(), ManagedError> {
    let version = line.split_whitespace().find_map(|word| word.strip_prefix("v="));
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(7..) => Ok(()),
        _ => Err(ManagedError::Unsuitable {
            found: version.unwrap_or(line.trim()).to_owned(),
        }),
    }
}

/// A redis-server that we started. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: JoinHandle<String>,
}

impl Process {
    pub(super) fn spawn(plan: &Plan) -> Result<Process, ManagedError> {
        sweep(&plan.home);
        // One pipe for both streams, so that their lines stay in order.
        let (log, log_writer) = io::pipe().map_err(ManagedError::NotRunnable)?;
        let log = Receiver::from_owned_fd(OwnedFd::from(log)).map_err(ManagedError::NotRunnable)?;
        let child = Command::new("redis-server")
            .args(SETTINGS.iter().flatten())
            .args(["--appendfsync", appendfsync(plan.durability)])
            .arg("--dir")
            .arg(&plan.home)
            .arg("--pidfile")
            .arg(pidfile(&plan.home))
            .arg("--unixsocket")
            .arg(&plan.socket)
            // Redis 7.2 does not start in a locale that the host lacks; and Lua compares strings by it.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(log_writer.try_clone().map_err(ManagedError::NotRunnable)?)
            .stderr(log_writer)
            // A Ctrl-C in the terminal is for us alone; Redis stays until we have finished with it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(not_run)?;
        Ok(Process {
            child,
            log: tokio::spawn(forward(log)),
        })
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end and says how it ended.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(cause) => format!("status unknown: {cause}"),
        }
    }

    /// Its last complaints in one line, once it has ended.
    pub(super) async fn last_words(self) -> String {
        // A child of Redis' own may keep the pipe open for a while.
        match timeout(Duration::from_secs(1), self.log).await {
            Ok(Ok(lines)) => lines,
            Ok(Err(_)) | Err(_) => "(its log cannot be read)".to_owned(),
        }
    }

    /// Kills it and waits until it is gone.
    pub(super) async fn kill(mut self) {
        if let Err(cause) = self.child.kill().await {
            warn!(%cause, "cannot kill the private Redis");
        }
    }
}

fn appendfsync(durability: Durability) -> &'static str {
    match durability {
        Durability::Always => "always",
        Durability::EverySec => "everysec",
    }
}

fn pidfile(home: &Path) -> PathBuf {
    home.join("redis.pid")
}

/// The process that last started on `home`, if it did not end in order. Its id may be another process' by now.
pub(super) fn recorded_pid(home: &Path) -> Option<u32> {
    fs::read_to_string(pidfile(home)).ok()?.trim().parse().ok()
}

/// Removes half-written append-only files. A Redis that is killed while it rewrites its file (the usual time for the
/// system to run out of memory) leaves one, as large as the data, and no later Redis removes it.
fn sweep(home: &Path) {
    // Redis itself says, in its log, when the directory cannot be read.
    let Ok(entries) = fs::read_dir(home) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let half_written = path
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"temp-rewriteaof-"));
        if half_written && let Err(cause) = fs::remove_file(&path) {
            warn!(%cause, "cannot remove {}", path.display());
        }
    }
}

/// Passes the log of Redis on to ours, and answers its last complaints when it ends.
async fn forward(log: Receiver) -> String {
    let mut lines = BufReader::new(log).split(b'\n');
    let mut last = VecDeque::with_capacity(LAST_COMPLAINTS);
    // A broken pipe ends the log too.
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if line.is_empty() {
            continue;
        }
        match read_line(&line) {
            (true, text) => {
                warn!(target: "redis", "{text}");
                if last.len() == LAST_COMPLAINTS {
                    last.pop_front();
                }
                last.push_back(text.to_owned());
            }
            (false, text) => debug!(target: "redis", "{text}"),
        }
    }
    if last.is_empty() {
        return "it did not say why".to_owned();
    }
    Vec::from(last).join("; ")
}

/// Whether a line warns, and its text without the head that our own log has too.
///
/// Lines look like `4711:M 30 Nov 2026 12:00:00.000 # text`, where `#` warns. Others are complaints about arguments
/// and parts of crash reports.
fn read_line(line: &str) -> (bool, &str) {
    let mut parts = line.splitn(7, ' ');
    match (parts.nth(5), parts.next()) {
        (Some("#"), Some(text)) => (!CHATTER.iter().any(|chatter| text.starts_with(chatter)), text),
        (Some("." | "-" | "*"), Some(text)) => (false, text),
        _ => (true, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_redis_server_is_told_with_how_to_install_it() {
        let error = check_version("redis-server-that-is-not-there")
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`apt-get install redis-server` or `brew install redis`"),
            "{error}"
        );
    }

    #[test]
    fn redis_before_7_is_refused_with_its_version() {
        assert!(suitable("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64").is_ok());
        assert!(suitable("Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64").is_ok());
        assert!(suitable("Redis server v=10.2.0 sha=00000000:0").is_ok());
        let error = suitable("Redis server v=6.2.14 sha=00000000:0")
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("is: 6.2.14"), "{error}");
        let error = suitable("usage: something else\n").unwrap_err().to_string();
        assert!(error.ends_with("is: usage: something else"), "{error}");
    }

    #[test]
    fn only_what_needs_a_look_is_a_warning() {
        let line = "4711:M 30 Nov 2026 12:00:00.000 # WARNING Memory overcommit must be enabled!";
        assert_eq!(
            read_line(line),
            (true, "WARNING Memory overcommit must be enabled!")
        );
        assert!(!read_line("4711:M 30 Nov 2026 12:00:00.000 # Server initialized").0);
        assert!(!read_line("4711:M 30 Nov 2026 12:00:00.000 * Ready to accept").0);
        assert!(read_line("*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***").0);
    }
}
