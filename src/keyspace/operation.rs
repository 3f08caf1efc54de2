//! Operation ids: what keeps a write from being done twice.
//!
//! Owns how an operation is named and for how long it is remembered. Each write bears one: the client's
//! `idempotencyKey`, or one that the server makes, so that it may send again a call whose answer got lost.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::ids::{BadName, UserId};
use crate::random;

/// How long a write that the client gave no key of its own is remembered: far longer than any retry of ours.
const OWN: Duration = Duration::from_secs(120);

/// How long a client's key is remembered.
const CLIENTS: Duration = Duration::from_secs(24 * 3_600);

/// The longest `idempotencyKey`, in bytes.
const MAX_KEY: usize = 255;

/// Names one write, so that sending it again does not do it again.
#[derive(Debug, Clone)]
pub struct Operation {
    name: String,
    arguments: Option<String>,
    remembered: Duration,
    at: DateTime<Utc>,
    /// Tells our own sending again from the client's: only the client's is a replay.
    call: String,
}

impl Operation {
    /// A new operation of the server's own making.
    pub fn unique(now: DateTime<Utc>) -> Operation {
        Operation {
            name: random::unique_name(),
            arguments: None,
            remembered: OWN,
            at: now,
            call: "-".into(),
        }
    }

    /// The operation that `caller` names by `key`, within one `mutation` for one `user`; with other `arguments` it is
    /// another one and will be refused. Without a key it is unique.
    pub fn keyed(
        key: Option<&str>,
        caller: &str,
        mutation: &str,
        user: &UserId,
        arguments: &[&str],
        now: DateTime<Utc>,
    ) -> Result<Operation, BadName> {
        let Some(key) = key else {
            return Ok(Operation::unique(now));
        };
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(BadName::new(format!(
                "an idempotencyKey has 1 to {MAX_KEY} bytes, this one has {}",
                key.len()
            )));
        }
        Ok(Operation {
            name: digest(&[caller, mutation, user.as_str(), key]),
            arguments: Some(digest(arguments)),
            remembered: CLIENTS,
            at: now,
            call: random::unique_name(),
        })
    }

    /// Whether the client named it, and may send it again.
    pub fn is_clients(&self) -> bool {
        self.arguments.is_some()
    }

    /// What its key in Redis is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How `mutation.lua` is told: for how long it is remembered (ms), now (ms), the digest of the arguments, this call.
    pub(super) fn told(&self) -> String {
        let arguments = self.arguments.as_deref().unwrap_or("-");
        format!(
            "{} {} {arguments} {}",
            self.remembered.as_millis(),
            self.at.timestamp_millis(),
            self.call
        )
    }
}

/// A digest of several texts that no other texts share.
fn digest(parts: &[&str]) -> String {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_le_bytes());
        sha.update(part.as_bytes());
    }
    sha.finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_other_callers_mutations_or_users_are_other_operations() {
        let (now, amy, zed) = (
            DateTime::UNIX_EPOCH,
            UserId::parse("amy").unwrap(),
            UserId::parse("zed").unwrap(),
        );
        let name = |key, caller, mutation, user| {
            Operation::keyed(Some(key), caller, mutation, user, &[], now)
                .unwrap()
                .name
        };
        let first = name("k", "host", "submitScore", &amy);
        assert_eq!(name("k", "host", "submitScore", &amy), first);
        for other in [
            name("l", "host", "submitScore", &amy),
            name("k", "h", "submitScore", &amy),
            name("k", "host", "adjust", &amy),
            name("k", "host", "submitScore", &zed),
        ] {
            assert_ne!(other, first);
        }
        assert!(Operation::keyed(Some(""), "host", "m", &amy, &[], now).is_err());
        assert!(Operation::keyed(Some(&"k".repeat(256)), "host", "m", &amy, &[], now).is_err());
        assert_ne!(Operation::unique(now).name, Operation::unique(now).name);
    }
}
