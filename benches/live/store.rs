//! The Redis of one run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::sleep;

use crate::process::Owned;

/// On a Unix socket, on the cores of the subscribers.
pub struct Redis {
    process: Owned,
    dir: TempDir,
}

impl Redis {
    pub async fn start() -> Redis {
        let dir = TempDir::new().unwrap();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "yes", "--unixsocket"])
            .arg(dir.path().join("redis.sock"))
            .arg("--dir")
            .arg(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed");
        let redis = Redis {
            process: Owned(child),
            dir,
        };
        while redis.client().get_connection().is_err() {
            sleep(Duration::from_millis(20)).await;
        }
        redis
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub fn client(&self) -> redis::Client {
        redis::Client::open(self.url()).unwrap()
    }
}
