//! Names and avatars: written by the host application, read for a page at once.
//!
//! Owns what a name and an avatar may be and the keys of `set_profile.lua`. A profile lies in a bucket by the user's id,
//! so reading a page of them takes no look at rows: one pipeline.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::ids::{BadName, UserId};
use crate::keyspace::mutation::MUTATION;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Call, Keyspace, Memory, Operation, Request, Script, Unavailable, reply, rows};
use crate::leaderboard::Leaderboards;
use crate::leaderboard::touch::TOUCH;

static SET_PROFILE: Script = Script::new(
    "set_profile",
    &[NUMBERS, MUTATION, TOUCH, include_str!("set_profile.lua")],
);

/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// The longest avatar address, in bytes.
const MAX_URL: usize = 2_048;

/// What others see of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// What to call the user.
    pub name: Option<String>,
    /// Where a picture is.
    pub avatar_url: Option<String>,
}

/// What becomes of one part of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It stays.
    Keep,
    /// It goes.
    Clear,
    /// It becomes this.
    Set(String),
}

impl Change {
    fn told(&self) -> [&str; 2] {
        match self {
            Change::Keep => ["keep", ""],
            Change::Clear => ["clear", ""],
            Change::Set(value) => ["set", value],
        }
    }
}

/// A name: 1 to 100 characters, no control characters.
pub fn name(text: String) -> Result<String, BadName> {
    let length = text.chars().count();
    if !(1..=MAX_NAME).contains(&length) {
        return Err(BadName::new(format!(
            "a name has 1 to {MAX_NAME} characters, this one has {length}"
        )));
    }
    match text.chars().find(|c| c.is_control()) {
        None => Ok(text),
        Some(odd) => Err(BadName::new(format!(
            "a name has no control characters, this one has {odd:?}"
        ))),
    }
}

/// An avatar's address: http or https, at most 2,048 bytes.
pub fn avatar_url(text: String) -> Result<String, BadName> {
    let web = text.starts_with("https://") || text.starts_with("http://");
    if web && text.len() <= MAX_URL && text.chars().all(|c| c.is_ascii_graphic()) {
        Ok(text)
    } else {
        Err(BadName::new(format!(
            "an avatar is an http or https address of at most {MAX_URL} bytes without spaces"
        )))
    }
}

/// The store of profiles.
#[derive(Clone)]
pub struct Profiles {
    keyspace: Arc<Keyspace>,
    boards: Leaderboards,
}

impl Profiles {
    /// The profiles in that keyspace; `boards` show them.
    pub fn new(keyspace: Arc<Keyspace>, boards: Leaderboards) -> Profiles {
        Profiles { keyspace, boards }
    }

    /// Changes a user's profile; the boards that show the user have changed with it.
    pub async fn set(
        &self,
        user: &UserId,
        name: &Change,
        avatar: &Change,
        now: DateTime<Utc>,
    ) -> Result<(), Unavailable> {
        let operation = Operation::unique(now);
        let complete = |call: Call, _| {
            let key = self.key(user);
            let fields = [(field_of_name(user), name), (field_of_avatar(user), avatar)];
            let call = fields.iter().fold(call.key(key), |call, (field, change)| {
                let [how, value] = change.told();
                call.arg(field).arg(how).arg(value)
            });
            self.boards.touch_call(call, now)
        };
        self.keyspace
            .mutate(&SET_PROFILE, user, Memory::Operation(&operation), complete)
            .await?;
        Ok(())
    }

    /// Whether the user has ever written.
    pub async fn is_known(&self, user: &UserId) -> Result<bool, Unavailable> {
        Ok(self.keyspace.row(user).await?.is_some())
    }

    /// The profiles of many users, in one pipeline; an empty one where there is none.
    pub async fn of(&self, users: &[UserId]) -> Result<Vec<Profile>, Unavailable> {
        let mut request = Request::new();
        for user in users {
            let mut get = redis::cmd("HMGET");
            get.arg(self.key(user))
                .arg(field_of_name(user))
                .arg(field_of_avatar(user));
            request.command(get);
        }
        let replies = self.keyspace.run(&request).await?.into_iter();
        replies
            .map(|value| {
                let (name, avatar_url) = reply(value)?;
                Ok(Profile { name, avatar_url })
            })
            .collect()
    }

    fn key(&self, user: &UserId) -> String {
        self.keyspace
            .keys()
            .profile(self.keyspace.partition_of(user), rows::bucket_of(user))
    }
}

fn field_of_name(user: &UserId) -> String {
    format!("name {user}")
}

fn field_of_avatar(user: &UserId) -> String {
    format!("avatar {user}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_avatars_are_what_a_page_can_show() {
        assert!(name("Amélie 签到".into()).is_ok());
        for bad in ["", "a\nb", &"x".repeat(101)] {
            assert!(name(bad.to_owned()).is_err(), "{bad:?}");
        }
        assert!(avatar_url("https://example.org/a.png?size=2".into()).is_ok());
        for bad in [
            "javascript:alert(1)",
            "//example.org/a.png",
            "https://a b",
            &format!("https://{}", "x".repeat(2_048)),
        ] {
            assert!(avatar_url(bad.to_owned()).is_err(), "{bad:?}");
        }
    }
}
