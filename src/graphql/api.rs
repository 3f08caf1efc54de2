//! Executing a request: the schema, and what async-graphql leaves to its users.
//!
//! Owns the one way in: whatever the transport, requests are executed here. What is done around the schema is done here and
//! not by extensions, since with a single extension async-graphql calls it for every field of every answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use async_graphql::futures_util::stream::BoxStream;
use async_graphql::{Data, Executor, Request, Response, ServerError, ServerResult};
use futures::{FutureExt, StreamExt, stream};
use tracing::Instrument;

use super::counts::{Kind, Requests};
use super::document::{Amount, chosen};
use super::persisted::Persisted;
use super::{TallyboardSchema, defaults, root, tokens};
use crate::config;
use crate::error::{Error, in_short};
use crate::rate::{Allowance, Cost};

/// The API, ready to be executed; clones share it.
#[derive(Clone)]
pub struct Api {
    schema: TallyboardSchema,
    persisted: Persisted,
    limits: Arc<config::GraphQl>,
    requests: Requests,
}

impl Api {
    /// The API of a schema.
    pub fn new(schema: TallyboardSchema, persisted: Persisted, limits: config::GraphQl) -> Api {
        Api {
            schema,
            persisted,
            limits: Arc::new(limits),
            requests: Requests::default(),
        }
    }

    /// What is counted.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The schema's text in the schema definition language.
    pub fn sdl(&self) -> String {
        self.schema.sdl()
    }

    /// Whether a request is one that is served, as far as its text tells; a document that it only names is put into it.
    /// Whatever is executed has been here, and may have been before: nothing of a request is looked at earlier, least of all
    /// parsed.
    pub fn admit(&self, request: &mut Request) -> ServerResult<()> {
        if request.operation_name.as_deref() == Some("") {
            request.operation_name = None;
        }
        let named = self.persisted.fill_in(request).map_err(Error::of_request)?;
        if !tokens::are_at_most(self.limits.max_tokens, &request.query) {
            return Err(too_much("tokens", self.limits.max_tokens));
        }
        self.weigh(request)?;
        if let (Some(hash), Ok(_)) = (named, request.parsed_query()) {
            self.persisted.remember(hash, &request.query);
        }
        Ok(())
    }

    /// What is done with every request before it is executed: what it is, and whether it is served. Whoever sends it pays
    /// for it, also for what is then refused.
    fn prepare(&self, request: &mut Request, allowance: Option<&Allowance>) -> (Kind, ServerResult<()>) {
        let admitted = self.admit(request);
        let name = request.operation_name.clone();
        let (kind, cost) = match admitted.is_ok().then(|| request.parsed_query()) {
            Some(Ok(document)) => {
                let operation = chosen(document, name.as_deref());
                (
                    Kind::of(operation.map(|operation| operation.ty)),
                    Cost::of(document, operation),
                )
            }
            Some(Err(_)) | None => (Kind::of(None), Cost::Operation),
        };
        let paid = allowance.map_or(Ok(()), |allowance| allowance.spend(cost));
        let served = paid.map_err(Error::of_request).and(admitted);
        (kind, served.and_then(|()| defaults::fill_in(request)))
    }

    /// Whether a request asks no more than is served.
    fn weigh(&self, request: &mut Request) -> ServerResult<()> {
        if let Ok(document) = request.parsed_query() {
            let amount = Amount::of(document);
            if amount.bottomless {
                return Err(ServerError::new("the document is nested too deeply", None));
            }
            for (what, asked, most) in [
                ("fields", amount.fields, self.limits.max_fields),
                ("aliases", amount.aliases, self.limits.max_aliases),
                ("directives", amount.directives, self.limits.max_directives),
            ] {
                if asked > most {
                    return Err(too_much(what, most));
                }
            }
            if amount.introspection > 0 && !self.limits.introspection {
                return Err(ServerError::new("this server does not show its schema", None));
            }
        }
        Ok(())
    }

    /// Answers a query or a mutation.
    pub async fn execute(&self, mut request: Request) -> Response {
        let begun = Instant::now();
        let allowance = Allowance::of_request(&request);
        let (kind, served) = self.prepare(&mut request, allowance.as_ref());
        let response = match served {
            Ok(()) => {
                let span = tracing::debug_span!("operation", kind = kind.operation);
                self.executed(request).instrument(span).await
            }
            Err(error) => refusal(error),
        };
        self.requests.count(kind, Some(&response), begun.elapsed());
        response
    }

    async fn executed(&self, request: Request) -> Response {
        // Whoever asks along on the same connection must not suffer from a fault of ours.
        let executed = AssertUnwindSafe(self.schema.execute(request)).catch_unwind();
        match executed.await {
            Ok(response) => coded(response),
            Err(_) => refusal(Error::Internal("a resolver panicked".into()).of_request()),
        }
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
        let begun = Instant::now();
        let of_session = || session_data.as_deref().and_then(Allowance::of_data);
        let allowance = Allowance::of_request(&request).or_else(of_session);
        let (kind, served) = self.prepare(&mut request, allowance.as_ref());
        let served = served.and_then(|()| root::leave_one_field(&mut request));
        let refused = served.as_ref().err().cloned().map(refusal);
        // What nobody pays for is a topic's own.
        if allowance.is_some() {
            self.requests.count(kind, refused.as_ref(), begun.elapsed());
        }
        let typenames = match served {
            Ok(typenames) => typenames,
            Err(error) => return stream::once(async { refusal(error) }).boxed(),
        };
        let answers = Executor::execute_stream(&self.schema, request, session_data);
        answers
            .map(move |answer| coded(root::with_typenames(answer, &typenames)))
            .boxed()
    }
}

fn too_much(what: &str, most: usize) -> ServerError {
    ServerError::new(
        format!("the document has more than {most} {what}; ask in several requests"),
        None,
    )
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
    error.message = in_short(std::mem::take(&mut error.message));
    let extensions = error.extensions.get_or_insert_default();
    if extensions.get("code").is_none() {
        extensions.set("code", "BAD_USER_INPUT");
    }
}
