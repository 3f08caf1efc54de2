//! The two servers that this program is itself when it is started with a role: `hand` and `stock`.
//!
//! Both answer by the use cases of the library, so that Redis does the same for all. `hand` is what would be written without
//! GraphQL: a handler a question, JSON by derive.

use std::sync::Arc;

use async_graphql_axum::{GraphQLRequest, GraphQLResponse};
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tallyboard::app::{App, Backing};
use tallyboard::clock::Clock;
use tallyboard::config::{Board, Settings};
use tallyboard::graphql::access::{Caller, Role};
use tallyboard::graphql::persisted::Persisted;
use tallyboard::graphql::{self, Api};
use tallyboard::ids::UserId;
use tallyboard::keyspace::Operation;
use tallyboard::leaderboard::submit::{Score, Submitted};
use tallyboard::user::Profile;
use tokio::net::TcpListener;

use crate::process::NOON;

/// Names the role of a process.
pub const ROLE: &str = "REQUESTS_ROLE";

/// Where it finds Redis.
pub const REDIS_URL: &str = "REQUESTS_REDIS";

/// The role this process was started for, if it is one to compare with.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// The settings that all of them go by.
pub fn settings(url: &str) -> Settings {
    let mut settings = Settings::default();
    settings.redis.url = url.to_owned();
    settings.redis.timeout_ms = 10_000;
    settings.board = vec![Board {
        id: "points".into(),
        ..Board::default()
    }];
    settings
}

/// An app over a Redis.
pub async fn app(url: &str) -> Arc<App> {
    let settings = settings(url);
    let backing = Backing::start(&settings).await.unwrap();
    App::open(settings, Clock::started_at(NOON.parse().unwrap()), &backing)
        .await
        .unwrap()
}

/// Serves until it is killed.
#[tokio::main]
pub async fn serve(role: &str) {
    let app = app(&std::env::var(REDIS_URL).unwrap()).await;
    let router = match role {
        "hand" => by_hand(app),
        "stock" => stock(app),
        other => panic!("there is no role {other:?}"),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on http://{}", listener.local_addr().unwrap());
    axum::serve(listener, router).await.unwrap();
}

fn stock(app: Arc<App>) -> Router {
    let persisted = Persisted::open(&app.settings.graphql).unwrap();
    let service = Caller {
        user: None,
        role: Role::Service,
    };
    async fn answer(State((api, caller)): State<(Api, Caller)>, request: GraphQLRequest) -> GraphQLResponse {
        api.execute(request.into_inner().data(caller)).await.into()
    }
    Router::new()
        .route("/graphql", post(answer))
        .with_state((graphql::api(app, persisted), service))
}

#[derive(Deserialize)]
struct About {
    u: String,
    #[serde(default)]
    p: i64,
}

#[derive(Serialize)]
struct Place {
    rank: u64,
    points: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Named>,
}

#[derive(Serialize)]
struct Named {
    id: String,
    name: Option<String>,
}

#[derive(Serialize)]
struct CheckedIn {
    outcome: &'static str,
    streak: u32,
    points: i64,
}

#[derive(Serialize)]
struct Scored {
    outcome: &'static str,
}

fn by_hand(app: Arc<App>) -> Router {
    Router::new()
        .route("/rank", post(rank))
        .route("/top", post(top))
        .route("/check-in", post(check_in))
        .route("/score", post(score))
        .with_state(app)
}

type Asked = State<Arc<App>>;

async fn rank(State(app): Asked, Json(about): Json<About>) -> Json<Option<Place>> {
    let (board, now) = (app.boards.boards().get("points").unwrap(), app.clock.now());
    let user = UserId::parse(&about.u).unwrap();
    let span = app
        .boards
        .period(board, board.plans[0].period, app.zone.date_of(now), now)
        .unwrap();
    let standing = app.boards.standing(board, &span, &user, now).await.unwrap();
    let Some(standing) = standing else {
        return Json(None);
    };
    let rank = app
        .boards
        .rank(board, &standing, board.rank_method)
        .await
        .unwrap();
    Json(Some(Place {
        rank,
        points: standing.points,
        user: None,
    }))
}

async fn top(State(app): Asked) -> Json<Vec<Place>> {
    let (board, now) = (app.boards.boards().get("points").unwrap(), app.clock.now());
    let span = app
        .boards
        .period(board, board.plans[0].period, app.zone.date_of(now), now)
        .unwrap();
    let page = app.boards.top(board, &span, 10, now).await.unwrap();
    let users: Vec<UserId> = page
        .standings
        .iter()
        .map(|standing| standing.user.clone())
        .collect();
    let profiles: Vec<Profile> = app.profiles.of(&users).await.unwrap();
    let mut places = Vec::with_capacity(users.len());
    for (standing, profile) in page.standings.iter().zip(profiles) {
        places.push(Place {
            rank: app.boards.rank(board, standing, board.rank_method).await.unwrap(),
            points: standing.points,
            user: Some(Named {
                id: standing.user.to_string(),
                name: profile.name,
            }),
        });
    }
    Json(places)
}

async fn check_in(State(app): Asked, Json(about): Json<About>) -> Json<CheckedIn> {
    let (user, now) = (UserId::parse(&about.u).unwrap(), app.clock.now());
    let receipt = app
        .checkins
        .check_in(&user, now, &Operation::unique(now))
        .await
        .unwrap();
    Json(CheckedIn {
        outcome: if receipt.fresh {
            "CHECKED_IN"
        } else {
            "ALREADY_CHECKED_IN"
        },
        streak: receipt.record.done.map_or(0, |done| done.run),
        points: receipt.record.wallet.points,
    })
}

async fn score(State(app): Asked, Json(about): Json<About>) -> Json<Scored> {
    let (board, now) = (app.boards.boards().get("points").unwrap(), app.clock.now());
    let score = Score {
        board,
        user: UserId::parse(&about.u).unwrap(),
        operator: board.operator,
        points: about.p,
    };
    let submitted = app
        .boards
        .submit(&score, now, &Operation::unique(now))
        .await
        .unwrap();
    let applied = matches!(submitted, Submitted::Counted { changed: true, .. });
    Json(Scored {
        outcome: if applied { "APPLIED" } else { "UNCHANGED" },
    })
}
