//! Keys that change while the server runs.
//!
//! Owns the looking: the file is read again every second and compared as a whole, since a file that is replaced by renaming
//! or behind a link (as orchestrators do) may keep its name, its size and its time.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::Identity;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Takes keys over as their file changes, until it is dropped. A file that cannot be used leaves the keys as they are.
pub async fn keep(identity: Identity) {
    let Some((source, path)) = identity
        .0
        .source
        .as_ref()
        .and_then(|source| Some((source, source.path()?)))
    else {
        return;
    };
    // The first look reads it once more: it may have changed since the start has read it.
    let mut known = None;
    loop {
        let found = tokio::fs::read(path).await.map_err(|error| error.kind());
        if known.as_ref() != Some(&found) {
            match source.load(&identity.0.rules).await {
                Ok(keys) => {
                    if known.is_some() {
                        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
                        tracing::info!(path = %path.display(), keys = names.join(", "), "keys read anew");
                    }
                    *identity.0.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::from(keys);
                }
                Err(error) => tracing::warn!(%error, "the keys that are known stay in force"),
            }
            known = Some(found);
        }
        sleep(LOOK).await;
    }
}
