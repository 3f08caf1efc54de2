//! What a request or a socket's `connection_init` bears of its sender.
//!
//! Owns the reading, not the judgement: `Authorization: Bearer TOKEN` in either, and what callers say of themselves in
//! `--dev`. Whoever bears nothing is anonymous; whoever bears something that cannot be used is refused, never taken for
//! anonymous.

use axum::http::{HeaderMap, header};
use serde_json::{Map, Value};

use super::Refused;
use super::dev::DevClaims;
use crate::graphql::access::Caller;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    Nothing,
    /// A token, not judged yet.
    Token(String),
    /// What the caller says of itself, where that is believed.
    Said(Caller),
}

impl Credentials {
    /// Those of a request.
    pub fn from_headers(headers: &HeaderMap, dev: bool) -> Result<Credentials, Refused> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let token = match (given.next(), given.next()) {
            (None, _) => None,
            (Some(one), None) => bearer(one.to_str().map_err(|_| Refused::NotBearer)?)?,
            (Some(_), Some(_)) => return Err(Refused::NotBearer),
        };
        either(token, dev, || DevClaims::from_headers(headers))
    }

    /// Those of a socket. Keys are spelled as headers are, in any case.
    pub fn from_payload(payload: &Value, dev: bool) -> Result<Credentials, Refused> {
        let nothing = Map::new();
        let payload = match payload {
            Value::Null => &nothing,
            Value::Object(payload) => payload,
            _ => return Err(Refused::Said("connection_init: the payload is an object".into())),
        };
        let mut given = payload
            .iter()
            .filter(|(key, value)| key.eq_ignore_ascii_case("authorization") && !value.is_null());
        let token = match (given.next(), given.next()) {
            (None, _) => None,
            (Some((_, Value::String(one))), None) => bearer(one)?,
            (Some(_), _) => return Err(Refused::NotBearer),
        };
        either(token, dev, || DevClaims::from_payload(payload))
    }
}

/// The token of an `Authorization`; clients that have none often send it empty.
fn bearer(text: &str) -> Result<Option<String>, Refused> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim().to_owned())),
        _ => Err(Refused::NotBearer),
    }
}

fn either(
    token: Option<String>,
    dev: bool,
    said: impl FnOnce() -> Result<DevClaims, String>,
) -> Result<Credentials, Refused> {
    let said = match dev {
        true => said().map_err(Refused::Said)?,
        false => DevClaims::default(),
    };
    match token {
        None if said.is_empty() => Ok(Credentials::Nothing),
        None => Ok(Credentials::Said(said.caller().map_err(Refused::Said)?)),
        Some(token) if said.is_empty() => Ok(Credentials::Token(token)),
        Some(_) => Err(Refused::Said(
            "a token and X-Dev-User or X-Dev-Role (devUser, devRole) at once: send one of them".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_stands_in_authorization_and_nothing_is_nothing() {
        let read = |payload: Value| Credentials::from_payload(&payload, false);
        let token = Ok(Credentials::Token("a.b.c".into()));
        assert_eq!(read(json!({ "Authorization": "Bearer a.b.c" })), token);
        assert_eq!(read(json!({ "authorization": "bearer  a.b.c " })), token);
        for nothing in [
            json!(null),
            json!({}),
            json!({ "Authorization": null }),
            json!({ "authorization": "" }),
            json!({ "devUser": "amy", "devRole": "ADMIN" }),
        ] {
            assert_eq!(read(nothing.clone()), Ok(Credentials::Nothing), "{nothing}");
        }
        for bad in [
            json!({ "Authorization": "Basic YTpi" }),
            json!({ "Authorization": "a.b.c" }),
            json!({ "Authorization": "Bearer" }),
            json!({ "Authorization": 7 }),
            json!({ "Authorization": ["Bearer a.b.c"] }),
            json!({ "Authorization": "Bearer a", "authorization": "Bearer b" }),
        ] {
            assert_eq!(read(bad.clone()), Err(Refused::NotBearer), "{bad}");
        }
        assert!(read(json!(["amy", "ADMIN"])).is_err());
    }

    #[test]
    fn in_dev_callers_name_themselves_but_not_beside_a_token() {
        let read = |payload: Value| Credentials::from_payload(&payload, true);
        assert!(matches!(
            read(json!({ "devUser": "amy" })),
            Ok(Credentials::Said(_))
        ));
        assert!(matches!(
            read(json!({ "devUser": "amy", "Authorization": "Bearer a.b.c" })),
            Err(Refused::Said(_))
        ));
    }
}
