//! WebSocket as far as a cheap subscriber needs it: short frames out, whole frames in, no extension, no fragments.

/// The handshake of a subscriber.
pub fn handshake(host: &str) -> String {
    format!(
        "GET /graphql HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
    )
}

pub const TEXT: u8 = 1;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// A frame as clients send it: masked, though by zeros, which change nothing.
pub fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    const WHOLE: u8 = 0x80;
    const MASKED: u8 = 0x80;
    let mut frame = vec![WHOLE | kind];
    match u16::try_from(payload.len()).expect("subscribers send short frames") {
        short @ 0..=125 => frame.push(MASKED | short as u8),
        longer => {
            frame.push(MASKED | 126);
            frame.extend(longer.to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// The first frame of `bytes`, if it has arrived as a whole: its kind, its payload, and what follows it.
pub fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&kind, &length) = (bytes.first()?, bytes.get(1)?);
    let (head, length) = match length {
        126 => (4, u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?) as usize),
        127 => (
            10,
            u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize,
        ),
        short => (2, short as usize),
    };
    let payload = bytes.get(head..head + length)?;
    Some((kind & 0x0f, payload, &bytes[head + length..]))
}

/// The code with which a socket is closed.
pub fn close_code(payload: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(payload.get(..2)?.try_into().ok()?))
}

/// The points of the first of a board in an update: the number of the last change that it shows.
pub fn sequence(update: &[u8]) -> Option<i64> {
    const BEFORE: &[u8] = br#""points":"#;
    let at = update.windows(BEFORE.len()).position(|window| window == BEFORE)?;
    let digits = update[at + BEFORE.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}
