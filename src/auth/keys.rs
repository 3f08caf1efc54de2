//! Which keys are believed: a secret for HS256, public keys for RS256 and ES256.
//!
//! Owns how settings name keys and how secrets are read; public keys are read in `public.rs`. A key knows its algorithm, so
//! a token never chooses one: what is signed by HS256 with somebody's public key finds no key here.

use std::fmt;
use std::path::{Path, PathBuf};

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation};

use super::public;
use super::token::Rules;
use crate::config::{self, ConfigError, Secret};

/// The shortest secret, in bytes: as long as what HS256 makes of it, by RFC 7518.
const LEAST_SECRET: usize = 32;

/// The most keys of one file: each may have to be tried.
const MOST_KEYS: usize = 32;

/// A key that is believed.
#[derive(Clone)]
pub struct Key {
    /// Its name, if it has one.
    pub kid: Option<String>,
    /// The one algorithm that it is for.
    pub algorithm: Algorithm,
    /// Checks signatures.
    pub verifies: DecodingKey,
    /// What the library is to check beside the signature.
    pub validation: Validation,
    /// Makes signatures, if it is a secret.
    pub signs: Option<EncodingKey>,
}

impl Key {
    /// A secret that is long enough.
    pub fn secret(secret: &str, rules: &Rules) -> Result<Key, ConfigError> {
        let unusable = |reason: String| ConfigError::unusable("auth.jwt_secret", reason);
        if secret.len() < LEAST_SECRET {
            return Err(unusable(format!(
                "has {} bytes, and HS256 wants {LEAST_SECRET} at least; `openssl rand -base64 48` makes one",
                secret.len()
            )));
        }
        let bytes = secret.as_bytes();
        let unsuited = |error: jsonwebtoken::errors::Error| unusable(error.to_string());
        let verifies = DecodingKey::from_secret(bytes).map_err(unsuited)?;
        Ok(Key {
            signs: Some(EncodingKey::from_secret(bytes).map_err(unsuited)?),
            ..Key::public(None, Algorithm::HS256, verifies, rules)
        })
    }

    /// A key that only verifies.
    pub fn public(kid: Option<String>, algorithm: Algorithm, verifies: DecodingKey, rules: &Rules) -> Key {
        Key {
            kid,
            algorithm,
            verifies,
            validation: rules.validation(algorithm),
            signs: None,
        }
    }

    /// Whether a token with this header may be by this key. A key without a name may have signed any.
    pub fn may_have_signed(&self, algorithm: Algorithm, kid: Option<&str>) -> bool {
        let named = match (self.kid.as_deref(), kid) {
            (Some(own), Some(kid)) => own == kid,
            _ => true,
        };
        self.algorithm == algorithm && named
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kid {
            Some(kid) => write!(f, "{:?} ({kid})", self.algorithm),
            None => write!(f, "{:?}", self.algorithm),
        }
    }
}

/// Where the settings say that keys are.
#[derive(Debug, Clone)]
pub enum Source {
    /// In the settings themselves.
    Secret(Secret),
    /// A file with secrets, one a line.
    SecretFile(PathBuf),
    /// A file with public keys.
    KeyFile(PathBuf),
}

impl Source {
    /// What is set; `None` if nothing is. That not two of them are is checked with the settings.
    pub fn named(settings: &config::Auth) -> Option<Source> {
        if !settings.jwt_secret.is_empty() {
            Some(Source::Secret(settings.jwt_secret.clone()))
        } else if !settings.jwt_secret_file.is_empty() {
            Some(Source::SecretFile(settings.jwt_secret_file.clone().into()))
        } else if !settings.jwt_key_file.is_empty() {
            Some(Source::KeyFile(settings.jwt_key_file.clone().into()))
        } else {
            None
        }
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Source::Secret(_) => None,
            Source::SecretFile(path) | Source::KeyFile(path) => Some(path),
        }
    }

    /// The keys as they are there now, one at least.
    pub async fn load(&self, rules: &Rules) -> Result<Vec<Key>, ConfigError> {
        let keys = match self {
            Source::Secret(secret) => return Ok(vec![Key::secret(secret.reveal(), rules)?]),
            Source::SecretFile(path) => {
                secrets(&self.text(path).await?, rules).map_err(|e| self.unusable(path, e))
            }
            Source::KeyFile(path) => {
                public::read(&self.text(path).await?, rules).map_err(|e| self.unusable(path, e))
            }
        }?;
        let path = self.path().unwrap_or(Path::new(""));
        match keys.len() {
            0 => Err(self.unusable(path, "holds no key".into())),
            1..=MOST_KEYS => Ok(keys),
            many => Err(self.unusable(path, format!("holds {many} keys, and {MOST_KEYS} are the most"))),
        }
    }

    async fn text(&self, path: &Path) -> Result<String, ConfigError> {
        let read = tokio::fs::read(path).await;
        let bytes = read.map_err(|cause| self.unusable(path, format!("cannot be read: {cause}")))?;
        String::from_utf8(bytes).map_err(|_| self.unusable(path, "is not text".into()))
    }

    fn unusable(&self, path: &Path, reason: String) -> ConfigError {
        let key = match self {
            Source::Secret(_) => "auth.jwt_secret",
            Source::SecretFile(_) => "auth.jwt_secret_file",
            Source::KeyFile(_) => "auth.jwt_key_file",
        };
        ConfigError::unusable(key, format!("{} {reason}", path.display()))
    }
}

/// Secrets, one a line: the first signs, all verify, so that one can follow another without a moment in between.
fn secrets(text: &str, rules: &Rules) -> Result<Vec<Key>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = lines.map(|line| {
        Key::secret(line, rules).map_err(|error| match error {
            ConfigError::Unusable { reason, .. } => format!("holds a secret that {reason}"),
            other => other.to_string(),
        })
    });
    keys.collect()
}
