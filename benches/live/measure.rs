//! One run: start a contender, subscribe, change, measure, stop.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use crate::contender::{Contender, Server};
use crate::latency::{Sent, Waits};
use crate::plan::{Run, WARM_UP};
use crate::store::Redis;
use crate::subscribers::{Heard, subscribe};
use crate::writer::{Target, Writer};
use crate::{ours, process};

/// How long subscribers may take to get the last state after the last change.
const DRAIN: Duration = Duration::from_secs(10);

/// What one run gave. Everything but the waits and the coverage is of the measured window alone.
pub struct Figures {
    pub contender: Contender,
    pub boards: usize,
    pub subscribers: usize,
    pub window: Duration,
    pub messages: u64,
    pub bytes: u64,
    /// Changes that were sent, and those that were answered.
    pub changes: usize,
    pub answered: usize,
    pub server_cpu: Duration,
    /// Of this program, the writer included.
    pub clients_cpu: Duration,
    pub redis_cpu: Duration,
    pub kib_each: f64,
    pub waits: Waits,
    /// Subscribers that got the last state.
    pub up_to_date: usize,
    /// Sockets that the server closed.
    pub closed: usize,
}

impl Figures {
    pub fn cpu_us(&self) -> f64 {
        self.server_cpu.as_micros() as f64 / self.messages as f64
    }
}

pub fn measure(run: &Run) -> Figures {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    LocalSet::new().block_on(&runtime.unwrap(), measured(run))
}

async fn measured(run: &Run) -> Figures {
    let boards = run.board_ids();
    let redis = Redis::start().await;
    let server = Server::start(run.contender, &redis, &boards);
    if run.contender == Contender::Ours {
        ours::fill(server.address, &boards).await;
    }
    let sent = Arc::new(Sent::new(boards.len(), run.changes()));
    let heard = Heard::new(sent.clone());
    let alone = process::resident(server.pid());
    subscribe(server.address, &boards, run.subscribers_each, &heard).await;

    let target = match run.contender {
        Contender::Ours => Target::Posts(server.address),
        _ => Target::Channel(redis.client()),
    };
    let writer = Writer::start(target, boards, run.changes(), sent.clone());
    sleep(WARM_UP).await;
    let before = Reading::take(&server, &redis, &heard, &writer, &sent);
    heard.measured.set((before.at, u64::MAX));
    sleep(run.window.saturating_sub(before.started.elapsed())).await;
    let after = Reading::take(&server, &redis, &heard, &writer, &sent);
    heard.measured.set((before.at, after.at));
    let resident = process::resident(server.pid());

    drain(writer, &heard, run.subscribers()).await;
    Figures {
        contender: run.contender,
        boards: run.boards,
        subscribers: run.subscribers(),
        window: after.started - before.started,
        messages: after.messages - before.messages,
        bytes: after.bytes - before.bytes,
        changes: sent.between(before.at, after.at),
        answered: after.answered - before.answered,
        server_cpu: after.server_cpu - before.server_cpu,
        clients_cpu: after.clients_cpu - before.clients_cpu,
        redis_cpu: after.redis_cpu - before.redis_cpu,
        kib_each: (resident - alone) as f64 / run.subscribers() as f64,
        waits: Waits::new(heard.waits.take()),
        up_to_date: heard.up_to_date(),
        closed: heard.closed.get(),
    }
}

/// Waits for the last change, and then until everybody has it or will not get it any more.
async fn drain(writer: Writer, heard: &Rc<Heard>, subscribers: usize) {
    while !writer.has_ended() {
        sleep(Duration::from_millis(10)).await;
    }
    writer.join();
    let since = Instant::now();
    while heard.up_to_date() < subscribers && since.elapsed() < DRAIN {
        sleep(Duration::from_millis(50)).await;
    }
}

/// All counters at one instant.
struct Reading {
    started: Instant,
    /// By the clock of the changes.
    at: u64,
    messages: u64,
    bytes: u64,
    answered: usize,
    server_cpu: Duration,
    clients_cpu: Duration,
    redis_cpu: Duration,
}

impl Reading {
    fn take(server: &Server, redis: &Redis, heard: &Heard, writer: &Writer, sent: &Sent) -> Reading {
        Reading {
            started: Instant::now(),
            at: sent.now(),
            messages: heard.messages.get(),
            bytes: heard.bytes.get(),
            answered: writer.answered(),
            server_cpu: process::cpu(server.pid()),
            clients_cpu: process::cpu(std::process::id()),
            redis_cpu: process::cpu(redis.pid()),
        }
    }
}
