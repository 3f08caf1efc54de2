//! Who is asking: in `--dev`, whoever they say they are.
//!
//! Owns the reading of `X-Dev-User` and `X-Dev-Role`, and of `devUser` and `devRole` in a socket's `connection_init`.
//! What a role may do is [`crate::graphql::access`]'s.

use axum::http::HeaderMap;
use serde::Deserialize;

use crate::graphql::access::{Caller, Role};
use crate::ids::UserId;

/// What a development client says of itself.
#[derive(Debug, Default, Deserialize)]
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
    pub fn from_payload(payload: serde_json::Value) -> Result<DevClaims, String> {
        match payload {
            serde_json::Value::Null => Ok(DevClaims::default()),
            payload => serde_json::from_value(payload).map_err(|error| format!("connection_init: {error}")),
        }
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
            (None | Some("USER"), Some(_)) => Role::User,
            (Some("ANALYST"), _) => Role::Analyst,
            (Some("SERVICE"), _) => Role::Service,
            (Some("ADMIN"), _) => Role::Admin,
            (Some("USER"), None) => return Err("the role USER needs a user".into()),
            (Some("ANONYMOUS"), Some(_)) => return Err("the role ANONYMOUS has no user".into()),
            (Some(role), _) => {
                return Err(format!(
                    "there is no role {role:?}; there are USER, ANALYST, SERVICE, ADMIN"
                ));
            }
        };
        Ok(Caller { user, role })
    }
}
