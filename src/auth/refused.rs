//! Why credentials are refused.

use crate::ids::BadName;

/// Why nobody is let in, in words for whoever holds the credentials. None of them says what a good token would bear.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Credentials of another kind.
    #[error("the credentials are no bearer token: send `Authorization: Bearer TOKEN`")]
    NotBearer,
    /// No JWT, or one that is not signed.
    #[error("the token is no signed JWT")]
    Malformed,
    /// No key here has signed it.
    #[error("the token is not signed by a key that is known here")]
    Signature,
    /// It was good once.
    #[error("the token has expired")]
    Expired,
    /// It will be good.
    #[error("the token is not valid yet")]
    NotYet,
    /// A token without an end would be good for ever.
    #[error("the token does not say when it expires: it needs the claim exp, a number of seconds")]
    NoExpiry,
    /// Somebody else has issued it.
    #[error("the token is of another issuer")]
    Issuer,
    /// It is meant for somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// Nobody is named.
    #[error("the token names no user: it needs the claim {0}, a text")]
    NoUser(String),
    /// Who is named cannot be.
    #[error("the token names a user who cannot be: {0}")]
    BadUser(#[from] BadName),
    /// A role that there is not.
    #[error("the token gives a role that is none of USER, ANALYST, SERVICE, ADMIN")]
    Role,
    /// What a caller says of itself in `--dev` makes no sense.
    #[error("{0}")]
    Said(String),
}
