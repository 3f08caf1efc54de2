//! The look for messages that got lost.
//!
//! Owns the comparison of what followers have read with what Redis counts. A board that counts more than one of them has
//! read a while later was changed by a message that never came: its followers are told of a gap, and get the full state.

use std::sync::Weak;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{sleep, timeout};

use super::listener::Reading;
use crate::app::App;
use crate::keyspace::Unavailable;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(30);

/// How long a message that was sent may take to be heard and read.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// Looks, again and again, as long as the app is in use.
pub async fn keep(app: Weak<App>) {
    loop {
        sleep(EVERY).await;
        let Some(app) = app.upgrade() else { return };
        if let Err(error) = look(&app).await {
            tracing::debug!(%error, "the audit of versions will try again");
        }
    }
}

/// Looks once at every board that somebody follows.
pub async fn look(app: &App) -> Result<(), Unavailable> {
    for (board, mut followers) in app.changes.followed() {
        if followers.is_empty() {
            continue;
        }
        let counted = app.boards.version(&board).await?;
        // Who has been woken and did not come along yet, such as a slow client of the old protocol, has missed nothing; nor
        // has one who leaves meanwhile.
        let newest = app.changes.newest_pulse(&board);
        let caught_up = followers.iter_mut().map(|seen| async {
            let knows = |seen: &Reading| !seen.version.is_behind(&counted) || seen.pulse < newest;
            seen.wait_for(knows).await.is_ok()
        });
        if timeout(ON_ITS_WAY, join_all(caught_up)).await.is_err() && app.changes.hearing() {
            tracing::warn!(%board, "changes were missed: a message got lost");
            app.changes.missed(&board);
        }
    }
    Ok(())
}
