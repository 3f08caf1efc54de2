//! Making tokens: for `tallyboard token`, and for `/dev/token`.
//!
//! Owns with which key, and what the token bears: what [`super::token`] asks for.

use std::path::Path;

use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, AlgorithmFamily, EncodingKey, Header, encode};
use serde_json::{Map, Value};

use super::keys::Source;
use super::token::Rules;
use super::wanted::{MOST, Wanted};
use crate::config::{self, ConfigError};

/// Why no token was made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// It would name nobody.
    #[error("a token for the role USER names a user")]
    NoUser,
    /// The role is none that a token can give.
    #[error("there is no role {0:?} to give; there are USER, ANALYST, SERVICE, ADMIN")]
    Role(String),
    /// The duration is none.
    #[error("{0:?} is no duration of a token; 90s, 15m, 1h or 30d would be, up to {days}d", days = MOST.num_days())]
    Duration(String),
    /// What was given signs nothing.
    #[error(
        "the key signs nothing here: an RSA key of 2,048 bits at least, or a key on the curve P-256 in PKCS#8 would do \
         (`openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048`, or `-algorithm EC -pkeyopt \
         ec_paramgen_curve:P-256`)"
    )]
    Key,
    /// There is none.
    #[error(
        "there is no key to sign with: set auth.jwt_secret_file, or give the private key of auth.jwt_key_file by \
         --private-key FILE"
    )]
    NoKey,
    /// Public keys sign nothing.
    #[error(
        "auth.jwt_key_file holds public keys, which sign nothing: give the private one by --private-key FILE"
    )]
    OnlyPublic,
    /// The private key cannot be read.
    #[error("{path} cannot be read: {cause}")]
    File {
        /// As given.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The settings' key cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Makes tokens that a server with these rules takes, if it knows the key.
pub struct Issuer {
    key: EncodingKey,
    algorithm: Algorithm,
    kid: Option<String>,
    rules: Rules,
}

impl Issuer {
    /// By a secret.
    pub fn new(secret: EncodingKey, rules: Rules) -> Issuer {
        Issuer {
            key: secret,
            algorithm: Algorithm::HS256,
            kid: None,
            rules,
        }
    }

    /// By the private key in a file, or by the secret of the settings if none is given.
    pub async fn of_settings(
        settings: &config::Auth,
        private_key: Option<&Path>,
        kid: Option<String>,
    ) -> Result<Issuer, IssueError> {
        let rules = Rules::from(settings);
        if let Some(path) = private_key {
            let pem = tokio::fs::read(path).await.map_err(|cause| IssueError::File {
                path: path.display().to_string(),
                cause,
            })?;
            return Issuer::of_pem(&pem, kid, rules);
        }
        let source = Source::named(settings).ok_or(IssueError::NoKey)?;
        let first = source.load(&rules).await?.into_iter().next();
        let secret = first.and_then(|key| key.signs).ok_or(IssueError::OnlyPublic)?;
        Ok(Issuer {
            kid,
            ..Issuer::new(secret, rules)
        })
    }

    /// By a private key in PEM, RSA or P-256; `kid` names it, for servers that know several.
    pub fn of_pem(pem: &[u8], kid: Option<String>, rules: Rules) -> Result<Issuer, IssueError> {
        let key = EncodingKey::from_ec_pem(pem).or_else(|_| EncodingKey::from_rsa_pem(pem));
        let key = key.map_err(|_| IssueError::Key)?;
        let algorithm = match key.family() {
            AlgorithmFamily::Ec => Algorithm::ES256,
            _ => Algorithm::RS256,
        };
        Ok(Issuer {
            key,
            algorithm,
            kid,
            rules,
        })
    }

    /// A token that begins `now`.
    pub fn issue(&self, wanted: &Wanted, now: DateTime<Utc>) -> Result<String, IssueError> {
        let mut claims = Map::new();
        if let Some(user) = wanted.user() {
            claims.insert(self.rules.user_claim.clone(), user.as_str().into());
        }
        claims.insert(self.rules.role_claim.clone(), wanted.role().name().into());
        for (name, value) in [("iss", &self.rules.issuer), ("aud", &self.rules.audience)] {
            if let Some(value) = value {
                claims.insert(name.into(), value.as_str().into());
            }
        }
        claims.insert("iat".into(), now.timestamp().into());
        claims.insert("exp".into(), wanted.expires_at(now).timestamp().into());
        let mut header = Header::new(self.algorithm);
        header.kid = self.kid.clone();
        encode(&header, &Value::Object(claims), &self.key).map_err(|_| IssueError::Key)
    }
}
