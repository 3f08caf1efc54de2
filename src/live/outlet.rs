//! A connection's way out, which more than one may write to.
//!
//! Owns the TCP stream. What serves the connection (HTTP first, then a WebSocket) reads and writes a [`Conduit`] as it would
//! any stream. Once the connection is a WebSocket, topics put their messages into its [`Outlet`] as well, without waking the
//! task that serves it: of what one more message to an idle socket costs, waking is the larger half of what the system does
//! not take. A frame is never cut by another's: whoever writes hands over whole frames, and what the system does not take of
//! one goes before all others.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};

/// Where a connection's bytes leave.
pub struct Outlet {
    stream: OwnedWriteHalf,
    out: Mutex<Out>,
    /// Something lies in `rest`, and nobody waits until it has left.
    stuck: Notify,
}

#[derive(Default)]
struct Out {
    /// Whether what is written are whole frames, each in one piece; before, they are HTTP's bytes.
    framed: bool,
    /// What the system has not taken yet of frames that were accepted.
    rest: Vec<u8>,
    /// The last frame was accepted.
    closed: bool,
}

impl Outlet {
    /// From now on the connection is a WebSocket that writes each frame in one piece.
    pub fn framed(&self) {
        self.out().framed = true;
    }

    /// Sends a text message, made of parts, if nothing else waits to be sent and the system takes any of it. If not, nothing
    /// was sent.
    pub fn push(&self, parts: [&str; 3]) -> bool {
        let mut head = [0; 10];
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let head = text_header(length, &mut head);
        let [a, b, c] = parts.map(str::as_bytes);
        let mut out = self.out();
        if out.closed || !out.rest.is_empty() {
            return false;
        }
        let pieces = [head, a, b, c];
        match self.stream.try_write_vectored(&pieces.map(IoSlice::new)) {
            Ok(taken) => {
                self.keep(&mut out, &pieces, taken);
                true
            }
            // That it is broken, whoever reads from it will see.
            Err(_) => false,
        }
    }

    /// Waits until all that was accepted has left: what serves a WebSocket holds it for sent before that.
    pub async fn drained(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_drained(cx)).await
    }

    /// Waits until something is stuck that was accepted: then it wants flushing.
    pub async fn stuck(&self) {
        self.stuck.notified().await;
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what the system did not take.
    fn keep(&self, out: &mut Out, pieces: &[&[u8]], mut taken: usize) {
        for piece in pieces {
            let skipped = taken.min(piece.len());
            out.rest.extend_from_slice(&piece[skipped..]);
            taken -= skipped;
        }
        if !out.rest.is_empty() {
            self.stuck.notify_one();
        }
    }

    /// Accepts a whole frame. What follows the last one, such as a pong that was due, is left out (RFC 6455, section 5.5.1).
    fn accept(&self, frame: &[u8]) -> io::Result<usize> {
        const CLOSE: u8 = 8;
        let mut out = self.out();
        if out.closed {
            return Ok(frame.len());
        }
        let taken = match out.rest.is_empty() {
            true => match self.stream.try_write(frame) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                taken => taken?,
            },
            false => 0,
        };
        out.closed = frame.first().is_some_and(|first| first & 0xf == CLOSE);
        self.keep(&mut out, &[frame], taken);
        Ok(frame.len())
    }

    /// Waits until all that was accepted has left.
    fn poll_drained(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut out = self.out();
            if out.rest.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match self.stream.try_write(&out.rest) {
                Ok(taken) if taken == out.rest.len() => out.rest = Vec::new(), // its room too is given back
                Ok(taken) => drop(out.rest.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    drop(out);
                    ready!(self.stream.as_ref().poll_write_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// The header of a text message that a server sends in one frame (RFC 6455, section 5.2).
fn text_header(length: usize, room: &mut [u8; 10]) -> &[u8] {
    let header = FrameHeader {
        is_final: true,
        opcode: OpCode::Data(Data::Text),
        ..FrameHeader::default()
    };
    let mut free = &mut room[..];
    let written = header.format(length as u64, &mut free).is_ok();
    debug_assert!(written, "the longest header without a mask has ten bytes");
    let left = free.len();
    &room[..10 - left]
}

/// The connection as whatever serves it reads and writes it.
pub struct Conduit {
    /// Reading is the system's own business; only what is written has more than one source.
    source: OwnedReadHalf,
    outlet: Arc<Outlet>,
}

impl Conduit {
    /// Over a stream that was accepted.
    pub fn new(stream: TcpStream) -> Conduit {
        let (source, stream) = stream.into_split();
        let outlet = Arc::new(Outlet {
            stream,
            out: Mutex::default(),
            stuck: Notify::new(),
        });
        Conduit { source, outlet }
    }

    /// Its way out.
    pub fn outlet(&self) -> &Arc<Outlet> {
        &self.outlet
    }

    /// Writes at once what the system takes, or waits until it takes something.
    fn poll_taken(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&OwnedWriteHalf) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let stream = &self.outlet.stream;
        loop {
            ready!(stream.as_ref().poll_write_ready(cx))?;
            match write(stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                taken => return Poll::Ready(taken),
            }
        }
    }
}

impl AsyncRead for Conduit {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().source).poll_read(cx, buf)
    }
}

impl AsyncWrite for Conduit {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.outlet.out().framed {
            return Poll::Ready(self.outlet.accept(bytes));
        }
        self.poll_taken(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.outlet.out().framed {
            let frame: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            return Poll::Ready(self.outlet.accept(&frame));
        }
        self.poll_taken(cx, |stream| stream.try_write_vectored(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outlet.poll_drained(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.outlet.poll_drained(cx))?;
        let stream = socket2::SockRef::from(self.outlet.stream.as_ref());
        match stream.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())), // also if the other side was first
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Both ends of a connection that holds little of what is not read.
    async fn narrow() -> (Conduit, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        socket2::SockRef::from(&client)
            .set_recv_buffer_size(64 << 10)
            .unwrap();
        socket2::SockRef::from(&stream)
            .set_send_buffer_size(16 << 10)
            .unwrap();
        let conduit = Conduit::new(stream);
        conduit.outlet().framed();
        (conduit, client)
    }

    fn frame(text: &str) -> Vec<u8> {
        let mut room = [0; 10];
        [text_header(text.len(), &mut room), text.as_bytes()].concat()
    }

    /// The texts of frames, all of them whole.
    fn texts(mut bytes: &[u8]) -> Vec<String> {
        let mut texts = Vec::new();
        while !bytes.is_empty() {
            assert_eq!(bytes[0], 0x81, "a frame begins where the one before ends");
            let (length, head) = match bytes[1] {
                126 => (usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), 4),
                127 => (u64::from_be_bytes(bytes[2..10].try_into().unwrap()) as usize, 10),
                short => (usize::from(short), 2),
            };
            texts.push(String::from_utf8(bytes[head..head + length].to_vec()).unwrap());
            bytes = &bytes[head + length..];
        }
        texts
    }

    #[test]
    fn a_header_has_the_length_in_as_many_bytes_as_it_takes() {
        let mut room = [0; 10];
        assert_eq!(text_header(0, &mut room), [0x81, 0]);
        assert_eq!(text_header(125, &mut room), [0x81, 125]);
        assert_eq!(text_header(126, &mut room), [0x81, 126, 0, 126]);
        assert_eq!(text_header(65_535, &mut room), [0x81, 126, 0xff, 0xff]);
        assert_eq!(
            text_header(65_536, &mut room),
            [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn frames_of_two_writers_stay_whole_and_in_order_through_a_narrow_connection() {
        const WRITTEN: usize = 100;
        let (mut conduit, mut client) = narrow().await;
        let outlet = conduit.outlet().clone();
        let done = Arc::new(AtomicBool::new(false));
        let pushing = tokio::spawn({
            let (outlet, done) = (outlet.clone(), done.clone());
            async move {
                let (mut pushed, mut refused) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let text = format!("{pushed} ");
                    let long = "p".repeat([10, 300, 70_000][pushed % 3]);
                    match outlet.push(["push ", &text, &long]) {
                        true => pushed += 1,
                        false => refused += 1,
                    }
                    tokio::task::yield_now().await;
                }
                (pushed, refused)
            }
        });
        let writing = tokio::spawn(async move {
            for number in 0..WRITTEN {
                let text = format!("write {number} {}", "w".repeat([5, 200, 66_000][number % 3]));
                conduit.write_all(&frame(&text)).await.unwrap();
                if number % 5 == 0 {
                    conduit.flush().await.unwrap();
                }
            }
            done.store(true, Ordering::Relaxed);
            let counted = pushing.await.unwrap();
            conduit.shutdown().await.unwrap();
            counted
        });
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).await.unwrap();
        let (pushed, refused) = writing.await.unwrap();
        assert!(pushed > 0 && refused > 0, "{pushed} pushed, {refused} refused");
        for (kind, count) in [("push", pushed), ("write", WRITTEN)] {
            let texts = texts(&bytes).into_iter().filter(|text| text.starts_with(kind));
            let numbers: Vec<usize> = texts
                .map(|text| text.split(' ').nth(1).unwrap().parse().unwrap())
                .collect();
            assert_eq!(numbers, Vec::from_iter(0..count), "{kind}");
        }
    }

    #[tokio::test]
    async fn what_is_stuck_is_told_and_leaves_before_anything_else() {
        let (mut conduit, mut client) = narrow().await;
        let outlet = conduit.outlet().clone();
        let long = "x".repeat(1 << 20);
        assert!(outlet.push(["", "first ", &long]));
        outlet.stuck().await;
        assert!(!outlet.push(["", "second", ""]), "the first is still on its way");
        let reading = tokio::spawn(async move {
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).await.unwrap();
            texts(&bytes)
        });
        conduit.flush().await.unwrap();
        assert!(outlet.push(["", "third", ""]));
        conduit.shutdown().await.unwrap();
        drop((conduit, outlet));
        assert_eq!(reading.await.unwrap(), [format!("first {long}"), "third".into()]);
    }

    #[tokio::test]
    async fn nothing_follows_a_close() {
        const CLOSE: [u8; 4] = [0x88, 2, 0x03, 0xe8];
        const PONG: [u8; 2] = [0x8a, 0];
        let (mut conduit, mut client) = narrow().await;
        let outlet = conduit.outlet().clone();
        let long = "x".repeat(1 << 20);
        assert!(outlet.push(["", "stuck ", &long]));
        for frame in [CLOSE.as_slice(), PONG.as_slice()] {
            conduit.write_all(frame).await.unwrap();
        }
        assert!(!outlet.push(["a", "b", "c"]));
        // As with a client that is slow to read what came before its own close was answered.
        let reading = tokio::spawn(async move {
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).await.unwrap();
            bytes
        });
        outlet.drained().await.unwrap();
        drop((conduit, outlet));
        let bytes = reading.await.unwrap();
        let (before, close) = bytes.split_at(bytes.len() - CLOSE.len());
        assert_eq!(
            (texts(before), close),
            (vec![format!("stuck {long}")], &CLOSE[..])
        );
    }
}
