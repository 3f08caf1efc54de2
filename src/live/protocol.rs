//! graphql-transport-ws: its messages and close codes.
//!
//! Owns the spelling of the protocol (<https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md>). Pure; what is done
//! about a message is [`super::socket`]'s.

use async_graphql::Request;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::error::beginning;

/// The protocol's name among WebSocket subprotocols.
pub const SUBPROTOCOL: &str = "graphql-transport-ws";

/// What a client says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Opens the connection.
    ConnectionInit {
        /// Who is asking.
        payload: Option<Map<String, Value>>,
    },
    /// Asks whether somebody is there.
    Ping {
        /// Comes back with the pong.
        payload: Option<Map<String, Value>>,
    },
    /// Somebody is here.
    Pong {
        /// Nothing is done with it.
        #[allow(dead_code)] // it must be an object all the same
        payload: Option<Map<String, Value>>,
    },
    /// Asks for an operation.
    Subscribe {
        /// Names it on this connection.
        id: String,
        /// What to execute.
        #[serde(deserialize_with = "request")]
        payload: Box<Request>,
    },
    /// Wants no more of an operation.
    Complete {
        /// Which.
        id: String,
    },
}

impl ClientMessage {
    /// Reads a message.
    pub fn read(text: &str) -> Result<ClientMessage, Close> {
        match serde_json::from_str(text) {
            Ok(ClientMessage::Subscribe { id, .. } | ClientMessage::Complete { id }) if id.is_empty() => {
                Err(Close::invalid("an id is not empty"))
            }
            Ok(message) => Ok(message),
            Err(error) => Err(Close::invalid(&error.to_string())),
        }
    }
}

/// A request as the protocol wants it: an object that has a query.
fn request<'de, D: Deserializer<'de>>(payload: D) -> Result<Box<Request>, D::Error> {
    let payload = Map::deserialize(payload)?;
    if !payload.get("query").is_some_and(Value::is_string) {
        return Err(D::Error::custom("the payload's query is a string"));
    }
    serde_json::from_value(payload.into()).map_err(D::Error::custom)
}

/// Why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// The code.
    pub code: u16,
    /// In words, at most 123 bytes: more does not fit a close frame.
    pub reason: String,
}

impl Close {
    fn new(code: u16, reason: &str) -> Close {
        Close {
            code,
            reason: beginning(reason, 123).to_owned(),
        }
    }

    /// 1001: this server goes away; another one, or this one started anew, will serve.
    pub fn going_away() -> Close {
        Close::new(1001, "Going away")
    }

    /// 1009: a message was too large. (Not 1013, which clients retry: the same message would come again.)
    pub fn too_big(most: usize) -> Close {
        Close::new(1009, &format!("A message has at most {most} bytes"))
    }

    /// 1013: a limit is reached; the same may succeed later.
    pub fn try_again_later(what: &str) -> Close {
        Close::new(1013, &format!("Try again later: {what}"))
    }

    /// 4400: a message that is none.
    pub fn invalid(what: &str) -> Close {
        Close::new(4400, &format!("Invalid message: {what}"))
    }

    /// 4401: something was asked before the connection was acknowledged.
    pub fn unauthorized() -> Close {
        Close::new(4401, "Unauthorized")
    }

    /// 4403: this caller may not connect.
    pub fn forbidden(why: &str) -> Close {
        Close::new(4403, &format!("Forbidden: {why}"))
    }

    /// 4406: no protocol that is spoken here was offered.
    pub fn unspoken() -> Close {
        Close::new(4406, "Subprotocol not acceptable")
    }

    /// 4408: nobody said who is asking in time.
    pub fn init_timeout() -> Close {
        Close::new(4408, "Connection initialisation timeout")
    }

    /// 4409: an id was used for a second operation while the first goes on.
    pub fn duplicate(id: &str) -> Close {
        Close::new(4409, &format!("Subscriber for {id} already exists"))
    }

    /// 4429: the connection was opened twice.
    pub fn init_twice() -> Close {
        Close::new(4429, "Too many initialisation requests")
    }
}

/// `connection_ack`.
pub const ACK: &str = r#"{"type":"connection_ack"}"#;

/// `ping`.
pub const PING: &str = r#"{"type":"ping"}"#;

/// `pong`, with what came with the ping.
pub fn pong(payload: Option<Map<String, Value>>) -> String {
    match payload {
        None => r#"{"type":"pong"}"#.into(),
        Some(payload) => format!(r#"{{"type":"pong","payload":{}}}"#, Value::from(payload)),
    }
}

const NEXT: &str = r#"next","payload":"#;
const CLOSING: &str = "}";

/// How the messages of one operation begin: its id as JSON, spelled once.
#[derive(Debug, Clone)]
pub struct Operation(String);

impl Operation {
    /// The operation of that id.
    pub fn new(id: &str) -> Operation {
        Operation(format!(r#"{{"id":{},"type":""#, Value::from(id)))
    }

    /// `next`: an answer.
    pub fn next(&self, payload: &str) -> String {
        self.with(NEXT, payload)
    }

    /// What stands before and behind an answer in a `next`. The answer is everybody's; only the id is this client's.
    pub fn around_answer(&self) -> (String, &'static str) {
        (format!("{}{NEXT}", self.0), CLOSING)
    }

    /// `error`: it cannot be executed; the errors as a JSON list.
    pub fn error(&self, errors: &str) -> String {
        self.with(r#"error","payload":"#, errors)
    }

    /// `complete`: that was all.
    pub fn complete(&self) -> String {
        format!(r#"{}complete"}}"#, self.0)
    }

    fn with(&self, kind: &str, payload: &str) -> String {
        let mut message = String::with_capacity(self.0.len() + kind.len() + payload.len() + 1);
        for part in [&self.0, kind, payload, CLOSING] {
            message.push_str(part);
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_spelled_as_the_protocol_says() {
        let operation = Operation::new("a\"b");
        let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(
            parsed(operation.next("{\"data\":1}")),
            serde_json::json!({ "id": "a\"b", "type": "next", "payload": { "data": 1 } })
        );
        let (opening, closing) = operation.around_answer();
        assert_eq!(opening + "1" + closing, operation.next("1"));
        assert_eq!(
            parsed(operation.error("[]")),
            serde_json::json!({ "id": "a\"b", "type": "error", "payload": [] })
        );
        assert_eq!(
            parsed(operation.complete()),
            serde_json::json!({ "id": "a\"b", "type": "complete" })
        );
        let payload = Map::from_iter([("at".into(), Value::from(1))]);
        assert_eq!(pong(Some(payload)), r#"{"type":"pong","payload":{"at":1}}"#);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bad in [
            "",
            "{",
            "[]",
            "null",
            "{}",
            r#"{"type":"hello"}"#,
            r#"{"type":"subscribe"}"#,
            r#"{"type":"subscribe","id":"1"}"#,
            r#"{"type":"subscribe","id":"","payload":{"query":"{a}"}}"#,
            r#"{"type":"subscribe","id":1,"payload":{"query":"{a}"}}"#,
            r#"{"type":"subscribe","id":"1","payload":{}}"#,
            r#"{"type":"subscribe","id":"1","payload":["{a}"]}"#,
            r#"{"type":"connection_init","payload":["amy","ADMIN"]}"#,
            r#"{"type":"ping","payload":1}"#,
            r#"{"type":"complete"}"#,
            r#"{"type":"complete","id":""}"#,
        ] {
            assert_eq!(ClientMessage::read(bad).unwrap_err().code, 4400, "{bad}");
        }
    }

    #[test]
    fn a_reason_fits_a_close_frame() {
        let close = Close::duplicate(&"ü".repeat(200));
        assert!(close.reason.len() <= 123 && close.reason.starts_with("Subscriber for üü"));
    }
}
