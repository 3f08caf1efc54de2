//! The face of presence: `heartbeat`, `leave`, `onlineCount`, `online`, `presence`.

use async_graphql::{Context, ID, Object, SimpleObject};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use super::Place;
use super::list::{Page, Seen};
use super::store::only_counted;
use crate::error::Error;
use crate::graphql::cost;
use crate::graphql::page_info::PageInfo;
use crate::graphql::rules::{Askers, allowed};
use crate::graphql::scalars::SafeInt;
use crate::graphql::{AppContext, access, answer};
use crate::ids::{RoomId, SessionId, UserId};
use crate::user::graphql::User;

/// The most rows of one page, and the most users asked for at once.
const MAX_FIRST: usize = 500;

/// The answer to `heartbeat`. Counting costs a round trip, so it is done for those who ask.
pub struct HeartbeatPayload {
    room: Option<RoomId>,
    now: DateTime<Utc>,
}

/// The answer to `heartbeat`.
#[Object]
impl HeartbeatPayload {
    /// How many users are online in the room now, the caller included; without a room: on the whole site.
    async fn online_count(&self, ctx: &Context<'_>) -> async_graphql::Result<SafeInt> {
        counted(ctx, self.room.as_ref(), self.now).await
    }

    /// Beat again within this many seconds to stay online: a third of `presence.window_seconds`.
    async fn next_within_seconds(&self, ctx: &Context<'_>) -> i32 {
        ctx.app().presence.next_within_seconds()
    }
}

/// The answer to `leave`. Counting costs a round trip, so it is done for those who ask.
pub struct LeavePayload {
    online: bool,
    room: Option<RoomId>,
    now: DateTime<Utc>,
}

/// The answer to `leave`.
#[Object]
impl LeavePayload {
    /// Whether another session keeps the user online: in that room, or without a room on the site.
    async fn online(&self) -> bool {
        self.online
    }

    /// How many users are online in the room now; without a room: on the whole site.
    async fn online_count(&self, ctx: &Context<'_>) -> async_graphql::Result<SafeInt> {
        counted(ctx, self.room.as_ref(), self.now).await
    }
}

/// What the answers to `heartbeat` and `leave` say of who is online.
async fn counted(
    ctx: &Context<'_>,
    room: Option<&RoomId>,
    now: DateTime<Utc>,
) -> async_graphql::Result<SafeInt> {
    let count = ctx.app().presence.count_for_answer(room, now).await;
    Ok(count.map_err(Error::from)?.into())
}

/// Whether a user is online.
#[derive(Debug, Clone, SimpleObject)]
pub struct Presence {
    /// Who it is about.
    user: User,
    /// Whether the user was seen within `presence.window_seconds`.
    online: bool,
    /// When the user was seen last; null for who is not online.
    last_seen: Option<DateTime<Utc>>,
}

/// A page of who is online.
#[derive(Debug, SimpleObject)]
pub struct PresenceConnection {
    /// The rows with their cursors, seen last first.
    edges: Vec<PresenceEdge>,
    /// The rows, seen last first.
    nodes: Vec<Presence>,
    /// Where the page lies.
    page_info: PageInfo,
    /// How many users are online there.
    total_count: SafeInt,
}

/// A row with its cursor.
#[derive(Debug, SimpleObject)]
pub struct PresenceEdge {
    /// Names the row's position: when the user was seen, and the user.
    cursor: String,
    /// Who is online, and since when seen.
    node: Presence,
}

impl Presence {
    fn of(user: &UserId, seen: Option<i64>) -> Presence {
        Presence {
            user: User::from(user),
            online: seen.is_some(),
            last_seen: seen.and_then(DateTime::from_timestamp_millis),
        }
    }
}

impl From<Page> for PresenceConnection {
    fn from(page: Page) -> PresenceConnection {
        let edge = |seen: Seen| PresenceEdge {
            cursor: URL_SAFE_NO_PAD.encode(format!("{} {}", seen.at, seen.user)),
            node: Presence::of(&seen.user, Some(seen.at)),
        };
        let edges: Vec<PresenceEdge> = page.rows.into_iter().map(edge).collect();
        let cursors = edges.iter().map(|edge| edge.cursor.as_str());
        PresenceConnection {
            page_info: PageInfo::of(page.has_previous, page.has_next, cursors),
            total_count: page.total.into(),
            nodes: edges.iter().map(|edge| edge.node.clone()).collect(),
            edges,
        }
    }
}

/// The position that a cursor names.
fn position(cursor: &str) -> Result<Seen, Error> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let (at, user) = text.split_once(' ')?;
        Some(Seen {
            at: at.parse().ok()?,
            user: UserId::parse(user).ok()?,
        })
    };
    read().ok_or_else(|| Error::BadUserInput(format!("{cursor:?} is no cursor of this connection")))
}

fn room_of(room: Option<ID>) -> Result<Option<RoomId>, Error> {
    Ok(room.map(|room| RoomId::parse(&room)).transpose()?)
}

/// The room that is to be counted.
pub fn counted_room(ctx: &Context<'_>, room: Option<ID>) -> Result<Option<RoomId>, Error> {
    match room_of(room)? {
        Some(_) if ctx.app().presence.only_counts() => Err(only_counted("there are no rooms")),
        room => Ok(room),
    }
}

/// Refuses where there is no list.
fn listed(ctx: &Context<'_>) -> Result<(), Error> {
    match ctx.app().presence.only_counts() {
        true => Err(only_counted("nobody is listed")),
        false => Ok(()),
    }
}

fn place(room: Option<ID>, session: Option<ID>) -> Result<Place, Error> {
    Ok(Place {
        room: room_of(room)?,
        session: session.map(|session| SessionId::parse(&session)).transpose()?,
        node: None,
    })
}

/// Reading presence.
#[derive(Default)]
pub struct PresenceQuery;

#[Object]
impl PresenceQuery {
    /// How many users are online: seen within `presence.window_seconds`. Each counts once, on however many devices. For
    /// anybody, unless `auth.public_reads` is off.
    #[graphql(directive = allowed::apply(Askers::Readers))]
    async fn online_count(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "In this room; left out: on the whole site.")] room: Option<ID>,
    ) -> Option<async_graphql::Result<SafeInt>> {
        answer(async {
            access::allowed(ctx)?;
            let room = counted_room(ctx, room)?;
            Ok(ctx
                .app()
                .presence
                .count_online(room.as_ref(), ctx.now())
                .await?
                .into())
        })
        .await
    }

    /// Who is online, seen last first. Whoever beats during a walk moves to its beginning. For signed-in callers.
    #[graphql(directive = allowed::apply(Askers::SignedIn), complexity = "cost::of_list(first, child_complexity)")]
    async fn online(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "In this room; left out: on the whole site.")] room: Option<ID>,
        #[graphql(desc = "How many, 0 to 500.", default = 50)] first: i32,
        #[graphql(desc = "Begin after the row of this cursor.")] after: Option<String>,
    ) -> Option<async_graphql::Result<PresenceConnection>> {
        answer(async {
            access::allowed(ctx)?;
            listed(ctx)?;
            let many = usize::try_from(first).ok().filter(|many| *many <= MAX_FIRST);
            let many = many.ok_or_else(|| {
                Error::BadUserInput(format!(
                    "a page has 0 to {MAX_FIRST} rows, and {first} were asked for"
                ))
            })?;
            let after = after.as_deref().map(position).transpose()?;
            let room = room_of(room)?;
            let presence = &ctx.app().presence;
            let page = presence
                .online(room.as_ref(), many, after.as_ref(), ctx.now())
                .await?;
            Ok(page.into())
        })
        .await
    }

    /// Whether these users are online, in the order asked for. For signed-in callers.
    #[graphql(directive = allowed::apply(Askers::SignedIn), complexity = "cost::of_each(&user_ids, child_complexity)")]
    async fn presence(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Whom to look for, up to 500 users.")] user_ids: Vec<ID>,
        #[graphql(desc = "In this room; left out: on the whole site.")] room: Option<ID>,
    ) -> Option<async_graphql::Result<Vec<Presence>>> {
        answer(async {
            access::allowed(ctx)?;
            listed(ctx)?;
            if user_ids.len() > MAX_FIRST {
                return Err(Error::BadUserInput(format!(
                    "userIds has at most {MAX_FIRST} users, and {} were given",
                    user_ids.len()
                )));
            }
            let users: Result<Vec<UserId>, _> = user_ids.iter().map(|id| UserId::parse(id)).collect();
            let (users, room) = (users?, room_of(room)?);
            let seen = ctx.app().presence.seen(&users, room.as_ref(), ctx.now()).await?;
            let rows = users.iter().zip(seen);
            Ok(rows.map(|(user, seen)| Presence::of(user, seen)).collect())
        })
        .await
    }
}

/// Being present.
#[derive(Default)]
pub struct PresenceMutation;

#[Object]
impl PresenceMutation {
    /// Say that a user is here now, by the server's clock. A user is in at most `presence.max_rooms_per_user` rooms:
    /// beyond that it is refused. Of more than `presence.max_sessions_per_user` sessions the one that was silent longest
    /// is forgotten; where each is the only one in its room, it is refused. For the user, and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner))]
    async fn heartbeat(
        &self,
        ctx: &Context<'_>,
        #[graphql(
            desc = "In this room, named in 1 to 128 printable ASCII characters without a space; left out: on the site, in no room."
        )]
        room: Option<ID>,
        #[graphql(
            desc = "Names the tab or device, in 1 to 128 printable ASCII characters without a space, so that it can leave alone; \
                    left out: one without a name. A user counts once."
        )]
        session: Option<ID>,
        #[graphql(desc = "Who; left out: the viewer. Another only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<HeartbeatPayload>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let place = place(room, session)?;
            let (presence, now) = (&ctx.app().presence, ctx.now());
            presence.heartbeat(&user, &place, now).await?;
            Ok(HeartbeatPayload {
                room: place.room,
                now,
            })
        })
        .await
    }

    /// Say that a session has ended. The user stays online as long as another session was seen within
    /// `presence.window_seconds`. For the user, and for SERVICE.
    #[graphql(directive = allowed::apply(Askers::Owner))]
    async fn leave(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The session's room; left out: the one in no room.")] room: Option<ID>,
        #[graphql(desc = "The session's name; left out: the one without a name.")] session: Option<ID>,
        #[graphql(desc = "Who; left out: the viewer. Another only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<LeavePayload>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let place = place(room, session)?;
            let (presence, now) = (&ctx.app().presence, ctx.now());
            if place.room.is_some() && presence.only_counts() {
                return Err(only_counted("there are no rooms"));
            }
            Ok(LeavePayload {
                online: presence.leave(&user, &place, now).await?,
                room: place.room,
                now,
            })
        })
        .await
    }
}
