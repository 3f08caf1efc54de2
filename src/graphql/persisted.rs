//! Documents that clients name by their hash.
//!
//! Owns automatic persisted queries (<https://www.apollographql.com/docs/apollo-server/performance/apq>) and the mode in which
//! only documents of a list are served: whatever else a stranger thinks of is refused before it is parsed.

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::{Request, Value};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::config::{self, Persisted as Mode};
use crate::error::Error;

/// So many bytes of documents are remembered. Whoever names one that was forgotten sends it again.
const REMEMBERED_BYTES: u64 = 8 << 20;

/// The documents that can be named.
#[derive(Clone)]
pub struct Persisted(Arc<Inner>);

struct Inner {
    mode: Mode,
    /// By the hash that a client named, 64 hexadecimal digits.
    remembered: Cache<String, Arc<str>, Bytes>,
    listed: HashMap<String, Arc<str>>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<String, Arc<str>> for Bytes {
    fn weight(&self, hash: &String, text: &Arc<str>) -> u64 {
        (hash.len() + text.len()) as u64
    }
}

/// What `extensions.persistedQuery` has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    version: u32,
    sha256_hash: String,
}

/// Why a list of documents cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file cannot be read.
    #[error("graphql.documents_file {path}: {cause}")]
    Unreadable {
        /// As configured.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It is no list.
    #[error(
        "graphql.documents_file {path}: {cause}; it is a JSON object of documents by their ids, or an Apollo persisted query \
         manifest"
    )]
    NoList {
        /// As configured.
        path: String,
        /// Where it goes wrong.
        cause: serde_json::Error,
    },
}

/// The two ways that tools write a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum List {
    Apollo { operations: Vec<Listed> },
    ById(HashMap<String, String>),
}

#[derive(Deserialize)]
struct Listed {
    id: String,
    body: String,
}

impl Persisted {
    /// As configured; reads the list.
    pub fn open(settings: &config::GraphQl) -> Result<Persisted, ListError> {
        let path = &settings.documents_file;
        let mut listed = HashMap::new();
        if !path.is_empty() {
            let text = std::fs::read(path).map_err(|cause| ListError::Unreadable {
                path: path.clone(),
                cause,
            })?;
            let list = serde_json::from_slice(&text).map_err(|cause| ListError::NoList {
                path: path.clone(),
                cause,
            })?;
            let documents: Vec<(String, String)> = match list {
                List::Apollo { operations } => operations.into_iter().map(|one| (one.id, one.body)).collect(),
                List::ById(documents) => documents.into_iter().collect(),
            };
            for (id, text) in documents {
                let text: Arc<str> = text.into();
                listed.insert(hash_of(&text), text.clone());
                listed.insert(id, text);
            }
        }
        Ok(Persisted(Arc::new(Inner {
            mode: settings.persisted,
            remembered: Cache::with_weighter(1000, REMEMBERED_BYTES, Bytes),
            listed,
        })))
    }

    /// Puts the document that a request names into it, as if it had come whole, and refuses one that is not served. Gives
    /// the hash of one that is to be [remembered](Persisted::remember).
    pub fn fill_in(&self, request: &mut Request) -> Result<Option<String>, Error> {
        let named = request.extensions.get("persistedQuery").map(named).transpose()?;
        let new = match (self.0.mode, named) {
            (Mode::Off | Mode::Automatic, None) => None,
            (Mode::Off, Some(_)) if !request.query.is_empty() => None,
            (Mode::Off, Some(_)) => return Err(Error::PersistedQueryNotFound),
            (Mode::Automatic, Some(id)) => self.recall(&id, request)?,
            (Mode::Only, named) => {
                let id = named.unwrap_or_else(|| hash_of(&request.query));
                let listed = self.listed(&id);
                let listed = listed.filter(|text| request.query.is_empty() || *request.query == ***text);
                request.query = listed.ok_or(NOT_LISTED)?.to_string();
                None
            }
        };
        request.extensions.remove("persistedQuery");
        Ok(new)
    }

    /// Remembers a document that came with its hash.
    pub fn remember(&self, hash: String, text: &str) {
        self.0.remembered.insert(hash, text.into());
    }

    fn listed(&self, id: &str) -> Option<&Arc<str>> {
        let listed = &self.0.listed;
        listed.get(id).or_else(|| listed.get(&id.to_ascii_lowercase()))
    }

    fn recall(&self, id: &str, request: &mut Request) -> Result<Option<String>, Error> {
        let hash = id.to_ascii_lowercase();
        if request.query.is_empty() {
            let known = self.listed(id).cloned();
            let known = known.or_else(|| self.0.remembered.get(&hash));
            request.query = known.ok_or(Error::PersistedQueryNotFound)?.to_string();
            return Ok(None);
        }
        match hash_of(&request.query) == hash {
            true => Ok(Some(hash)),
            false => Err(Error::BadUserInput(
                "persistedQuery.sha256Hash is not the SHA-256 of the query".into(),
            )),
        }
    }
}

const NOT_LISTED: Error =
    Error::Forbidden("only documents of this server's list are served, and this is none of them");

fn named(extension: &Value) -> Result<String, Error> {
    let wrong = |what: String| Error::BadUserInput(format!("extensions.persistedQuery: {what}"));
    let named: Named =
        async_graphql::from_value(extension.clone()).map_err(|error| wrong(error.to_string()))?;
    match named.version {
        1 => Ok(named.sha256_hash),
        other => Err(wrong(format!("there is no version {other}, only 1"))),
    }
}

fn hash_of(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
