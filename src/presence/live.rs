//! What a subscriber of an online count gets: the count, again whenever it has changed.
//!
//! Users go by the mere passing of time, so nobody can say when the count changes: it is looked at every second.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::{Context, ID, SimpleObject, Subscription};
use chrono::{DateTime, Utc};
use futures::Stream;
use tokio::sync::watch;

use super::graphql::counted_room;
use super::watched::{Counted, Watcher};
use crate::app::App;
use crate::error::Error;
use crate::graphql::AppContext;
use crate::graphql::access;
use crate::graphql::rules::{Askers, allowed};
use crate::graphql::scalars::SafeInt;
use crate::graphql::shared::shared;
use crate::live::{Followed, Pulse, Step, UpdateCause, follow};

/// How often it is looked at.
pub const EVERY_SECOND: Duration = Duration::from_secs(1);

/// How many users are online somewhere.
#[derive(Debug, Clone, SimpleObject)]
#[graphql(directive = shared::apply(None))]
pub struct OnlineCount {
    /// In which room they are; null: on the whole site.
    room: Option<ID>,
    /// How many they are, each user once.
    count: SafeInt,
    /// When this was first found.
    at: DateTime<Utc>,
}

struct Followers {
    app: Arc<App>,
    watcher: Watcher,
    /// Nothing but time wakes it.
    still: watch::Sender<Pulse>,
}

impl Followed for Followers {
    type State = Counted;
    type Update = OnlineCount;

    fn pulses(&self) -> watch::Receiver<Pulse> {
        self.still.subscribe()
    }

    fn drifts(&self) -> Option<Duration> {
        Some(EVERY_SECOND)
    }

    async fn read(&self, before: Option<(&Self::State, u64)>, _pulse: &Pulse) -> Result<Self::State, Error> {
        let Some((before, _)) = before else {
            return Ok(self.watcher.first(&self.app.clock).await?);
        };
        let counted = self.watcher.next(&self.app.clock).await?;
        // Whoever joins later is told since when it has been so.
        Ok(if counted.0 == before.0 { *before } else { counted })
    }

    fn step(&self, before: &Self::State, now: &Self::State) -> Step {
        match before.0 == now.0 {
            true => Step::Same,
            false => Step::Changed,
        }
    }

    fn update(&self, _cause: UpdateCause, _before: Option<&Self::State>, now: &Self::State) -> OnlineCount {
        OnlineCount {
            room: self.watcher.room().map(|room| ID(room.to_string())),
            count: now.0.into(),
            at: now.1,
        }
    }
}

/// Watching presence. Anybody may, unless `auth.public_reads` is off.
#[derive(Default)]
pub struct PresenceSubscription;

#[Subscription]
impl PresenceSubscription {
    /// How many users are online: the count as it stands first, then whenever it has changed, looked at once a second.
    /// For anybody, unless `auth.public_reads` is off.
    #[graphql(directive = allowed::apply(Askers::Readers), directive = shared::apply(None))]
    async fn online_count_changed(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "In this room; left out: on the whole site.")] room: Option<ID>,
    ) -> async_graphql::Result<impl Stream<Item = OnlineCount> + use<>> {
        access::allowed(ctx)?;
        let followers = Followers {
            app: ctx.data_unchecked::<Arc<App>>().clone(),
            watcher: Watcher::new(&ctx.app().presence, counted_room(ctx, room)?),
            still: watch::channel(Pulse::default()).0,
        };
        Ok(follow(ctx, followers))
    }
}
