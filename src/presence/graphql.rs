//! The face of presence: `heartbeat`, `onlineCount`.

use async_graphql::{Context, ID, Object, SimpleObject};

use crate::graphql::scalars::SafeInt;
use crate::graphql::{AppContext, access, answer};
use crate::ids::{RoomId, SessionId};

/// The answer to `heartbeat`.
#[derive(Debug, SimpleObject)]
pub struct HeartbeatPayload {
    /// How many users are online in the room now, the caller included.
    online_count: SafeInt,
    /// Beat again within this many seconds to stay online: a third of the window.
    next_within_seconds: i32,
}

/// Reading presence.
#[derive(Default)]
pub struct PresenceQuery;

#[Object]
impl PresenceQuery {
    /// How many users are online: seen within the window. Each counts once, on however many devices.
    async fn online_count(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "In this room; left out: on the whole site.")] room: Option<ID>,
    ) -> Option<async_graphql::Result<SafeInt>> {
        answer(async {
            access::reading_publicly(ctx, ctx.app().settings.auth.public_reads)?;
            let room = room.map(|room| RoomId::parse(&room)).transpose()?;
            Ok(ctx
                .app()
                .presence
                .count_online(room.as_ref(), ctx.now())
                .await?
                .into())
        })
        .await
    }
}

/// Being present.
#[derive(Default)]
pub struct PresenceMutation;

#[Object]
impl PresenceMutation {
    /// Say that a user is here now, by the server's clock.
    async fn heartbeat(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "In this room; left out: on the site, in no room.")] room: Option<ID>,
        #[graphql(desc = "Names the tab or device. Each counts for its user, who counts once.")]
        session: Option<ID>,
        #[graphql(desc = "Who; left out: the viewer. Another only for SERVICE.")] user_id: Option<ID>,
    ) -> Option<async_graphql::Result<HeartbeatPayload>> {
        answer(async {
            let user = access::acting_for(ctx, user_id)?;
            let room = room.map(|room| RoomId::parse(&room)).transpose()?;
            session.map(|session| SessionId::parse(&session)).transpose()?;
            let (presence, now) = (&ctx.app().presence, ctx.now());
            presence.heartbeat(&user, room.as_ref(), now).await?;
            Ok(HeartbeatPayload {
                online_count: presence.count_online(room.as_ref(), now).await?.into(),
                next_within_seconds: presence.next_within_seconds(),
            })
        })
        .await
    }
}
