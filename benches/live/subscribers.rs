//! The subscribers: on one thread, they count and measure what they hear, and parse no JSON.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use futures::{StreamExt, stream};
use serde_json::json;
use tokio::task::spawn_local;

use crate::frames;
use crate::latency::Sent;
use crate::socket::{self, Buffer, Socket};
use crate::state::{BASE, subscription};

/// How many subscribers open their sockets at the same time.
const OPENING: usize = 64;

/// What all subscribers have heard.
pub struct Heard {
    sent: Arc<Sent>,
    pub messages: Cell<u64>,
    pub bytes: Cell<u64>,
    /// Sockets that the server has closed.
    pub closed: Cell<usize>,
    /// Which changes are measured: those sent in this span.
    pub measured: Cell<(u64, u64)>,
    pub waits: RefCell<Vec<u32>>,
    /// Each subscriber's board and newest state.
    pub newest: RefCell<Vec<(usize, i64)>>,
    buffer: Buffer,
}

impl Heard {
    pub fn new(sent: Arc<Sent>) -> Rc<Heard> {
        Rc::new(Heard {
            sent,
            messages: Cell::new(0),
            bytes: Cell::new(0),
            closed: Cell::new(0),
            measured: Cell::new((u64::MAX, u64::MAX)),
            waits: RefCell::default(),
            newest: RefCell::default(),
            buffer: socket::buffer(),
        })
    }

    /// How many have the last state of their board.
    pub fn up_to_date(&self) -> usize {
        let newest = self.newest.borrow();
        let boards = newest.iter().map(|&(board, _)| board + 1).max().unwrap_or(0);
        let last: Vec<i64> = (0..boards).map(|board| self.sent.last(board)).collect();
        newest
            .iter()
            .filter(|&&(board, sequence)| sequence >= last[board])
            .count()
    }

    fn update(&self, subscriber: usize, update: &[u8]) -> io::Result<()> {
        let now = self.sent.now();
        self.messages.set(self.messages.get() + 1);
        self.bytes.set(self.bytes.get() + update.len() as u64);
        let Some(sequence) = frames::sequence(update) else {
            return Err(io::Error::other(String::from_utf8_lossy(update)));
        };
        let (board, newest) = &mut self.newest.borrow_mut()[subscriber];
        let (from, until) = self.measured.get();
        let mut waits = self.waits.borrow_mut();
        for shown in *newest + 1..=sequence {
            let at = self.sent.at(*board, shown);
            if (from..until).contains(&at) {
                waits.push(now.saturating_sub(at) as u32);
            }
        }
        *newest = sequence.max(*newest);
        Ok(())
    }
}

/// Subscribes `each` times to each board; done when everybody has a first state.
pub async fn subscribe(address: SocketAddr, boards: &[String], each: usize, heard: &Rc<Heard>) {
    let subscribers = (0..each).flat_map(|_| boards.iter().enumerate());
    let mut opening = stream::iter(subscribers.map(|(board, id)| open(address, board, id, heard.clone())))
        .buffer_unordered(OPENING);
    while let Some(opened) = opening.next().await {
        opened.expect("cannot subscribe");
    }
}

async fn open(address: SocketAddr, board: usize, id: &str, heard: Rc<Heard>) -> io::Result<()> {
    let mut socket = Socket::open(address, &heard.buffer).await?;
    socket.say(&json!({ "type": "connection_init" })).await?;
    socket.wait_for(&heard.buffer, br#""connection_ack""#).await?;
    let query = json!({ "query": subscription(id) });
    socket
        .say(&json!({ "id": "1", "type": "subscribe", "payload": query }))
        .await?;
    socket.wait_for(&heard.buffer, br#""points":"#).await?;
    let subscriber = heard.newest.borrow().len();
    heard.newest.borrow_mut().push((board, BASE));
    spawn_local(async move {
        let ended = socket
            .messages(&heard.buffer, |update| heard.update(subscriber, update))
            .await;
        if let (Err(error), 0) = (ended, heard.closed.get()) {
            eprintln!("the first socket that ended did so by: {error}");
        }
        heard.closed.set(heard.closed.get() + 1);
    });
    Ok(())
}
