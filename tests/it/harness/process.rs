//! The program itself, as an operator runs it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than any start or end takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory for one installation: its configuration file, its data.
pub struct Place {
    pub dir: TempDir,
}

/// What a command that has ended left.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    /// With this configuration.
    pub fn new(config: &str) -> Place {
        let place = Place {
            dir: TempDir::new().unwrap(),
        };
        place.configure(config);
        place
    }

    /// Writes the configuration anew.
    pub fn configure(&self, config: &str) {
        fs::write(self.config(), config).unwrap();
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("tallyboard.toml")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// `tallyboard serve` on this place, in development, on a free port.
    pub fn serve(&self) -> Command {
        let mut command = tallyboard(&["serve", "--dev", "--listen", "127.0.0.1:0", "--config"]);
        command.arg(self.config()).arg("--data-dir").arg(self.data());
        command
    }

    /// The private Redis that was started last here, if it has not ended in order.
    pub fn redis_pid(&self) -> Option<u32> {
        fs::read_to_string(self.data().join("redis/redis.pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Only where a test has failed, or has killed the server on purpose.
        if let Some(pid) = self.redis_pid()
            && let Ok(home) = self.data().join("redis").canonicalize()
            && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == home)
        {
            signal("KILL", pid);
        }
    }
}

/// The program with these arguments and none of the settings that the environment of the tests may hold.
pub fn tallyboard(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyboard"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TALLYBOARD_") {
            command.env_remove(name);
        }
    }
    command.args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Outcome {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Outcome {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

impl Outcome {
    /// The one line in which the program says why it failed (exit code 1). Its log may stand before.
    #[track_caller]
    pub fn refusal(&self) -> &str {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert!(!self.stderr.contains('\u{1b}'), "colours in a file: {self:?}");
        let last = self.stderr.lines().last().unwrap_or_default();
        let said = self.stderr.matches("tallyboard: ").count();
        assert!(last.starts_with("tallyboard: ") && said == 1, "{self:?}");
        for mark in ["panicked", "backtrace", "Some(", "Err(", "Error {", "Kind", "()"] {
            assert!(!self.stderr.contains(mark), "{self:?}");
        }
        &last["tallyboard: ".len()..]
    }
}

/// A server of its own process. Dropping it kills it.
pub struct Server {
    child: Child,
    address: String,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Server {
    /// Starts it and waits for its line on standard output.
    #[track_caller]
    pub fn start(mut command: Command) -> Server {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        let Ok(line) = stdout.recv_timeout(PATIENCE) else {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("not listening: {:#?}", stderr.iter().collect::<Vec<_>>());
        };
        let address = line
            .strip_prefix("listening on http://")
            .unwrap_or_else(|| panic!("it said {line:?}"));
        Server {
            address: address.to_owned(),
            child,
            stdout,
            stderr,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends it a signal and waits for its end; answers what it printed after its first line.
    #[track_caller]
    pub fn end(mut self, name: &str) -> Outcome {
        signal(name, self.pid());
        let code = self.wait();
        Outcome {
            code,
            stdout: self.stdout.iter().collect::<Vec<_>>().join("\n"),
            // A Redis that outlives its server keeps the log open.
            stderr: self.stderr.try_iter().collect::<Vec<_>>().join("\n"),
        }
    }

    /// Waits for its end; the exit code, unless a signal ended it.
    fn wait(&mut self) -> Option<i32> {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(std::time::Instant::now() < deadline, "it does not end");
            pause();
        }
    }

    /// Asks it, as a user or a role.
    pub async fn ask(&self, (header, who): (&str, &str), query: &str) -> Value {
        let request = reqwest::Client::new()
            .post(format!("http://{}/graphql", self.address))
            .header(header, who)
            .json(&json!({ "query": query }));
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Scores on the board `points` and answers the points after it, by period.
    pub async fn score(&self, board: &str, user: &str, points: i64) -> Value {
        let query = format!(
            "mutation {{ submitScore(input: {{ board: \"{board}\", userId: \"{user}\", points: {points} }})
                {{ outcome standings {{ period standing {{ points }} }} }} }}"
        );
        let answer = self.ask(("X-Dev-Role", "SERVICE"), &query).await;
        assert_eq!(answer["data"]["submitScore"]["outcome"], "APPLIED", "{answer}");
        let standings = answer["data"]["submitScore"]["standings"].as_array().unwrap();
        standings
            .iter()
            .map(|s| {
                (
                    s["period"].as_str().unwrap().to_owned(),
                    s["standing"]["points"].clone(),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// The user's points on a board's first period.
    pub async fn points(&self, board: &str, user: &str) -> Value {
        let query = format!("{{ rank(board: \"{board}\", userId: \"{user}\") {{ points }} }}");
        self.ask(("X-Dev-Role", "SERVICE"), &query).await["data"]["rank"]["points"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// The lines of a stream as they come.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Sends a signal to a process that the test has started.
pub fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(sent.unwrap().success(), "kill -s {name} {pid}");
}

pub fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[allow(clippy::disallowed_methods)] // between two looks at another process, outside of any runtime
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}
