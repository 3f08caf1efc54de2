//! A WebSocket by the byte: for clients that are slow, rude or gone, and for frames that no client library sends.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Longer than anything that should come takes; what never comes fails the test by it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a client's frame is.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

/// What came from the server.
#[derive(Debug, PartialEq)]
pub enum Came {
    Message(Value),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(u16, String),
    /// The connection has ended.
    End,
}

/// A frame as a client sends it, masked by nothing but zeros.
pub fn frame(kind: Kind, payload: impl AsRef<[u8]>) -> Vec<u8> {
    part(kind, true, payload)
}

/// A frame that may not be the last of its message.
pub fn part(kind: Kind, last: bool, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut frame = head(kind, last, payload.len());
    frame.extend_from_slice(payload);
    frame
}

/// How a frame begins that says it has `length` bytes.
pub fn head(kind: Kind, last: bool, length: usize) -> Vec<u8> {
    let mut head = vec![(u8::from(last) << 7) | kind as u8];
    match length {
        0..126 => head.push(0x80 | length as u8),
        126..65_536 => {
            head.push(0x80 | 126);
            head.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            head.push(0x80 | 127);
            head.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    head.extend_from_slice(&[0; 4]);
    head
}

/// `subscribe`, for one operation without variables.
pub fn subscribe(id: &str, query: &str) -> Value {
    json!({ "id": id, "type": "subscribe", "payload": { "query": query } })
}

/// A socket whose client answers nothing unless it is asked to.
pub struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
    /// The server's answer to the handshake.
    pub handshake: String,
}

impl Wire {
    /// Connects to `127.0.0.1:PORT` and is acknowledged.
    pub async fn open(address: &str, claims: Value) -> Wire {
        let mut wire = Wire::connect(address, Some("graphql-transport-ws")).await;
        wire.init(claims).await;
        wire
    }

    /// Connects and says nothing yet.
    pub async fn connect(address: &str, protocols: Option<&str>) -> Wire {
        let stream = TcpStream::connect(address).await.unwrap();
        Wire::over(stream, address, protocols).await
    }

    /// Connects and takes no more than a few kilobytes that are not read.
    pub async fn connect_narrowly(address: &str) -> Wire {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(address.parse().unwrap()).await.unwrap();
        Wire::over(stream, address, Some("graphql-transport-ws")).await
    }

    async fn over(stream: TcpStream, address: &str, protocols: Option<&str>) -> Wire {
        stream.set_nodelay(true).unwrap();
        let mut wire = Wire {
            stream,
            unread: Vec::new(),
            handshake: String::new(),
        };
        let protocols = protocols.map(|names| format!("Sec-WebSocket-Protocol: {names}\r\n"));
        let request = format!(
            "GET /graphql HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n",
            protocols.unwrap_or_default()
        );
        wire.write(request).await;
        let end = loop {
            if let Some(at) = wire.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(wire.more().await, "the server ended the handshake");
        };
        let head: Vec<u8> = wire.unread.drain(..end).collect();
        wire.handshake = String::from_utf8(head).unwrap();
        assert!(wire.handshake.starts_with("HTTP/1.1 101 "), "{}", wire.handshake);
        wire
    }

    /// Says who is asking and waits for the acknowledgement.
    pub async fn init(&mut self, claims: Value) {
        self.send(json!({ "type": "connection_init", "payload": claims }))
            .await;
        assert_eq!(self.answer().await, json!({ "type": "connection_ack" }));
    }

    /// Writes bytes as they are, in one go.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_write(bytes).await.unwrap();
    }

    /// Writes bytes, to a server that may have closed the connection.
    pub async fn try_write(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await
    }

    pub async fn send(&mut self, message: Value) {
        self.write(frame(Kind::Text, message.to_string())).await;
    }

    /// Several messages in one TCP packet.
    pub async fn send_together(&mut self, messages: &[Value]) {
        let frames: Vec<u8> = messages
            .iter()
            .flat_map(|message| frame(Kind::Text, message.to_string()))
            .collect();
        self.write(frames).await;
    }

    /// What comes next, whatever it is.
    pub async fn next(&mut self) -> Came {
        timeout(PATIENCE, self.take()).await.expect("nothing came")
    }

    /// The next message that is no ping; a ping is answered.
    pub async fn answer(&mut self) -> Value {
        loop {
            match self.next().await {
                Came::Message(message) if message["type"] == "ping" => {
                    let pong = frame(Kind::Text, json!({ "type": "pong" }).to_string());
                    self.try_write(pong).await.unwrap();
                }
                Came::Message(message) => return message,
                Came::Ping(_) | Came::Pong(_) => {}
                other => panic!("{other:?} instead of a message"),
            }
        }
    }

    /// The next answer's data; it must be for `id`.
    pub async fn data(&mut self, id: &str) -> Value {
        let mut message = self.answer().await;
        assert_eq!(
            (&message["id"], &message["type"]),
            (&json!(id), &json!("next")),
            "{message}"
        );
        assert_eq!(message["payload"].get("errors"), None, "{message}");
        message["payload"]["data"].take()
    }

    /// Waits for the close and agrees to it; its code and reason. The server must then end the connection.
    pub async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.next().await {
                Came::Close(code, reason) => {
                    if self
                        .try_write(frame(Kind::Close, code.to_be_bytes()))
                        .await
                        .is_ok()
                    {
                        assert_eq!(self.next().await, Came::End);
                    }
                    return (code, reason);
                }
                Came::End => panic!("the connection ended without a close"),
                _ => {}
            }
        }
    }

    /// Everything until the connection ends.
    pub async fn until_end(&mut self) -> Vec<Came> {
        let mut all = Vec::new();
        loop {
            match self.next().await {
                Came::End => return all,
                came => all.push(came),
            }
        }
    }

    /// Goes away as a process does that is killed, with nothing said: the server gets a reset.
    pub fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }

    async fn take(&mut self) -> Came {
        loop {
            if let Some(came) = self.parsed() {
                return came;
            }
            if !self.more().await {
                return Came::End;
            }
        }
    }

    /// Reads on; false at the end.
    async fn more(&mut self) -> bool {
        match self.stream.read_buf(&mut self.unread).await {
            Ok(read) => read > 0,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn parsed(&mut self) -> Option<Came> {
        let (&first, rest) = self.unread.split_first()?;
        let (&second, rest) = rest.split_first()?;
        let (length, head) = match second {
            126 => (u16::from_be_bytes(*rest.first_chunk()?) as usize, 4),
            127 => (u64::from_be_bytes(*rest.first_chunk()?) as usize, 10),
            length => (usize::from(length), 2),
        };
        let payload = self.unread.get(head..head + length)?.to_vec();
        self.unread.drain(..head + length);
        assert_eq!(first & 0xf0, 0x80, "a server's frames are whole and plain");
        Some(match first & 0x0f {
            1 => Came::Message(serde_json::from_slice(&payload).unwrap()),
            8 => {
                // A client that gives no code gets none; 1005 stands for that.
                let (code, reason) = payload.split_first_chunk().unwrap_or((&[3, 0xed], &[]));
                Came::Close(
                    u16::from_be_bytes(*code),
                    String::from_utf8(reason.to_vec()).unwrap(),
                )
            }
            9 => Came::Ping(payload),
            10 => Came::Pong(payload),
            kind => panic!("a frame of the kind {kind}"),
        })
    }
}
