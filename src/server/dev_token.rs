//! `/dev/token`: tokens for whoever asks, in `--dev` only, so that a client can be built before there is anybody to issue
//! them. Outside of `--dev` there is no such route.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use axum::{Json, routing};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::router::Door;
use crate::auth::Identity;
use crate::auth::wanted::{Wanted, duration};
use crate::ids::UserId;

/// How long a token lasts unless told otherwise.
const LASTS: TimeDelta = TimeDelta::hours(1);

/// The token that is wanted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wish {
    user: Option<String>,
    role: Option<String>,
    expires_in: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Issued {
    token: String,
    expires_at: DateTime<Utc>,
}

/// The route: by GET with a query, or by POST with JSON.
pub fn route() -> MethodRouter<Door> {
    let by_link = async |door: State<Door>, wish: Result<Query<Wish>, QueryRejection>| match wish {
        Ok(Query(wish)) => answer(&door.terms.identity, wish),
        Err(error) => wrong(&error.body_text()),
    };
    let by_post = async |door: State<Door>, wish: Result<Json<Wish>, JsonRejection>| match wish {
        Ok(Json(wish)) => answer(&door.terms.identity, wish),
        Err(error) => wrong(&error.body_text()),
    };
    routing::get(by_link).post(by_post)
}

fn answer(identity: &Identity, wish: Wish) -> Response {
    match issued(identity, wish) {
        Ok(issued) => ([(header::CACHE_CONTROL, "no-store")], Json(issued)).into_response(),
        Err(reason) => wrong(&reason),
    }
}

fn issued(identity: &Identity, wish: Wish) -> Result<Issued, String> {
    let issuer = identity
        .dev_issuer()
        .ok_or("tokens are handed out in --dev only")?;
    let user = wish.user.as_deref().map(UserId::parse).transpose();
    let user = user.map_err(|bad| bad.to_string())?;
    let lasts = wish.expires_in.as_deref().map_or(Ok(LASTS), duration);
    let now = identity.now();
    let made = lasts.and_then(|lasts| {
        let wanted = Wanted::new(user, wish.role.as_deref(), lasts)?;
        Ok(Issued {
            token: issuer.issue(&wanted, now)?,
            expires_at: wanted.expires_at(now),
        })
    });
    made.map_err(|error| error.to_string())
}

fn wrong(reason: &str) -> Response {
    let body = Json(serde_json::json!({ "error": reason }));
    (StatusCode::BAD_REQUEST, body).into_response()
}
