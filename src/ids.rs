//! Names that come from outside, checked once at the edge: users, boards, rooms, sessions, points.
//!
//! Owns what such a name may look like and the words in which a wrong one is refused. Dates are [`crate::day`]'s.

use std::fmt;
use std::sync::Arc;

/// The largest whole number that JSON clients keep exact: 2^53 - 1.
pub const MAX_SAFE_INT: i64 = (1 << 53) - 1;

/// The longest opaque id, in bytes.
const MAX_ID: usize = 128;

/// Why a name was refused, in words for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(String);

impl BadName {
    /// Refused with this reason.
    pub fn new(reason: String) -> BadName {
        BadName(reason)
    }
}

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes `text` as it is, if it is 1 to 128 printable ASCII characters without a space.
            pub fn parse(text: &str) -> Result<Self, BadName> {
                opaque($what, text).map(|text| Self(text.into()))
            }

            /// The id as the host application wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }
    };
}

opaque_id!(
    /// A user: the host application's own opaque id. Nothing is derived from it.
    UserId,
    "a user id"
);
opaque_id!(
    /// A room in which users are seen.
    RoomId,
    "a room id"
);
opaque_id!(
    /// A tab or device of one user.
    SessionId,
    "a session id"
);

fn opaque<'t>(what: &str, text: &'t str) -> Result<&'t str, BadName> {
    if text.is_empty() || text.len() > MAX_ID {
        return Err(BadName(format!(
            "{what} has 1 to {MAX_ID} characters, this one has {}",
            text.chars().count()
        )));
    }
    match text.chars().find(|c| !c.is_ascii_graphic()) {
        None => Ok(text),
        Some(' ') => Err(BadName(format!("{what} has no spaces: {text:?}"))),
        Some(odd) => Err(BadName(format!(
            "{what} is printable ASCII, and {odd:?} is not: {text:?}"
        ))),
    }
}

impl UserId {
    /// The id that stands before all others.
    pub fn first() -> UserId {
        UserId("!".into())
    }
}

/// A board's id, from the configuration: part of key names and of leaderboard ids.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardId(Arc<str>);

impl BoardId {
    /// 1 to 64 characters of `a-z`, `0-9`, `_` and `-`, the first a letter or digit.
    pub fn parse(text: &str) -> Result<BoardId, BadName> {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|c| plain(c) || c == b'_' || c == b'-')
            && text.bytes().next().is_some_and(plain);
        if fits {
            Ok(BoardId(text.into()))
        } else {
            Err(BadName(format!(
                "a board id has 1 to 64 characters of a-z, 0-9, _ and -, and starts with a letter or digit: {text:?}"
            )))
        }
    }

    /// The id as configured.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BoardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_is_what_the_host_application_says_within_128_printable_characters() {
        for good in ["a", "auth0|5f7c", "4294967295", &"x".repeat(128)] {
            assert_eq!(UserId::parse(good).unwrap().as_str(), good);
        }
        for (bad, said) in [
            (String::new(), "has 1 to 128 characters, this one has 0"),
            ("x".repeat(129), "has 1 to 128 characters, this one has 129"),
            ("a b".into(), "has no spaces"),
            ("käthe".into(), "printable ASCII"),
            ("a\n".into(), "printable ASCII"),
        ] {
            let error = UserId::parse(&bad).unwrap_err().to_string();
            assert!(error.contains(said), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_board_id_is_fit_for_key_names_and_paths() {
        assert!(BoardId::parse("weekly-points_2").is_ok());
        for bad in ["", "Points", "a/b", "-a", "a b", &"x".repeat(65)] {
            assert!(BoardId::parse(bad).is_err(), "{bad:?}");
        }
    }
}
