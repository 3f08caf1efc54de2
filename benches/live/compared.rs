//! The two servers that this program is itself when it is started with a role: [`stock`] and [`shared`].
//!
//! Owns what they have in common with each other and with `tallyboard serve`: the runtime, one listener at the Redis
//! channel that builds the state once a change and hands it out through a `watch` channel, and the line that says where
//! they listen.

use axum::Router;
use futures::StreamExt;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::state::{BASE, LeaderboardUpdate};
use crate::{shared, stock};

/// Names the role of a process.
pub const ROLE: &str = "LIVE_ROLE";

/// Where it finds Redis.
pub const REDIS_SOCKET: &str = "REDIS_SOCKET";

/// The channel on which the number of a change is published.
pub const CHANNEL: &str = "points-changed";

/// The role this process was started for, if it is one to compare with.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Serves until it is killed.
#[tokio::main]
pub async fn serve(role: &str) {
    let router = match role {
        "stock" => stock::router(states(|sequence| LeaderboardUpdate::after(sequence).into()).await),
        "shared" => {
            shared::router(states(|sequence| LeaderboardUpdate::after(sequence).message().into()).await)
        }
        other => panic!("there is no role {other:?}"),
    };
    listen(router).await;
}

async fn listen(router: Router) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on http://{}", listener.local_addr().unwrap());
    axum::serve(listener, router).await.unwrap();
}

/// The newest state, built by `build` from the number of the last change.
async fn states<T: Clone + Send + Sync + 'static>(build: fn(i64) -> T) -> watch::Receiver<T> {
    let socket = std::env::var(REDIS_SOCKET).unwrap();
    let client = redis::Client::open(format!("unix://{socket}")).unwrap();
    let mut changes = client.get_async_pubsub().await.unwrap();
    changes.subscribe(CHANNEL).await.unwrap();
    let (newest, states) = watch::channel(build(BASE));
    tokio::spawn(async move {
        let mut messages = changes.into_on_message();
        while let Some(message) = messages.next().await {
            newest.send_replace(build(message.get_payload().unwrap()));
        }
    });
    states
}
