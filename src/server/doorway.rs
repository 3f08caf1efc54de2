//! Where connections come in.
//!
//! Owns how a TCP connection is accepted and set up, and what a request knows of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};

use super::farewell::Farewell;
use crate::live::outlet::{Conduit, Outlet};

/// How long a client's system may leave unacknowledged what is sent, its window closed included, before the connection is
/// given up: what bounds streams and old sockets that stall.
const UNTAKEN: Duration = Duration::from_secs(30);

/// How long a connection may be silent before the system asks whether the other side is still there.
const SILENT: Duration = Duration::from_secs(60);

/// How long those are let in who have connected already when the server is told to stop.
const LAST_CALL: Duration = Duration::from_millis(20);

/// Accepts connections, until the server is told to stop.
pub struct Doorway {
    /// None: it is shut, and whoever comes finds that nobody listens.
    listener: Option<TcpListener>,
    address: SocketAddr,
    farewell: Farewell,
    /// When it shuts, once the server is told to stop; those who stand before it then are let in.
    shuts_at: Option<Instant>,
}

impl Doorway {
    /// Opens it.
    pub fn new(listener: TcpListener, address: SocketAddr, farewell: Farewell) -> Doorway {
        Doorway {
            listener: Some(listener),
            address,
            farewell,
            shuts_at: None,
        }
    }

    /// The next who comes; `None` when the door is shut.
    async fn next(&mut self) -> Option<(TcpStream, SocketAddr)> {
        let listener = self.listener.as_mut()?;
        tokio::select! {
            biased;
            accepted = Listener::accept(listener) => return Some(accepted),
            () = self.farewell.begins() => {}
        }
        // The system may have let somebody in whom we have not seen yet.
        let shuts_at = *self.shuts_at.get_or_insert_with(|| Instant::now() + LAST_CALL);
        let last = timeout_at(shuts_at, Listener::accept(listener)).await.ok();
        if last.is_none() {
            self.listener = None;
        }
        last
    }
}

impl Listener for Doorway {
    type Io = Conduit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Conduit, SocketAddr) {
        match self.next().await {
            Some((stream, address)) => {
                prepare(&stream);
                (Conduit::new(stream), address)
            }
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// The other end of a connection.
#[derive(Clone)]
pub struct Peer {
    /// Where it comes from, a proxy's address if there is one in front.
    pub address: SocketAddr,
    /// Where bytes to it leave.
    pub outlet: Arc<Outlet>,
}

impl Connected<IncomingStream<'_, Doorway>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Doorway>) -> Peer {
        Peer {
            address: *stream.remote_addr(),
            outlet: stream.io().outlet().clone(),
        }
    }
}

/// Sends small messages at once, and gives up on clients that take nothing or are gone without a word.
fn prepare(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection that waits with small messages");
    }
    let socket = socket2::SockRef::from(stream);
    if let Err(error) = socket.set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(SILENT)) {
        tracing::debug!(%error, "a connection whose end may go unnoticed");
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = socket.set_tcp_user_timeout(Some(UNTAKEN)) {
        tracing::debug!(%error, "a connection that may stall");
    }
}
