//! The face of users: `user`, `setProfile`, and the `User` that other types show.

use std::collections::HashMap;

use async_graphql::dataloader::{DataLoader, Loader};
use async_graphql::{Context, ID, InputObject, MaybeUndefined, Object};

use super::profile::{self, Change};
use super::{Profile, Profiles};
use crate::error::Error;
use crate::graphql::rules::{Askers, allowed};
use crate::graphql::shared::shared;
use crate::graphql::{AppContext, access, answer, answer_optional};
use crate::ids::{BadName, UserId};

/// Somebody who checks in, scores or is seen.
#[derive(Debug, Clone)]
pub struct User {
    id: UserId,
}

impl From<&UserId> for User {
    fn from(user: &UserId) -> User {
        User { id: user.clone() }
    }
}

/// Somebody who checks in, scores or is seen.
#[Object(directive = shared::apply(None))]
impl User {
    /// The host application's own opaque id: 1 to 128 printable ASCII characters without a space.
    async fn id(&self) -> ID {
        ID(self.id.as_str().to_owned())
    }

    /// What to call the user, 1 to 100 characters; null if the host application has not said.
    async fn name(&self, ctx: &Context<'_>) -> Option<async_graphql::Result<String>> {
        answer_optional(async { Ok(self.profile(ctx).await?.name) }).await
    }

    /// Where a picture is, an http or https address; null if the host application has not said.
    async fn avatar_url(&self, ctx: &Context<'_>) -> Option<async_graphql::Result<String>> {
        answer_optional(async { Ok(self.profile(ctx).await?.avatar_url) }).await
    }
}

impl User {
    async fn profile(&self, ctx: &Context<'_>) -> Result<Profile, Error> {
        let loader = ctx.data_unchecked::<DataLoader<ProfileLoader>>();
        loader
            .load_one(self.id.clone())
            .await
            .map(Option::unwrap_or_default)
            .map_err(Error::from)
    }
}

/// Fetches the profiles that fields of one execution ask for together.
pub struct ProfileLoader(pub Profiles);

impl Loader<UserId> for ProfileLoader {
    type Value = Profile;
    type Error = crate::keyspace::Unavailable;

    async fn load(&self, users: &[UserId]) -> Result<HashMap<UserId, Profile>, Self::Error> {
        Ok(users.iter().cloned().zip(self.0.of(users).await?).collect())
    }
}

/// A profile: what is left out stays, what is null is cleared.
#[derive(Debug, InputObject)]
pub struct ProfileInput {
    /// Who; left out: the viewer. Another only for SERVICE.
    user_id: Option<ID>,
    /// What to call the user: 1 to 100 characters.
    name: MaybeUndefined<String>,
    /// Where a picture is: an http or https address of at most 2,048 bytes.
    avatar_url: MaybeUndefined<String>,
}

fn change(
    value: MaybeUndefined<String>,
    check: fn(String) -> Result<String, BadName>,
) -> Result<Change, Error> {
    Ok(match value {
        MaybeUndefined::Undefined => Change::Keep,
        MaybeUndefined::Null => Change::Clear,
        MaybeUndefined::Value(text) => Change::Set(check(text)?),
    })
}

/// Reading users.
#[derive(Default)]
pub struct UserQuery;

#[Object]
impl UserQuery {
    /// A user by id; null for an id that has never checked in, scored or been seen. For anybody, unless
    /// `auth.public_reads` is off.
    #[graphql(directive = allowed::apply(Askers::Readers))]
    async fn user(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The host application's id: 1 to 128 printable ASCII characters without a space.")]
        id: ID,
    ) -> Option<async_graphql::Result<User>> {
        answer_optional(async {
            access::allowed(ctx)?;
            let user = UserId::parse(&id)?;
            Ok(ctx
                .app()
                .profiles
                .is_known(&user)
                .await?
                .then(|| User::from(&user)))
        })
        .await
    }
}

/// Writing users.
#[derive(Default)]
pub struct UserMutation;

#[Object]
impl UserMutation {
    /// Set a user's name and avatar. For SERVICE, and for users themselves where `profile.user_writes` is on.
    #[graphql(directive = allowed::apply(Askers::ProfileWriters))]
    async fn set_profile(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whose profile, and what changes in it.")] input: ProfileInput,
    ) -> Option<async_graphql::Result<User>> {
        answer(async {
            let user = access::profiling(ctx, input.user_id)?;
            let (name, avatar) = (
                change(input.name, profile::name)?,
                change(input.avatar_url, profile::avatar_url)?,
            );
            ctx.app().profiles.set(&user, &name, &avatar, ctx.now()).await?;
            Ok(User::from(&user))
        })
        .await
    }
}
