//! The GraphQL schema: roots merged from the features' faces, and what all faces share.
//!
//! Owns how resolvers answer ([`answer`]), who may ask what ([`rules`]) for whom ([`access`]), and the scalars. Resolvers parse arguments,
//! call one use case and shape the answer; they decide nothing.

pub mod access;
pub mod api;
pub mod cost;
pub mod counts;
mod defaults;
pub mod document;
pub mod identity;
pub mod page_info;
pub mod persisted;
mod root;
pub mod rules;
pub mod scalars;
pub mod shared;
mod tokens;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_graphql::dataloader::DataLoader;
use async_graphql::{Context, ID, MergedObject, MergedSubscription, SDLExportOptions, Schema, SchemaBuilder};
use chrono::{DateTime, Utc};

pub use api::Api;
use persisted::Persisted;

use crate::app::App;
use crate::checkin::graphql::{CheckInMutation, CheckInQuery};
use crate::error::Error;
use crate::figures::graphql::FiguresQuery;
use crate::figures::live::FiguresSubscription;
use crate::leaderboard::graphql::{BoardMutation, BoardQuery, BoardSubscription};
use crate::leaderboard::seen::PlaceLoader;
use crate::presence::graphql::{PresenceMutation, PresenceQuery};
use crate::presence::live::PresenceSubscription;
use crate::user::graphql::{ProfileLoader, UserMutation, UserQuery};

/// Everything that can be asked.
#[derive(MergedObject, Default)]
pub struct Query(
    identity::IdentityQuery,
    UserQuery,
    CheckInQuery,
    BoardQuery,
    PresenceQuery,
    FiguresQuery,
);

/// Everything that can be changed.
#[derive(MergedObject, Default)]
pub struct Mutation(CheckInMutation, BoardMutation, PresenceMutation, UserMutation);

/// Everything that can be watched.
#[derive(MergedSubscription, Default)]
pub struct Subscription(BoardSubscription, PresenceSubscription, FiguresSubscription);

/// The whole schema.
pub type TallyboardSchema = Schema<Query, Mutation, Subscription>;

/// The API over an app, ready to be executed.
pub fn api(app: Arc<App>, persisted: Persisted) -> Api {
    let settings = app.settings.graphql.clone();
    let mut schema = builder()
        .data(DataLoader::new(ProfileLoader(app.profiles.clone()), tokio::spawn).delay(Duration::ZERO))
        .data(Arc::new(DataLoader::new(
            PlaceLoader(app.boards.clone(), app.clock.clone()),
            tokio::spawn,
        )))
        .data(app)
        .limit_depth(settings.max_depth)
        .limit_complexity(settings.max_complexity);
    if !settings.introspection {
        schema = schema.disable_introspection().disable_suggestions();
    }
    Api::new(schema.finish(), persisted, settings)
}

/// The schema to be, with words for the scalars that come without useful ones.
fn builder() -> SchemaBuilder<Query, Mutation, Subscription> {
    Schema::build(Query::default(), Mutation::default(), Subscription::default())
        .override_output_type_description::<DateTime<Utc>>(
            "An instant in UTC as RFC 3339 writes it, such as `2026-11-30T08:00:00+00:00`.",
        )
        .override_output_type_description::<ID>(
            "A name as text, compared byte by byte: of a user, a room or a session as the host application has it, or of a board.",
        )
}

/// The schema's text in the schema definition language.
pub fn sdl() -> String {
    builder().finish().sdl_with_options(
        SDLExportOptions::new()
            .prefer_single_line_descriptions()
            .use_space_ident()
            .indent_width(2),
    )
}

/// The answer of a nullable field: its value, or null in its place with an error beside it.
///
/// async-graphql drops a failing field's key when its resolver is a plain `Result`; with `Option<Result<T>>` the key
/// stays and holds null, as the GraphQL specification asks.
pub async fn answer<T>(field: impl Future<Output = Result<T, Error>>) -> Option<async_graphql::Result<T>> {
    Some(field.await.map_err(Into::into))
}

/// As [`answer`], for a field whose value may itself be null.
pub async fn answer_optional<T>(
    field: impl Future<Output = Result<Option<T>, Error>>,
) -> Option<async_graphql::Result<T>> {
    field.await.map_err(Into::into).transpose()
}

/// What resolvers reach through their context.
pub trait AppContext {
    /// The running app.
    fn app(&self) -> &App;

    /// Now, by the app's clock.
    fn now(&self) -> DateTime<Utc> {
        self.app().clock.now()
    }
}

impl AppContext for Context<'_> {
    fn app(&self) -> &App {
        self.data_unchecked::<Arc<App>>()
    }
}
