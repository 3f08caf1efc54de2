//! Processes: how servers are started, which core they run on, how many files they may open, what they have used.
//!
//! The server has the first core for itself, everything else shares the others. Reads Linux' /proc.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The core of the server that is measured.
const SERVERS_CORE: &str = "0";

/// What /proc counts CPU time in; fixed by Linux' ABI.
const TICK: Duration = Duration::from_millis(10);

/// When servers of ours believe to have started.
pub const NOON: &str = "2027-06-15T12:00:00Z";

/// Whether servers can be kept to a core.
static PINNING: OnceLock<bool> = OnceLock::new();

/// Lets this process, and so its children, open `files` files, and moves it off the server's core.
pub fn prepare(files: usize) {
    assert!(
        fs::exists("/proc/self/stat").unwrap(),
        "this benchmark reads /proc, which only Linux has"
    );
    let me = std::process::id().to_string();
    if files_allowed() < files {
        succeeds("prlimit", &["--pid", &me, &format!("--nofile={files}:")]);
        let allowed = files_allowed();
        assert!(
            allowed >= files,
            "{files} open files are needed and {allowed} allowed: raise the hard limit (ulimit -Hn) or lower SUBSCRIBERS"
        );
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let others = format!("1-{}", cores - 1);
    let pinning = cores > 1 && succeeds("taskset", &["-a", "-c", "-p", &others, &me]);
    if !pinning {
        eprintln!("no second core or no taskset: the server shares its core, so latencies are too long");
    }
    PINNING.set(pinning).unwrap();
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn files_allowed() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()).unwrap();
    soft.parse().unwrap_or(usize::MAX)
}

/// A command for `program` on the server's core.
pub fn on_servers_core(program: impl AsRef<OsStr>) -> Command {
    if PINNING.get() != Some(&true) {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", SERVERS_CORE]).arg(program);
    command
}

/// A child that ends with its owner.
pub struct Owned(pub Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended by itself, which then has been noticed elsewhere.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts a server that says on its first line where it listens.
pub fn listening(mut command: Command, name: &str) -> (Owned, SocketAddr) {
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
    let address = address.unwrap_or_else(|| panic!("{name} said {line:?}"));
    (process, address.parse().unwrap())
}

/// `tallyboard serve` with a configuration, at noon of a fixed day, so that no period turns meanwhile.
pub fn tallyboard(dir: &Path, settings: &str) -> Command {
    let file = dir.join("tallyboard.toml");
    fs::write(&file, settings).unwrap();
    let mut command = on_servers_core(env!("CARGO_BIN_EXE_tallyboard"));
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0", "--now", NOON]);
    command
        .arg("--config")
        .arg(file)
        .arg("--data-dir")
        .arg(dir.join("data"));
    command.env("RUST_LOG", "warn");
    command
}

/// A script of `benches/live/node`, whose packages are installed the first time.
pub fn node(script: &str) -> Command {
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
    command.arg(home.join(script)).env("NODE_ENV", "production");
    command
}

/// CPU time, user and system, of all threads of a process so far.
pub fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process has ended");
    // The name before the last parenthesis may hold anything.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = |field: usize| -> u32 { fields.split_whitespace().nth(field).unwrap().parse().unwrap() };
    let (user, system) = (ticks(11), ticks(12));
    TICK * (user + system)
}

/// Memory of a process that is resident now, in KiB.
pub fn resident(pid: u32) -> i64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process has ended");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap()
}
