//! Answers as HTTP has them: their media type, their status, and refusals in the shape of answers.
//!
//! Owns the status of an answer (GraphQL over HTTP, section 6.4).

use async_graphql::{Response as Answer, ServerError};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::media::Media;
use crate::error::Error;
use crate::live::operations::as_json;

/// The answer to one request.
pub fn one(media: Media, answer: &Answer) -> Response {
    match as_json(answer) {
        Ok(json) => written(media, StatusCode::OK, json),
        // Older clients take only 200 for an answer.
        Err(errors) => {
            let status = match media {
                Media::Json => StatusCode::OK,
                Media::GraphqlResponse => status_of(&answer.errors),
            };
            let mut refusal = written(media, status, of_errors(&errors));
            if let Some(seconds) = retry_after(&answer.errors) {
                refusal.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            refusal
        }
    }
}

/// In how many seconds it is worth trying again; headers know no fractions of them.
fn retry_after(errors: &[ServerError]) -> Option<u32> {
    match errors.first()?.extensions.as_ref()?.get("retryAfter")? {
        async_graphql::Value::Number(seconds) => Some(seconds.as_f64()?.ceil() as u32),
        _ => None,
    }
}

/// The answers to a batch, in its order. A batch is not in the specification, so its type is JSON.
pub fn batch(answers: &[Answer]) -> Response {
    let answers = answers
        .iter()
        .map(|answer| as_json(answer).unwrap_or_else(|errors| of_errors(&errors)));
    let json = format!("[{}]", answers.collect::<Vec<_>>().join(","));
    written(Media::Json, StatusCode::OK, json)
}

/// A refusal of what is no GraphQL request, or not one that is served.
pub fn refused(media: Media, status: StatusCode, message: &str) -> Response {
    turned_away(media, status, Error::BadUserInput(message.to_owned()))
}

/// A refusal for another reason.
pub fn turned_away(media: Media, status: StatusCode, error: Error) -> Response {
    one_of(media, status, &[error.of_request()])
}

fn one_of(media: Media, status: StatusCode, errors: &[ServerError]) -> Response {
    let errors = serde_json::to_string(errors).unwrap_or_else(|_| "[]".into());
    written(media, status, of_errors(&errors))
}

fn of_errors(errors: &str) -> String {
    format!(r#"{{"errors":{errors}}}"#)
}

/// The status of an answer to what was not executed.
fn status_of(errors: &[ServerError]) -> StatusCode {
    let code = errors
        .first()
        .and_then(|error| error.extensions.as_ref()?.get("code"));
    match code {
        Some(async_graphql::Value::String(code)) if code == "UNAVAILABLE" => StatusCode::SERVICE_UNAVAILABLE,
        Some(async_graphql::Value::String(code)) if code == "RATE_LIMITED" => StatusCode::TOO_MANY_REQUESTS,
        Some(async_graphql::Value::String(code)) if code == "INTERNAL" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn written(media: Media, status: StatusCode, json: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media.content_type()),
        // An answer depends on who asks, and on when.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, json).into_response()
}
