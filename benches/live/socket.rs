//! One subscriber's socket: plain TCP with as much of WebSocket and graphql-transport-ws as a subscriber needs.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::frames::{self, CLOSE, PING, PONG, TEXT};

/// What all sockets read into; what one has read there holds until its next await.
pub type Buffer = RefCell<Vec<u8>>;

pub fn buffer() -> Buffer {
    RefCell::new(vec![0; 64 << 10])
}

pub struct Socket {
    stream: TcpStream,
    /// What has come of a frame that is not whole.
    rest: Vec<u8>,
}

impl Socket {
    /// Connected and upgraded.
    pub async fn open(address: SocketAddr, buffer: &Buffer) -> io::Result<Socket> {
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(frames::handshake(&address.to_string()).as_bytes())
            .await?;
        let mut socket = Socket {
            stream,
            rest: Vec::new(),
        };
        while !socket.rest.ends_with(b"\r\n\r\n") {
            let read = socket.read(buffer).await?;
            socket.rest.extend_from_slice(&buffer.borrow()[..read]);
        }
        if !socket.rest.starts_with(b"HTTP/1.1 101 ") {
            return Err(io::Error::other(String::from_utf8_lossy(&socket.rest)));
        }
        socket.rest.clear();
        Ok(socket)
    }

    pub async fn say(&mut self, message: &serde_json::Value) -> io::Result<()> {
        let frame = frames::frame(TEXT, message.to_string().as_bytes());
        self.stream.write_all(&frame).await
    }

    /// Reads until a message has `mark` in it.
    pub async fn wait_for(&mut self, buffer: &Buffer, mark: &[u8]) -> io::Result<()> {
        let mut found = false;
        while !found {
            let read = self.read(buffer).await?;
            self.split(&buffer.borrow()[..read], &mut |message| {
                found |= message.windows(mark.len()).any(|window| window == mark);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Hands every message to `each`, until the socket ends or `each` has had enough.
    pub async fn messages(
        &mut self,
        buffer: &Buffer,
        mut each: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let read = self.read(buffer).await?;
            self.split(&buffer.borrow()[..read], &mut each)?;
        }
    }

    async fn read(&self, buffer: &Buffer) -> io::Result<usize> {
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut buffer.borrow_mut()) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// Hands each whole message to `each`, answers pings and keeps the rest.
    fn split(&mut self, read: &[u8], each: &mut impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let joined = (!self.rest.is_empty()).then(|| [&self.rest, read].concat());
        let mut bytes = joined.as_deref().unwrap_or(read);
        while let Some((kind, payload, next)) = frames::split(bytes) {
            match kind {
                CLOSE => {
                    return Err(io::Error::other(format!(
                        "close {:?}",
                        frames::close_code(payload)
                    )));
                }
                PING => self.answer(&frames::frame(PONG, payload))?,
                TEXT if payload.starts_with(br#"{"type":"ping""#) => {
                    self.answer(&frames::frame(TEXT, br#"{"type":"pong"}"#))?;
                }
                TEXT => each(payload)?,
                _ => {}
            }
            bytes = next;
        }
        self.rest = bytes.to_vec();
        Ok(())
    }

    /// A pong, which is so short and rare that the kernel takes it at once.
    fn answer(&self, pong: &[u8]) -> io::Result<()> {
        self.stream.try_write(pong).map(drop)
    }
}
