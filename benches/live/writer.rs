//! The writer: ten changes a second of every board, on a thread of its own, whether the server keeps up or not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at};

use crate::compared::CHANNEL;
use crate::latency::Sent;
use crate::ours;
use crate::plan::RATE;
use crate::posts::Posts;
use crate::state::BASE;

/// Where changes are written.
#[derive(Clone)]
pub enum Target {
    /// Our server, by HTTP.
    Posts(SocketAddr),
    /// A Redis channel.
    Channel(redis::Client),
}

/// A writer at work.
pub struct Writer {
    thread: JoinHandle<()>,
    answered: Arc<AtomicUsize>,
}

impl Writer {
    /// Begins to write `changes` changes of each board.
    pub fn start(target: Target, boards: Vec<String>, changes: usize, sent: Arc<Sent>) -> Writer {
        let answered = Arc::new(AtomicUsize::new(0));
        let counter = answered.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut writing = JoinSet::new();
                let (count, counter) = (boards.len() as u32, &counter);
                for (board, id) in boards.into_iter().enumerate() {
                    // The boards take turns, so that they do not all change at once.
                    let offset = Duration::from_secs(1) / RATE / count * board as u32;
                    let (target, sent, counter) = (target.clone(), sent.clone(), counter.clone());
                    writing.spawn(async move {
                        let line = Line::open(target, changes, counter).await;
                        write(line, board, &id, changes, offset, &sent).await;
                    });
                }
                while let Some(written) = writing.join_next().await {
                    written.expect("the writer failed");
                }
            });
        });
        Writer { thread, answered }
    }

    /// Changes that our server has answered so far; of a channel all that were published.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    pub fn join(self) {
        self.thread.join().expect("the writer failed");
    }
}

async fn write(mut line: Line, board: usize, id: &str, changes: usize, offset: Duration, sent: &Sent) {
    let mut ticks = interval_at(Instant::now() + offset, Duration::from_secs(1) / RATE);
    for change in 1..=changes {
        ticks.tick().await;
        sent.mark(board, change);
        line.send(id, change).await;
    }
    if let Line::Posts(posts) = line {
        posts.finish().await;
    }
}

/// The way of one board's changes.
enum Line {
    Posts(Posts),
    Channel(redis::aio::MultiplexedConnection, Arc<AtomicUsize>),
}

impl Line {
    async fn open(target: Target, changes: usize, answered: Arc<AtomicUsize>) -> Line {
        match target {
            Target::Posts(address) => Line::Posts(Posts::open(address, changes, answered).await),
            Target::Channel(client) => {
                let connection = client.get_multiplexed_async_connection().await.unwrap();
                Line::Channel(connection, answered)
            }
        }
    }

    async fn send(&mut self, board: &str, change: usize) {
        match self {
            Line::Posts(posts) => posts.send(ours::CHANGE, &ours::change(board, change)).await,
            Line::Channel(redis, answered) => {
                let mut publish = redis::cmd("PUBLISH");
                publish.arg(CHANNEL).arg(BASE + change as i64);
                publish.exec_async(redis).await.unwrap();
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
