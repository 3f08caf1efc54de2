//! What browsers are told to keep away from.
//!
//! Owns the headers that every answer bears. Answers are data: nothing of them may run, be framed or be taken for another
//! type. Pages load what they need from this server and nothing else, and no script or style may stand within them.

use axum::http::HeaderMap;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::Response;

/// For answers that are no pages.
const DATA: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// For pages. Avatars are wherever the host application keeps them.
const PAGE: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; \
     img-src 'self' data: https:; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// The headers that are the same everywhere.
const ALWAYS: [(HeaderName, HeaderValue); 5] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    // Pages of other origins that are allowed to read answers ask by CORS, which this does not concern.
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Adds them to an answer.
pub async fn told(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in &ALWAYS {
        headers.insert(name, value.clone());
    }
    let policy = if is_page(headers) { PAGE } else { DATA };
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}
