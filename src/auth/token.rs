//! What makes a token good, and whom it names.
//!
//! Owns the judgement. Signatures are the library's; time is the Clock's, so the library's own look at the host's clock is
//! switched off.

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::keys::Key;
use super::{Identified, Refused};
use crate::config;
use crate::graphql::access::{Caller, Role};
use crate::ids::UserId;

/// What tokens must bear.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The expected `iss`, if any.
    pub issuer: Option<String>,
    /// The expected `aud`, if any.
    pub audience: Option<String>,
    /// The claim that names the user.
    pub user_claim: String,
    /// The claim that gives the role.
    pub role_claim: String,
    /// How far clocks may be apart.
    pub leeway: TimeDelta,
}

impl From<&config::Auth> for Rules {
    fn from(settings: &config::Auth) -> Rules {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Rules {
            issuer: set(&settings.issuer),
            audience: set(&settings.audience),
            user_claim: settings.user_claim.clone(),
            role_claim: settings.role_claim.clone(),
            leeway: TimeDelta::seconds(settings.leeway_seconds.into()),
        }
    }
}

impl Rules {
    /// What the library checks with a key for `algorithm`: all but the times.
    pub fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        let mut required = vec!["exp"];
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = self.audience.is_some();
        if let Some(audience) = &self.audience {
            validation.set_audience(&[audience]);
            required.push("aud");
        }
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        validation.set_required_spec_claims(&required);
        validation
    }

    /// Whom these claims name. Without a role it is a USER; only a backend or an analyst need not be a user.
    fn caller(&self, claims: &Map<String, Value>) -> Result<Caller, Refused> {
        let no_user = || Refused::NoUser(self.user_claim.clone());
        let user = match claims.get(&self.user_claim) {
            None | Some(Value::Null) => None,
            Some(Value::String(user)) => Some(UserId::parse(user)?),
            Some(_) => return Err(no_user()),
        };
        let role = match claims.get(&self.role_claim) {
            None | Some(Value::Null) => Role::User,
            Some(Value::String(role)) => Role::trusted(role).ok_or(Refused::Role)?,
            Some(_) => return Err(Refused::Role),
        };
        match (role, &user) {
            (Role::User, None) => Err(no_user()),
            _ => Ok(Caller { user, role }),
        }
    }
}

/// Whom `token` names, if one of `keys` has signed it and it is good `now`.
pub fn judge<'k>(
    token: &str,
    keys: impl Iterator<Item = &'k Key>,
    rules: &Rules,
    now: DateTime<Utc>,
) -> Result<Identified, Refused> {
    let claims = signed(token, keys)?;
    let expires_at = instant(&claims, "exp")
        .ok_or(Refused::NoExpiry)?
        .checked_add_signed(rules.leeway)
        .unwrap_or(DateTime::<Utc>::MAX_UTC);
    if expires_at <= now {
        return Err(Refused::Expired);
    }
    match (claims.get("nbf"), instant(&claims, "nbf")) {
        (None | Some(Value::Null), _) => {}
        (Some(_), Some(from)) if from <= now + rules.leeway => {}
        (Some(_), Some(_)) => return Err(Refused::NotYet),
        (Some(_), None) => return Err(Refused::Malformed),
    }
    Ok(Identified {
        caller: rules.caller(&claims)?,
        expires_at: Some(expires_at),
    })
}

fn signed<'k>(token: &str, keys: impl Iterator<Item = &'k Key>) -> Result<Map<String, Value>, Refused> {
    let header = decode_header(token).map_err(|_| Refused::Malformed)?;
    for key in keys.filter(|key| key.may_have_signed(header.alg, header.kid.as_deref())) {
        match decode(token, &key.verifies, &key.validation) {
            Ok(token) => return Ok(token.claims),
            Err(error) => match error.into_kind() {
                ErrorKind::InvalidSignature => {} // maybe by another one
                kind => return Err(refusal(kind)),
            },
        }
    }
    Err(Refused::Signature)
}

fn refusal(kind: ErrorKind) -> Refused {
    match kind {
        ErrorKind::InvalidIssuer => Refused::Issuer,
        ErrorKind::InvalidAudience => Refused::Audience,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => match claim.as_str()
        {
            "exp" => Refused::NoExpiry,
            "iss" => Refused::Issuer,
            "aud" => Refused::Audience,
            _ => Refused::Malformed,
        },
        _ => Refused::Malformed,
    }
}

/// A claim in seconds since 1970, whole or not. What lies beyond all calendars is their end.
fn instant(claims: &Map<String, Value>, name: &str) -> Option<DateTime<Utc>> {
    let milliseconds = claims.get(name)?.as_f64()? * 1_000.0;
    let far = match milliseconds > 0.0 {
        true => DateTime::<Utc>::MAX_UTC,
        false => DateTime::<Utc>::MIN_UTC,
    };
    #[allow(clippy::cast_possible_truncation)] // it saturates, and the ends are taken for far away
    Some(DateTime::from_timestamp_millis(milliseconds as i64).unwrap_or(far))
}
