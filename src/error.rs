//! Failures as callers see them: the one place that maps an error to a code.
//!
//! Expected outcomes (already checked in, points out of range) are payload values and never come here. An [`Error`]
//! says whose fault it is: the caller's, with what to change, or ours, logged with its cause and shown without it.

use std::borrow::Cow;
use std::time::Duration;

use async_graphql::{Pos, ServerError};

use crate::auth::Refused;
use crate::day::DateError;
use crate::ids::BadName;
use crate::keyspace::Unavailable;
use crate::request_id::RequestId;

/// Why a field could not be answered.
///
/// It has no `Display` on purpose: async-graphql turns whatever can be displayed into an error without a code.
#[derive(Debug)]
pub enum Error {
    /// Nobody is signed in and the field needs somebody, or the credentials are no good.
    Unauthenticated(Cow<'static, str>),
    /// Somebody is signed in who may not do this.
    Forbidden(&'static str),
    /// An argument is wrong; the words say which and what would be right.
    BadUserInput(String),
    /// What was asked for does not exist.
    NotFound(String),
    /// A document was named that is not known here; the client sends it whole, as Apollo's protocol has it.
    PersistedQueryNotFound,
    /// The store cannot answer now; the same request may succeed later.
    Unavailable(Unavailable),
    /// There is no room at the moment.
    Full(&'static str),
    /// The caller has asked too much; after this time, in whole milliseconds, the same is served.
    RateLimited(Duration),
    /// A fault of ours.
    Internal(String),
}

impl Error {
    /// The value of `extensions.code`.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Unauthenticated(_) => "UNAUTHENTICATED",
            Error::Forbidden(_) => "FORBIDDEN",
            Error::BadUserInput(_) => "BAD_USER_INPUT",
            Error::NotFound(_) => "NOT_FOUND",
            Error::PersistedQueryNotFound => "PERSISTED_QUERY_NOT_FOUND",
            Error::Unavailable(_) | Error::Full(_) => "UNAVAILABLE",
            Error::RateLimited(_) => "RATE_LIMITED",
            Error::Internal(_) => "INTERNAL",
        }
    }
}

impl Error {
    /// As the error of a whole request, of which nothing was executed.
    pub fn of_request(self) -> ServerError {
        let mut error = async_graphql::Error::from(self).into_server_error(Pos::default());
        error.locations.clear();
        error
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        match refused {
            Refused::Said(what) => Error::BadUserInput(what),
            refused => Error::Unauthenticated(refused.to_string().into()),
        }
    }
}

impl From<BadName> for Error {
    fn from(bad: BadName) -> Error {
        Error::BadUserInput(bad.to_string())
    }
}

impl From<DateError> for Error {
    fn from(bad: DateError) -> Error {
        Error::BadUserInput(bad.to_string())
    }
}

impl From<Unavailable> for Error {
    fn from(cause: Unavailable) -> Error {
        match cause {
            Unavailable::Fault(what) => Error::Internal(what),
            cause => Error::Unavailable(cause),
        }
    }
}

/// A message that repeats what was sent repeats no more of it than anybody reads.
pub fn in_short(message: String) -> String {
    const MOST: usize = 400;
    match beginning(&message, MOST) {
        whole if whole.len() == message.len() => message,
        short => format!("{short}…"),
    }
}

/// As much of a text as fits `most` bytes.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl From<Error> for async_graphql::Error {
    fn from(error: Error) -> async_graphql::Error {
        use async_graphql::ErrorExtensions;
        let code = error.code();
        let wait = match error {
            Error::RateLimited(wait) => Some(wait.as_millis() as f64 / 1000.0),
            _ => None,
        };
        let message = match error {
            Error::Unauthenticated(what) => what.into_owned(),
            Error::Forbidden(what) | Error::Full(what) => what.to_owned(),
            Error::PersistedQueryNotFound => "PersistedQueryNotFound".to_owned(), // clients compare it
            Error::BadUserInput(what) | Error::NotFound(what) => what,
            Error::Internal(cause) => {
                // The id ties what the caller reports to what we logged, without showing our insides.
                let id = RequestId::current();
                tracing::error!(%id, cause, "internal error");
                format!("internal error {id}")
            }
            Error::Unavailable(cause) => {
                tracing::warn!(%cause, "refused as unavailable");
                "the store cannot be reached right now; try again".to_owned()
            }
            Error::RateLimited(wait) => {
                format!(
                    "too much was asked; the same is served in {} s",
                    wait.as_secs_f64()
                )
            }
        };
        async_graphql::Error::new(in_short(message)).extend_with(|_, extensions| {
            extensions.set("code", code);
            if let Some(seconds) = wait {
                extensions.set("retryAfter", seconds);
            }
        })
    }
}
