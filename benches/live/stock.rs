//! The stock of async-graphql: its schema, its WebSocket service, a stream for each subscriber.
//!
//! The state is built once a change; execution and serialisation happen for every subscriber, as the stock has it.

use std::sync::Arc;

use async_graphql::{EmptyMutation, ID, Object, Schema, Subscription};
use async_graphql_axum::GraphQLSubscription;
use axum::Router;
use futures::{Stream, stream};
use tokio::sync::watch;

use crate::state::LeaderboardUpdate;

type States = watch::Receiver<Arc<LeaderboardUpdate>>;

pub fn router(states: States) -> Router {
    let schema = Schema::new(Queries, EmptyMutation, Subscriptions { states });
    Router::new().route_service("/graphql", GraphQLSubscription::new(schema))
}

struct Queries;

#[Object]
impl Queries {
    async fn ready(&self) -> bool {
        true
    }
}

struct Subscriptions {
    states: States,
}

#[Subscription]
impl Subscriptions {
    /// The state as it is, then each newer one; whoever is slow gets the newest.
    async fn leaderboard_changed(
        &self,
        #[graphql(name = "board")] _board: ID,
        #[graphql(name = "first", default = 10)] _first: i32,
    ) -> impl Stream<Item = Arc<LeaderboardUpdate>> + use<> {
        let mut states = self.states.clone();
        states.mark_changed();
        stream::unfold(states, |mut states| async move {
            states.changed().await.ok()?;
            let newest = states.borrow_and_update().clone();
            Some((newest, states))
        })
    }
}
