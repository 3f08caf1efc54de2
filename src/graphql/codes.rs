//! A code for every error: what async-graphql refuses by itself, before a resolver runs, is the caller's fault.
//!
//! Owns only that; errors of resolvers bring their code from [`crate::error`].

use std::sync::Arc;

use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextRequest, NextSubscribe};
use async_graphql::{Response, ServerError};
use futures::StreamExt;
use futures::stream::BoxStream;

/// Marks errors without a code as BAD_USER_INPUT: documents that do not parse, do not validate or nest too deeply.
pub struct EveryErrorHasACode;

impl ExtensionFactory for EveryErrorHasACode {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(EveryErrorHasACode)
    }
}

#[async_graphql::async_trait::async_trait]
impl Extension for EveryErrorHasACode {
    async fn request(&self, ctx: &ExtensionContext<'_>, next: NextRequest<'_>) -> Response {
        coded(next.run(ctx).await)
    }

    fn subscribe<'s>(
        &self,
        ctx: &ExtensionContext<'_>,
        stream: BoxStream<'s, Response>,
        next: NextSubscribe<'_>,
    ) -> BoxStream<'s, Response> {
        next.run(ctx, stream).map(coded).boxed()
    }
}

fn coded(mut response: Response) -> Response {
    response.errors.iter_mut().for_each(code);
    response
}

fn code(error: &mut ServerError) {
    let extensions = error.extensions.get_or_insert_default();
    if extensions.get("code").is_none() {
        extensions.set("code", "BAD_USER_INPUT");
    }
}
