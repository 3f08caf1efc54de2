//! GraphQL over HTTP, by the letter of <https://graphql.github.io/graphql-over-http/draft/>.
//!
//! Owns how a request becomes an execution of the schema and how its answer is sent; [`asked`] reads, [`media`] chooses the
//! media type, [`answer`] writes. WebSockets are [`super::sockets`]', streams of answers [`crate::live::streams`]'.

pub mod answer;
mod asked;
mod media;

use async_graphql::parser::types::OperationType;
use async_graphql::{Request, Response as Answer};
use async_graphql_axum::GraphQLProtocol;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{ConnectInfo, Extension, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use self::asked::Asked;
pub use self::media::Media;
use super::doorway::Peer;
use super::router::Door;
use super::sockets;
use super::visitor::Visitor;
use crate::auth::{Identified, Refused};
use crate::error::Error;
use crate::graphql::document::chosen;
use crate::live::streams::{self, Spelling};
use crate::rate::{Allowance, Cost};

/// `POST /graphql`: a request, or a batch of them, as JSON.
pub async fn post(
    State(door): State<Door>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let media = Media::wanted(&headers);
    if !media::is_json(&headers) {
        let reason = "send the request as application/json in UTF-8";
        return answer::refused(media, StatusCode::UNSUPPORTED_MEDIA_TYPE, reason);
    }
    let limits = &door.app.settings.graphql;
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            let reason = match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    format!("a request has at most {} bytes", limits.max_body_bytes)
                }
                _ => rejection.body_text(),
            };
            return answer::refused(media, rejection.status(), &reason);
        }
    };
    match asked::in_body(&body, limits.max_batch) {
        Ok(Asked::One(request)) => execute(&door, &visitor, &headers, *request, Way::Body).await,
        Ok(Asked::Batch(requests)) => execute_all(&door, &visitor, &headers, requests).await,
        Err(reason) => {
            let reason = format!("the body is no GraphQL request: {reason}");
            answer::refused(media, StatusCode::BAD_REQUEST, &reason)
        }
    }
}

/// `GET /graphql`: a WebSocket, or a query in a link.
pub async fn query_or_socket(
    State(door): State<Door>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    uri: Uri,
    protocol: Result<GraphQLProtocol, StatusCode>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if let Ok(upgrade) = upgrade {
        return sockets::take(door, peer, visitor, &headers, upgrade, protocol.ok());
    }
    let media = Media::wanted(&headers);
    let request = match asked::in_link(&uri) {
        Ok(request) => request,
        Err(reason) => {
            let reason = format!("the link is no GraphQL request: {reason}");
            return answer::refused(media, StatusCode::BAD_REQUEST, &reason);
        }
    };
    execute(&door, &visitor, &headers, request, Way::Link).await
}

/// How a request came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Body,
    /// A link must never change anything; to follow something changes nothing.
    Link,
}

async fn execute(
    door: &Door,
    visitor: &Visitor,
    headers: &HeaderMap,
    mut request: Request,
    way: Way,
) -> Response {
    let media = Media::wanted(headers);
    let identified = match door.terms.identity.of_headers(headers) {
        Ok(identified) => identified,
        Err(refused) => return turned_away(media, refused),
    };
    let allowance = allowance(door, visitor, &identified);
    let asked = operation_of(door, &mut request);
    let spelling = media::stream(headers)
        .filter(|_| asked == Some(OperationType::Subscription) || !media::takes_json(headers));
    let may_come = match asked {
        Some(OperationType::Mutation) => way == Way::Body,
        Some(OperationType::Subscription) => way == Way::Body || spelling.is_some(),
        Some(OperationType::Query) | None => true, // nor does what cannot be executed change anything
    };
    if !may_come {
        return not_by_link(media, &allowance);
    }
    let request = request.data(allowance);
    let Some(spelling) = spelling else {
        let api = door.terms.topics.api();
        return answer::one(media, &api.execute(request.data(identified.caller)).await);
    };
    stream(door, media, spelling, request, identified)
}

/// What is asked, also where the document is only named; `None` if it is not served or cannot be executed.
fn operation_of(door: &Door, request: &mut Request) -> Option<OperationType> {
    door.terms.topics.api().admit(request).ok()?;
    let name = request.operation_name.clone();
    let document = request.parsed_query().ok()?;
    Some(chosen(document, name.as_deref())?.ty)
}

fn not_by_link(media: Media, allowance: &Allowance) -> Response {
    if let Err(error) = allowance.spend(Cost::Operation) {
        return answer::one(media, &Answer::from_errors(vec![error.of_request()]));
    }
    let reason = "only queries may be sent by GET; send this by POST";
    let refusal = answer::refused(media, StatusCode::METHOD_NOT_ALLOWED, reason);
    ([(header::ALLOW, "POST")], refusal).into_response()
}

fn allowance(door: &Door, visitor: &Visitor, identified: &Identified) -> Allowance {
    door.terms.rates.of(&identified.caller, visitor.address)
}

fn stream(
    door: &Door,
    media: Media,
    spelling: Spelling,
    request: Request,
    identified: Identified,
) -> Response {
    match door.connections.admit(spelling.name()) {
        Some(connected) => streams::answer(spelling, request, identified, door.terms.clone(), connected),
        None => {
            let full = Error::Full("too many connections; try again later");
            let refusal = answer::turned_away(media, StatusCode::SERVICE_UNAVAILABLE, full);
            ([(header::RETRY_AFTER, "5")], refusal).into_response()
        }
    }
}

/// One after another: a client that sends them together may count on their order.
async fn execute_all(
    door: &Door,
    visitor: &Visitor,
    headers: &HeaderMap,
    requests: Vec<Request>,
) -> Response {
    let identified = match door.terms.identity.of_headers(headers) {
        Ok(identified) => identified,
        Err(refused) => return turned_away(Media::Json, refused),
    };
    let allowance = allowance(door, visitor, &identified);
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        let request = request.data(identified.caller.clone()).data(allowance.clone());
        answers.push(door.terms.topics.api().execute(request).await);
    }
    answer::batch(&answers)
}

/// The answer to whoever bears credentials that are no good.
fn turned_away(media: Media, refused: Refused) -> Response {
    let error = Error::from(refused);
    if !matches!(error, Error::Unauthenticated(_)) {
        return answer::turned_away(media, StatusCode::BAD_REQUEST, error);
    }
    // As RFC 6750 asks; why is said in the body.
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")];
    let refusal = answer::turned_away(media, StatusCode::UNAUTHORIZED, error);
    (challenge, refusal).into_response()
}
