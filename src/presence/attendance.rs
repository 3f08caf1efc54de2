//! Sockets that count as sessions, since they asked for it.
//!
//! Owns who of this node's sockets is where, and beats for them: each at once when it comes, all of them in batches every
//! third of the window by the Clock, and a leave when the last socket of a place has closed. A place that was refused, since
//! its user had too many rooms or sessions, is tried again when another of the user's places on this node is left, and
//! whenever all are beaten for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;

use super::Place;
use super::batches::Sighting;
use super::seats::Seats;
use crate::app::App;
use crate::ids::{BadName, RoomId, SessionId, UserId};
use crate::keyspace::Unavailable;
use crate::random::unique_name;

/// How often the Clock is asked whether it is time to beat.
const LOOK: Duration = Duration::from_millis(250);

/// The sockets of this node that count as sessions.
#[derive(Clone)]
pub struct Attendance(Arc<Shared>);

struct Shared {
    /// Names this node among all: the same session may have sockets on several, and each leaves for its own only.
    node: Arc<str>,
    seats: Mutex<Seats>,
    changed: Notify,
    /// One at a time tells Redis, so that a beat never overtakes a leave.
    telling: tokio::sync::Mutex<()>,
}

/// One socket's place, as long as this lives.
pub struct Seat {
    attendance: Attendance,
    sighting: Sighting,
}

/// What `connection_init` says of presence.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    room: Option<String>,
    session: Option<String>,
}

impl Default for Attendance {
    fn default() -> Attendance {
        Attendance(Arc::new(Shared {
            node: unique_name().into(),
            seats: Mutex::default(),
            changed: Notify::new(),
            telling: tokio::sync::Mutex::default(),
        }))
    }
}

impl Attendance {
    /// The place that `presence` in the payload of a `connection_init` asks for; `None` if it does not.
    pub fn asked(&self, payload: &Value) -> Result<Option<Place>, String> {
        let Some(presence) = payload.get("presence").filter(|asked| !asked.is_null()) else {
            return Ok(None);
        };
        let asked = Asked::deserialize(presence).map_err(|error| format!("presence: {error}"))?;
        let place = || {
            Ok(Place {
                room: asked.room.as_deref().map(RoomId::parse).transpose()?,
                session: asked.session.as_deref().map(SessionId::parse).transpose()?,
                node: Some(self.0.node.clone()),
            })
        };
        let place: Result<Place, BadName> = place();
        place.map(Some).map_err(|bad| format!("presence: {bad}"))
    }

    /// One more socket of `user` is at `place`.
    pub fn take(&self, user: UserId, place: Place) -> Seat {
        let sighting = (user, place);
        self.seats().take(&sighting);
        self.0.changed.notify_one();
        Seat {
            attendance: self.clone(),
            sighting,
        }
    }

    /// Tells Redis who came and went since, and if it is time who is still there. What fails is done the next time.
    pub async fn settle(&self, app: &App) -> Result<(), Unavailable> {
        let _alone = self.0.telling.lock().await;
        let now = app.clock.now();
        let news = self.seats().news(now, app.presence.window());
        // Leaves come first: each may make room for another place of its user.
        let told = async {
            app.presence.leave_all(&news.gone, now).await?;
            app.presence.heartbeat_all(&news.here, now).await
        };
        let told = told.await;
        self.seats().told(news, now, told)
    }

    /// All have gone, also those whose sockets have not ended yet: the server stops.
    pub async fn leave(&self, app: &App) -> Result<(), Unavailable> {
        self.seats().empty();
        self.settle(app).await
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.attendance.seats().free(&self.sighting);
        self.attendance.0.changed.notify_one();
    }
}

/// Beats for the sockets as long as the app is in use.
pub async fn keep(app: Weak<App>) {
    let Some(attendance) = app.upgrade().map(|app| app.attendance.clone()) else {
        return;
    };
    while let Some(app) = app.upgrade() {
        let settled = attendance.settle(&app).await;
        drop(app);
        if let Err(error) = settled {
            tracing::debug!(%error, "presence of sockets will be told again");
            tokio::time::sleep(LOOK).await;
        }
        tokio::select! {
            () = attendance.0.changed.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
