//! The load: connections that ask one thing after another, and what they got.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::contender::{Contender, Server};
use crate::question::Question;
use crate::{CONNECTIONS, Figures, process};

/// What all connections have in common.
struct Shared {
    question: Question,
    contender: Contender,
    users: u64,
    until: Instant,
    turn: Cell<u64>,
    waits: RefCell<Vec<u64>>,
}

thread_local! {
    /// Goes on from run to run, so that check-ins do not begin anew.
    static TURN: Cell<u64> = const { Cell::new(0) };
}

pub async fn run(
    server: &Server,
    contender: Contender,
    question: Question,
    users: u64,
    window: Duration,
) -> Figures {
    let began = Instant::now();
    let shared = Rc::new(Shared {
        question,
        contender,
        users,
        until: began + window,
        turn: Cell::new(TURN.get()),
        waits: RefCell::default(),
    });
    let before = process::cpu(server.pid());
    let local = LocalSet::new();
    for _ in 0..CONNECTIONS {
        local.spawn_local(ask(server.address, shared.clone()));
    }
    local.await;
    let (spent, took) = (process::cpu(server.pid()) - before, began.elapsed());
    TURN.set(shared.turn.get());
    let mut waits = shared.waits.take();
    waits.sort_unstable();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    Figures {
        contender,
        question,
        a_second: waits.len() as f64 / took.as_secs_f64(),
        cpu_us: spent.as_secs_f64() * 1e6 / waits.len() as f64,
        p50_us: at(0.5),
        p99_us: at(0.99),
    }
}

async fn ask(address: SocketAddr, shared: Rc<Shared>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answer = Vec::with_capacity(4096);
    while Instant::now() < shared.until {
        let turn = shared.turn.replace(shared.turn.get() + 1);
        let request = shared.question.request(shared.contender, shared.users, turn);
        let asked = Instant::now();
        stream.write_all(&request).await.unwrap();
        answer.clear();
        while !is_whole(&answer) {
            let read = stream.read_buf(&mut answer).await.unwrap();
            assert!(read > 0, "the server closed the connection");
        }
        shared.waits.borrow_mut().push(asked.elapsed().as_micros() as u64);
        let good = answer.starts_with(b"HTTP/1.1 200 ") && !contains(&answer, b"\"errors\"");
        assert!(good, "{}", String::from_utf8_lossy(&answer));
    }
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// Whether an answer with a Content-Length is there to its end.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.expect("an answer with its length").trim().parse().unwrap();
    bytes.len() >= head + 4 + length
}
