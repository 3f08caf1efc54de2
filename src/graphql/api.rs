//! Executing a request: the schema, and what async-graphql leaves to its users.
//!
//! Owns the one way in: whatever the transport, requests are executed here. What is done around the schema is done here and
//! not by extensions, since with a single extension async-graphql calls it for every field of every answer.

use std::sync::Arc;

use async_graphql::futures_util::stream::BoxStream;
use async_graphql::{Data, Executor, Request, Response, ServerError};
use futures::{StreamExt, stream};

use super::{TallyboardSchema, defaults, root};

/// The API, ready to be executed; clones share it.
#[derive(Clone)]
pub struct Api(TallyboardSchema);

impl Api {
    /// The API of a schema.
    pub fn new(schema: TallyboardSchema) -> Api {
        Api(schema)
    }

    /// The schema's text in the schema definition language.
    pub fn sdl(&self) -> String {
        self.0.sdl()
    }

    /// Answers a query or a mutation.
    pub async fn execute(&self, mut request: Request) -> Response {
        defaults::fill_in(&mut request);
        coded(self.0.execute(request).await)
    }

    /// Answers a subscription, again and again.
    pub fn execute_stream(&self, request: Request) -> BoxStream<'static, Response> {
        Executor::execute_stream(self, request, None)
    }
}

impl Executor for Api {
    async fn execute(&self, request: Request) -> Response {
        Api::execute(self, request).await
    }

    fn execute_stream(
        &self,
        mut request: Request,
        session_data: Option<Arc<Data>>,
    ) -> BoxStream<'static, Response> {
        defaults::fill_in(&mut request);
        let typenames = match root::leave_one_field(&mut request) {
            Ok(typenames) => typenames,
            Err(error) => {
                let refused = Response::from_errors(vec![error]);
                return stream::once(async { coded(refused) }).boxed();
            }
        };
        let answers = Executor::execute_stream(&self.0, request, session_data);
        answers
            .map(move |answer| coded(root::with_typenames(answer, &typenames)))
            .boxed()
    }
}

/// A code for every error: what async-graphql refuses by itself, before a resolver runs (documents that do not parse, do
/// not validate or nest too deeply), is the caller's fault. Errors of resolvers bring their code from [`crate::error`].
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
