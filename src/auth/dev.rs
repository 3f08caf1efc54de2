//! What callers say of themselves, in `--dev` only.
//!
//! Owns the reading of `X-Dev-User` and `X-Dev-Role`, and of `devUser` and `devRole` in a socket's `connection_init`.

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::graphql::access::{Caller, Role};
use crate::ids::UserId;

/// What a development client says of itself.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DevClaims {
    dev_user: Option<String>,
    dev_role: Option<String>,
}

impl DevClaims {
    /// From a request's headers.
    pub fn from_headers(headers: &HeaderMap) -> Result<DevClaims, String> {
        let text = |name: &str| match headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.to_owned())),
            Some(Err(_)) => Err(format!("{name} is not printable ASCII")),
        };
        Ok(DevClaims {
            dev_user: text("x-dev-user")?,
            dev_role: text("x-dev-role")?,
        })
    }

    /// From the payload of `connection_init`.
    pub fn from_payload(payload: &Map<String, Value>) -> Result<DevClaims, String> {
        DevClaims::deserialize(payload).map_err(|error| format!("connection_init: {error}"))
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == DevClaims::default()
    }

    /// The caller: a user without a role is a USER, nobody is ANONYMOUS.
    pub fn caller(self) -> Result<Caller, String> {
        let user = self
            .dev_user
            .map(|user| UserId::parse(&user))
            .transpose()
            .map_err(|bad| bad.to_string())?;
        let role = match (self.dev_role.as_deref(), &user) {
            (None, None) | (Some("ANONYMOUS"), None) => Role::Anonymous,
            (None, Some(_)) => Role::User,
            (Some("ANONYMOUS"), Some(_)) => return Err("the role ANONYMOUS has no user".into()),
            (Some(role), _) => Role::trusted(role).ok_or_else(|| {
                format!("there is no role {role:?}; there are USER, ANALYST, SERVICE, ADMIN")
            })?,
        };
        match (role, &user) {
            (Role::User, None) => Err("the role USER needs a user".into()),
            _ => Ok(Caller { user, role }),
        }
    }
}
