//! What somebody wants a token to say, and for how long.

use chrono::{DateTime, TimeDelta, Utc};

use super::issue::IssueError;
use crate::graphql::access::Role;
use crate::ids::UserId;

/// The longest that a token may last. Nobody can take one back before.
pub const MOST: TimeDelta = TimeDelta::days(3_660);

/// What a token is to say.
#[derive(Debug, Clone)]
pub struct Wanted {
    user: Option<UserId>,
    role: Role,
    lasts: TimeDelta,
}

impl Wanted {
    /// For this user in this role, a USER if none is named, for so long.
    pub fn new(user: Option<UserId>, role: Option<&str>, lasts: TimeDelta) -> Result<Wanted, IssueError> {
        let role = match role {
            None => Role::User,
            Some(role) => Role::trusted(role).ok_or_else(|| IssueError::Role(role.to_owned()))?,
        };
        match (role, &user) {
            (Role::User, None) => Err(IssueError::NoUser),
            _ => Ok(Wanted { user, role, lasts }),
        }
    }

    /// Whom it names.
    pub fn user(&self) -> Option<&UserId> {
        self.user.as_ref()
    }

    /// What it trusts them with.
    pub fn role(&self) -> Role {
        self.role
    }

    /// When a token made `now` expires.
    pub fn expires_at(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + self.lasts
    }
}

/// A duration as `90s`, `15m`, `1h` or `30d`.
pub fn duration(text: &str) -> Result<TimeDelta, IssueError> {
    let bad = || IssueError::Duration(text.to_owned());
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(bad)?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    let number: u32 = number.parse().map_err(|_| bad())?;
    let lasts = TimeDelta::try_seconds(i64::from(number) * seconds);
    let fits = lasts.filter(|lasts| (TimeDelta::seconds(1)..=MOST).contains(lasts));
    fits.ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        assert_eq!(duration("90s").unwrap(), TimeDelta::seconds(90));
        assert_eq!(duration("15m").unwrap(), TimeDelta::minutes(15));
        assert_eq!(duration("1h").unwrap(), TimeDelta::hours(1));
        assert_eq!(duration("3660d").unwrap(), MOST);
        for bad in [
            "",
            "h",
            "1",
            "0s",
            "-1h",
            "1.5h",
            "1 h",
            "1w",
            "1ü",
            "3661d",
            "99999999999d",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
