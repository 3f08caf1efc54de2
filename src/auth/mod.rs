//! Who is asking: whoever a token names, or in `--dev` whoever callers say they are.
//!
//! Read in this order: [`credentials`] (what a request or a `connection_init` bears), [`keys`] (which keys are believed,
//! and their reloading), [`token`] (what makes a token good and whom it names), [`issue`] (making one, as [`wanted`]), [`dev`]. What a
//! role may do is [`crate::graphql::access`]'s.

pub mod credentials;
pub mod dev;
pub mod issue;
pub mod keys;
mod public;
mod refused;
mod reload;
pub mod token;
pub mod wanted;

use std::sync::{Arc, PoisonError, RwLock};

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::clock::Clock;
use crate::config::{self, ConfigError};
use crate::graphql::access::Caller;
use crate::random;
use credentials::Credentials;
use issue::Issuer;
use keys::{Key, Source};
pub use refused::Refused;
pub use reload::keep;
pub use token::Rules;

/// Tells callers apart; clones share it.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    clock: Clock,
    rules: Rules,
    source: Option<Source>,
    /// From the source, as it was when it could be read last.
    keys: RwLock<Arc<[Key]>>,
    /// The key with which `--dev` hands out tokens; `None` outside of it.
    dev: Option<Key>,
}

/// A caller, and until when that is to be believed.
#[derive(Debug, Clone)]
pub struct Identified {
    /// Who asks.
    pub caller: Caller,
    /// When the token is no longer good; `None` without a token.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Identity {
    /// By the keys that the settings name, which must be readable. With `dev` callers may also name themselves.
    pub async fn open(settings: &config::Auth, clock: Clock, dev: bool) -> Result<Identity, ConfigError> {
        let rules = Rules::from(settings);
        let source = Source::named(settings);
        let keys = match &source {
            Some(source) => source.load(&rules).await?,
            None => Vec::new(),
        };
        let dev = match keys.iter().find(|key| key.signs.is_some()) {
            _ if !dev => None,
            Some(secret) => Some(secret.clone()),
            // Public keys sign nothing, and without any there must be one.
            None => Some(Key::secret(&random::secret(), &rules)?),
        };
        Ok(Identity(Arc::new(Inner {
            clock,
            rules,
            source,
            keys: RwLock::new(keys.into()),
            dev,
        })))
    }

    /// Whether the settings name a key.
    pub fn has_keys(&self) -> bool {
        self.0.source.is_some()
    }

    /// The keys of the settings in words, one each, without what they are.
    pub fn key_names(&self) -> Vec<String> {
        self.keys().iter().map(ToString::to_string).collect()
    }

    /// Whether callers may name themselves.
    pub fn is_dev(&self) -> bool {
        self.0.dev.is_some()
    }

    /// Who sends a request with these headers.
    pub fn of_headers(&self, headers: &HeaderMap) -> Result<Identified, Refused> {
        self.judged(Credentials::from_headers(headers, self.is_dev())?)
    }

    /// Who opens a socket with this payload of `connection_init`.
    pub fn of_payload(&self, payload: &Value) -> Result<Identified, Refused> {
        self.judged(Credentials::from_payload(payload, self.is_dev())?)
    }

    /// Whom a token names, now.
    pub fn of_token(&self, token: &str) -> Result<Identified, Refused> {
        let keys = self.keys();
        token::judge(token, keys.iter().chain(&self.0.dev), &self.0.rules, self.now())
    }

    /// Waits until `identified` is no longer to be believed; for ever if nothing ends that.
    pub async fn expired(&self, identified: &Identified) {
        match identified.expires_at {
            Some(at) => self.0.clock.until(at).await,
            None => std::future::pending().await,
        }
    }

    /// What signs the tokens that `--dev` hands out.
    pub fn dev_issuer(&self) -> Option<Issuer> {
        let key = self.0.dev.as_ref()?;
        Some(Issuer::new(key.signs.clone()?, self.0.rules.clone()))
    }

    /// Now, as tokens are judged.
    pub fn now(&self) -> DateTime<Utc> {
        self.0.clock.now()
    }

    fn judged(&self, credentials: Credentials) -> Result<Identified, Refused> {
        match credentials {
            Credentials::Nothing => Ok(Identified::without_token(Caller::anonymous())),
            Credentials::Said(caller) => Ok(Identified::without_token(caller)),
            Credentials::Token(token) => self.of_token(&token),
        }
    }

    fn keys(&self) -> Arc<[Key]> {
        self.0.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Identified {
    fn without_token(caller: Caller) -> Identified {
        Identified {
            caller,
            expires_at: None,
        }
    }
}
