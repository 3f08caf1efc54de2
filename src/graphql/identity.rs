//! The face of identity and of the day: `viewer`, `businessDay`.

use async_graphql::{Context, Object, SimpleObject};
use chrono::{DateTime, Utc};

use super::AppContext;
use super::access::{self, Role};
use super::rules::{Askers, allowed};
use super::scalars::Date;
use crate::user::graphql::User;

/// Who is asking.
#[derive(SimpleObject)]
pub struct Viewer {
    /// The signed-in user; null for anonymous callers and for backends that are no user.
    user: Option<User>,
    /// What the caller is trusted with.
    role: Role,
}

/// The business day in force.
#[derive(Debug, SimpleObject)]
pub struct BusinessDay {
    /// Its calendar date.
    date: Date,
    /// The business time zone, an IANA name.
    time_zone: String,
    /// When it began, inclusive: at `day.starts_at` by the zone's clock.
    starts_at: DateTime<Utc>,
    /// When it ends and the next one begins, exclusive. Not always 24 hours later: clocks change.
    ends_at: DateTime<Utc>,
}

/// Who is asking, and which day it is.
#[derive(Default)]
pub struct IdentityQuery;

#[Object]
impl IdentityQuery {
    /// Who is asking. For anybody.
    #[graphql(directive = allowed::apply(Askers::Anybody))]
    async fn viewer(&self, ctx: &Context<'_>) -> Viewer {
        let caller = access::caller(ctx);
        Viewer {
            user: caller.user.as_ref().map(User::from),
            role: caller.role,
        }
    }

    /// The business day in force. For anybody.
    #[graphql(directive = allowed::apply(Askers::Anybody))]
    async fn business_day(&self, ctx: &Context<'_>) -> BusinessDay {
        let zone = &ctx.app().zone;
        let today = zone.date_of(ctx.now());
        BusinessDay {
            date: Date::from(today),
            time_zone: zone.name().into(),
            starts_at: zone.start_of(today),
            ends_at: zone.end_of(today),
        }
    }
}
