//! A Redis of the test's own, to be killed, frozen and started again, and a line to it that can be disturbed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::eventually;

/// A redis-server that keeps what it has acknowledged, such as an operator would name by `redis.url`.
pub struct OwnRedis {
    dir: TempDir,
    process: Child,
}

impl OwnRedis {
    pub async fn start() -> OwnRedis {
        let dir = TempDir::new().unwrap();
        let redis = OwnRedis {
            process: OwnRedis::process_in(&dir),
            dir,
        };
        redis.answers().await;
        redis
    }

    fn process_in(dir: &TempDir) -> Child {
        Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "yes"])
            .args(["--appendfsync", "always", "--unixsocket"])
            .arg(dir.path().join("redis.sock"))
            .arg("--dir")
            .arg(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    async fn answers(&self) {
        eventually("the test's Redis", async || {
            let Ok(client) = ::redis::Client::open(self.url()) else {
                return false;
            };
            match client.get_multiplexed_async_connection().await {
                Ok(mut redis) => ::redis::cmd("PING").exec_async(&mut redis).await.is_ok(),
                Err(_) => false,
            }
        })
        .await;
    }

    /// Kills it, so that it can tidy nothing up.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again on what it has kept.
    pub async fn start_again(&mut self) {
        self.process = OwnRedis::process_in(&self.dir);
        self.answers().await;
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    pub async fn connect(&self) -> ::redis::aio::MultiplexedConnection {
        let client = ::redis::Client::open(self.url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }
}

impl Drop for OwnRedis {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.kill();
        }
    }
}

/// How a message that was published begins.
const MESSAGE: &[u8] = b"3\r\n$7\r\nmessage\r\n";

/// What a line does to what goes over it.
#[derive(Debug, Clone, Copy, Default)]
struct Rules {
    /// No new connections.
    refusing: bool,
    /// Counts the cuts: connections from before the last one are broken.
    cuts: u64,
    /// What Redis publishes gets lost on the way.
    mute: bool,
}

/// A line between a server and its Redis.
pub struct Line {
    dir: TempDir,
    rules: watch::Sender<Rules>,
    refused: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
}

impl Line {
    pub fn to(redis: &OwnRedis) -> Line {
        let dir = TempDir::new().unwrap();
        let listener = UnixListener::bind(dir.path().join("line.sock")).unwrap();
        let line = Line {
            dir,
            rules: watch::channel(Rules::default()).0,
            refused: Arc::default(),
            lost: Arc::default(),
        };
        let (target, rules) = (redis.socket(), line.rules.subscribe());
        let (refused, lost) = (line.refused.clone(), line.lost.clone());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                if rules.borrow().refusing {
                    refused.fetch_add(1, Ordering::SeqCst);
                } else if let Ok(far) = UnixStream::connect(&target).await {
                    tokio::spawn(carry(near, far, rules.clone(), lost.clone()));
                }
            }
        });
        line
    }

    pub fn url(&self) -> String {
        format!("unix://{}", self.dir.path().join("line.sock").display())
    }

    /// From now on whether new connections are refused.
    pub fn refuse(&self, refusing: bool) {
        self.rules.send_modify(|rules| rules.refusing = refusing);
    }

    /// How many connections have been refused.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    /// Breaks all connections.
    pub fn cut(&self) {
        self.rules.send_modify(|rules| rules.cuts += 1);
    }

    /// From now on whether what Redis publishes gets lost, without a sign of it.
    pub fn lose_messages(&self, mute: bool) {
        self.rules.send_modify(|rules| rules.mute = mute);
    }

    /// How many messages got lost.
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

async fn carry(
    mut near: UnixStream,
    mut far: UnixStream,
    mut rules: watch::Receiver<Rules>,
    lost: Arc<AtomicUsize>,
) {
    let cuts = rules.borrow_and_update().cuts;
    let (mut request, mut reply) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            changed = rules.changed() => if changed.is_err() || rules.borrow().cuts != cuts {
                return;
            },
            Ok(length) = near.read(&mut request) => {
                if length == 0 || far.write_all(&request[..length]).await.is_err() {
                    return;
                }
            }
            Ok(length) = far.read(&mut reply) => {
                let part = &reply[..length];
                let messages = part.windows(MESSAGE.len()).filter(|here| *here == MESSAGE).count();
                if messages > 0 && rules.borrow().mute {
                    lost.fetch_add(messages, Ordering::SeqCst);
                } else if length == 0 || near.write_all(part).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}
