//! Clients of the old `graphql-ws` subprotocol (`subscriptions-transport-ws`).
//!
//! Owns the bounds around async-graphql's own implementation of it: the same limits and the same drain as other sockets.
//! It is correct and not shared: each subscriber is executed for by itself.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_graphql::futures_util::stream::BoxStream;
use async_graphql::parser::types::OperationType;
use async_graphql::{Data, Executor, Request, Response, ServerError};
use async_graphql_axum::{GraphQLProtocol, GraphQLWebSocket};
use axum::extract::ws::WebSocket;
use futures::stream;
use futures::{FutureExt, StreamExt};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::connections::Connected;
use super::gauges::{Counted, Gauges};
use super::protocol::Close;
use super::socket::{Terms, refuse};
use crate::auth::Refused;
use crate::graphql::Api;
use crate::graphql::document::chosen;

/// The protocol's name among WebSocket subprotocols.
pub const SUBPROTOCOL: &str = "graphql-ws";

/// Serves a socket until it ends.
pub async fn serve(
    mut stream: WebSocket,
    protocol: GraphQLProtocol,
    address: IpAddr,
    terms: Terms,
    connected: Connected,
) {
    let answering = Arc::new(AtomicUsize::new(0));
    let executor = Bounded {
        answering: answering.clone(),
        api: terms.topics.api().clone(),
        open: Arc::default(),
        most: terms.live.max_subscriptions,
        gauges: terms.topics.gauges().clone(),
    };
    let identity = terms.identity.clone();
    let (named, answered) = oneshot::channel();
    let init = Duration::from_secs(terms.live.init_timeout_seconds);
    let (sink, messages) = (&mut stream).split();
    let socket = GraphQLWebSocket::new_with_pair(sink, messages, executor, protocol).on_connection_init({
        let (identity, rates) = (identity.clone(), terms.rates.clone());
        move |payload| async move {
            let identified = identity.of_payload(&payload);
            let mut data = Data::default();
            if let Ok(identified) = &identified {
                data.insert(identified.caller.clone());
                data.insert(rates.of(&identified.caller, address));
            }
            let refusal = identified.as_ref().err().map(ToString::to_string);
            if named.send(identified).is_err() {
                return Err("the connection has ended".into());
            }
            refusal.map_or(Ok(data), |why| Err(why.into()))
        }
    });
    // What ends it from this side; a client that is refused has been told so in its protocol's own words before.
    let ends = async {
        match timeout(init, answered).await {
            Err(_) => Close::init_timeout(),
            Ok(Ok(Ok(identified))) => {
                identity.expired(&identified).await;
                Close::forbidden(&Refused::Expired.to_string())
            }
            Ok(Ok(Err(why))) => Close::forbidden(&why.to_string()),
            Ok(Err(_)) => std::future::pending().await,
        }
    };
    let mut ends = pin!(ends);
    let close = tokio::select! {
        biased;
        () = socket.serve() => ends.now_or_never(),
        close = &mut ends => Some(close),
        () = async {
            connected.time_to_go().await;
            while answering.load(Ordering::Relaxed) > 0 {
                sleep(A_MOMENT).await;
            }
        } => Some(Close::going_away()),
    };
    if let Some(close) = close {
        refuse(stream, close).await;
    }
}

/// How often to look whether all is answered, before a socket goes.
const A_MOMENT: Duration = Duration::from_millis(10);

/// The API, for one socket that may have so many operations at a time.
#[derive(Clone)]
struct Bounded {
    api: Api,
    open: Arc<AtomicUsize>,
    /// Of those that are open, how many are to be answered once.
    answering: Arc<AtomicUsize>,
    most: usize,
    gauges: Arc<Gauges>,
}

/// One operation, as long as this lives.
struct Open(Arc<AtomicUsize>, #[allow(dead_code)] Counted); // counted until it is dropped

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One operation that is to be answered once, as long as this lives.
struct Answering(Arc<AtomicUsize>);

impl Answering {
    fn one(count: &Arc<AtomicUsize>) -> Answering {
        count.fetch_add(1, Ordering::Relaxed);
        Answering(count.clone())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is not served is answered at once, as what is no subscription.
fn is_subscription(api: &Api, request: &mut Request) -> bool {
    if api.admit(request).is_err() {
        return false;
    }
    let name = request.operation_name.clone();
    let document = request.parsed_query().ok();
    let operation = document.and_then(|document| chosen(document, name.as_deref()));
    operation.is_some_and(|operation| operation.ty == OperationType::Subscription)
}

impl Executor for Bounded {
    async fn execute(&self, request: Request) -> Response {
        self.api.execute(request).await
    }

    fn execute_stream(
        &self,
        mut request: Request,
        session_data: Option<Arc<Data>>,
    ) -> BoxStream<'static, Response> {
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.open.fetch_sub(1, Ordering::Relaxed);
            let error = ServerError::new("too many subscriptions on this socket; try again later", None);
            return stream::once(async { Response::from_errors(vec![error]) }).boxed();
        }
        let answering = (!is_subscription(&self.api, &mut request)).then(|| Answering::one(&self.answering));
        let open = Open(self.open.clone(), Counted::one(&self.gauges.subscriptions));
        let delivered = self.gauges.delivered.clone();
        let answers = Executor::execute_stream(&self.api, request, session_data);
        answers
            .inspect(move |_| {
                let _still_open = (&open, &answering);
                delivered.inc();
            })
            .boxed()
    }
}
