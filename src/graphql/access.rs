//! Who acts for whom.
//!
//! Owns the roles, and how a resolver asks whether its caller may: by the rule that its field declares ([`super::rules`]).
//! Where a caller comes from is [`crate::auth`]'s.

use async_graphql::{Context, Enum, ID};

use super::AppContext;
use super::rules::Askers;
use crate::error::Error;
use crate::ids::UserId;
use crate::leaderboard::Board;

/// What a caller is trusted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum Role {
    /// Nobody is signed in.
    Anonymous,
    /// A person: acts for itself.
    User,
    /// As USER, and reads figures.
    Analyst,
    /// A backend, never a browser: acts for anybody.
    Service,
    /// Like SERVICE, and erases.
    Admin,
}

impl Role {
    /// The role of that name, if it is one that somebody can be trusted with: spelled exactly so, since a host
    /// application's own role "admin" need not mean ours.
    pub fn trusted(name: &str) -> Option<Role> {
        let roles = [Role::User, Role::Analyst, Role::Service, Role::Admin];
        roles.into_iter().find(|role| role.name() == name)
    }

    /// Its name, as the schema spells it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Anonymous => "ANONYMOUS",
            Role::User => "USER",
            Role::Analyst => "ANALYST",
            Role::Service => "SERVICE",
            Role::Admin => "ADMIN",
        }
    }
}

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The signed-in user, if the caller is one.
    pub user: Option<UserId>,
    /// What the caller is trusted with.
    pub role: Role,
}

impl Caller {
    /// Nobody.
    pub fn anonymous() -> Caller {
        Caller {
            user: None,
            role: Role::Anonymous,
        }
    }

    /// Names the caller where its keys must not mix with another's: the user, or the role of a backend.
    pub fn name(&self) -> String {
        match &self.user {
            Some(user) => format!("{:?} {user}", self.role),
            None => format!("{:?}", self.role),
        }
    }

    fn acts_for_anybody(&self) -> bool {
        matches!(self.role, Role::Service | Role::Admin)
    }
}

/// The caller of this request.
pub fn caller<'a>(ctx: &Context<'a>) -> &'a Caller {
    static NOBODY: Caller = Caller {
        user: None,
        role: Role::Anonymous,
    };
    ctx.data_opt::<Caller>().unwrap_or(&NOBODY)
}

/// Whether the caller may ask the field of `ctx`, by the rule that it declares.
pub fn allowed(ctx: &Context<'_>) -> Result<Askers, Error> {
    let rule = Askers::of(ctx.field().name())?;
    rule.admit(caller(ctx), ctx.app().settings.auth.public_reads)?;
    Ok(rule)
}

/// The user that a field is about: `user_id`, or the viewer if it is left out. Its own, or anybody for a backend.
pub fn acting_for(ctx: &Context<'_>, user_id: Option<ID>) -> Result<UserId, Error> {
    allowed(ctx)?;
    let (caller, user) = (caller(ctx), named(ctx, user_id)?);
    if caller.acts_for_anybody() || caller.user.as_ref() == Some(&user) {
        Ok(user)
    } else {
        Err(Error::Forbidden(
            "this is another user's; a backend with the role SERVICE may act for anybody",
        ))
    }
}

/// The user that a public field is about: `user_id`, or the viewer if it is left out.
pub fn named(ctx: &Context<'_>, user_id: Option<ID>) -> Result<UserId, Error> {
    match (user_id, &caller(ctx).user) {
        (Some(id), _) => Ok(UserId::parse(&id)?),
        (None, Some(user)) => Ok(user.clone()),
        (None, None) if caller(ctx).role == Role::Anonymous => {
            Err(Error::Unauthenticated("sign in first, or name a user".into()))
        }
        (None, None) => Err(Error::BadUserInput(
            "a caller who is no user names one: add userId".into(),
        )),
    }
}

/// Scores come from a backend, unless the board takes its users' own: a score that a client names itself is a cheat's.
pub fn scoring_for(ctx: &Context<'_>, board: &Board, user_id: Option<ID>) -> Result<UserId, Error> {
    allowed(ctx)?;
    if board.user_writes || caller(ctx).acts_for_anybody() {
        acting_for(ctx, user_id)
    } else {
        Err(Error::Forbidden(
            "scores of this board come from a backend with the role SERVICE",
        ))
    }
}

/// Profiles come from a backend, unless users may write their own.
pub fn profiling(ctx: &Context<'_>, user_id: Option<ID>) -> Result<UserId, Error> {
    allowed(ctx)?;
    if ctx.app().settings.profile.user_writes || caller(ctx).acts_for_anybody() {
        acting_for(ctx, user_id)
    } else {
        Err(Error::Forbidden(
            "profiles come from a backend with the role SERVICE",
        ))
    }
}

/// Only a backend may choose another operator than the board's.
pub fn choosing_operator(ctx: &Context<'_>) -> Result<(), Error> {
    if caller(ctx).acts_for_anybody() {
        Ok(())
    } else {
        Err(Error::Forbidden(
            "only a backend with the role SERVICE may choose the operator",
        ))
    }
}
