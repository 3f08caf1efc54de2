//! Sockets that count as sessions, since they asked for it.
//!
//! Owns who of this node's sockets is where, and beats for them: each at once when it comes, all of them in batches every
//! third of the window by the Clock, and a leave when the last socket of a place has closed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;

use super::Place;
use crate::app::App;
use crate::ids::{BadName, RoomId, SessionId, UserId};
use crate::keyspace::Unavailable;
use crate::random::unique_name;

/// How often the Clock is asked whether it is time to beat.
const LOOK: Duration = Duration::from_millis(250);

type Sighting = (UserId, Place);

/// The sockets of this node that count as sessions.
#[derive(Clone, Default)]
pub struct Attendance(Arc<Shared>);

#[derive(Default)]
struct Shared {
    seats: Mutex<Seats>,
    changed: Notify,
    /// One at a time tells Redis, so that a beat never overtakes a leave.
    telling: tokio::sync::Mutex<()>,
    /// The session of sockets that name none: theirs on this node.
    node: Mutex<Option<SessionId>>,
}

#[derive(Default)]
struct Seats {
    /// How many sockets are at each place.
    taken: HashMap<Sighting, usize>,
    /// Where somebody came or went, and Redis does not know yet.
    changed: HashSet<Sighting>,
    beaten_at: Option<DateTime<Utc>>,
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

impl Attendance {
    /// The place that `presence` in the payload of a `connection_init` asks for; `None` if it does not.
    pub fn asked(&self, payload: &Value) -> Result<Option<Place>, String> {
        let Some(presence) = payload.get("presence").filter(|asked| !asked.is_null()) else {
            return Ok(None);
        };
        let asked = Asked::deserialize(presence).map_err(|error| format!("presence: {error}"))?;
        let place = || {
            let room = asked.room.as_deref().map(RoomId::parse).transpose()?;
            let session = match asked.session.as_deref() {
                Some(session) => SessionId::parse(session)?,
                None => self.session_of_this_node()?,
            };
            Ok(Place {
                room,
                session: Some(session),
            })
        };
        let place: Result<Place, BadName> = place();
        place.map(Some).map_err(|bad| format!("presence: {bad}"))
    }

    fn session_of_this_node(&self) -> Result<SessionId, BadName> {
        let mut node = self.0.node.lock().unwrap_or_else(PoisonError::into_inner);
        match &*node {
            Some(session) => Ok(session.clone()),
            None => {
                let session = SessionId::parse(&format!("sockets-{}", unique_name()))?;
                Ok(node.insert(session).clone())
            }
        }
    }

    /// One more socket of `user` is at `place`.
    pub fn take(&self, user: UserId, place: Place) -> Seat {
        let sighting = (user, place);
        let mut seats = self.seats();
        *seats.taken.entry(sighting.clone()).or_default() += 1;
        seats.changed.insert(sighting.clone());
        drop(seats);
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
        let pause = app.presence.window() / 3;
        let (mut here, mut gone) = (Vec::new(), Vec::new());
        let all = {
            let mut seats = self.seats();
            let all = seats.beaten_at.is_none_or(|at| now - at >= pause || now < at);
            let changed = std::mem::take(&mut seats.changed);
            for sighting in changed {
                match seats.taken.contains_key(&sighting) {
                    true if all => {}
                    true => here.push(sighting),
                    false => gone.push(sighting),
                }
            }
            if all {
                here = seats.taken.keys().cloned().collect();
            }
            all
        };
        let done = async {
            app.presence.heartbeat_all(&here, now).await?;
            app.presence.leave_all(&gone, now).await
        };
        let done = done.await;
        let mut seats = self.seats();
        match &done {
            Ok(()) if all => seats.beaten_at = Some(now),
            Ok(()) => {}
            Err(_) => seats.changed.extend(here.into_iter().chain(gone)),
        }
        done
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.attendance.seats();
        if let Some(sockets) = seats.taken.get_mut(&self.sighting) {
            *sockets -= 1;
            if *sockets == 0 {
                seats.taken.remove(&self.sighting);
                seats.changed.insert(self.sighting.clone());
            }
        }
        drop(seats);
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
