//! Executing a request: the schema, and what async-graphql leaves to its users.
//!
//! Owns the one way in: whatever the transport, requests are executed here. What is done around the schema is done here and
//! not by extensions, since with a single extension async-graphql calls it for every field of every answer.

use std::sync::Arc;

use async_graphql::futures_util::stream::BoxStream;
use async_graphql::{Data, Executor, Request, Response, ServerError, ServerResult};
use futures::{StreamExt, stream};

use super::{TallyboardSchema, defaults, document, root};

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
        if let Err(error) = prepare(&mut request) {
            return refusal(error);
        }
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
        let prepared = prepare(&mut request).and_then(|()| root::leave_one_field(&mut request));
        let typenames = match prepared {
            Ok(typenames) => typenames,
            Err(error) => return stream::once(async { refusal(error) }).boxed(),
        };
        let answers = Executor::execute_stream(&self.0, request, session_data);
        answers
            .map(move |answer| coded(root::with_typenames(answer, &typenames)))
            .boxed()
    }
}

/// What is done with every request before it is executed.
fn prepare(request: &mut Request) -> ServerResult<()> {
    if let Ok(document) = request.parsed_query()
        && !document::is_bearable(document)
    {
        return Err(ServerError::new("the document selects too much", None));
    }
    defaults::fill_in(request);
    Ok(())
}

fn refusal(error: ServerError) -> Response {
    coded(Response::from_errors(vec![error]))
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
