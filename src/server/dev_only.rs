//! What keeps `--dev` to this machine: no foreign Host or Origin, nothing that a proxy forwarded.
//!
//! In `--dev` callers name themselves, so a page on the web that gets a browser to resolve its name to 127.0.0.1 (DNS
//! rebinding) or to open a socket to it (which the same-origin policy lets pass), or a proxy left in front by mistake,
//! must not reach it.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

const FORWARDED: [&str; 5] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Lets a request through that was meant for this machine.
pub async fn guard(request: Request, next: Next) -> Response {
    match refusal(request.headers()) {
        None => next.run(request).await,
        Some(reason) => (
            StatusCode::FORBIDDEN,
            format!("--dev serves this machine only: {reason}\n"),
        )
            .into_response(),
    }
}

fn refusal(headers: &HeaderMap) -> Option<String> {
    if let Some(name) = FORWARDED.into_iter().find(|name| headers.contains_key(*name)) {
        return Some(format!("the request was forwarded ({name})"));
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let host = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.split_once("://"))
            .map(|(_, host)| host);
        if !host.is_some_and(is_loopback) {
            return Some(format!("the request comes from a page of {origin:?}"));
        }
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    (!is_loopback(host)).then(|| format!("the request is for the host {host:?}"))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_let_through() {
        for good in [
            "localhost",
            "localhost:8080",
            "LOCALHOST",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:8080",
        ] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:8080",
            "[::2]",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }
}
