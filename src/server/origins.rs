//! Which pages may call.
//!
//! Owns the list of origins (`server.cors_origins`) and what it decides: whose pages a browser lets read our answers, and
//! whose may open a socket, which browsers let any page do.
//!
//! Requests from elsewhere can do no harm by themselves, since a browser adds no credentials of ours to them: there are no
//! cookies, a token is put into a header or a message by the page that has it, and a mutation must be JSON, which a page
//! may send to another origin only after it was allowed to.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::visitor::REQUEST_ID;
use crate::config::ConfigError;

const KEY: &str = "server.cors_origins";

/// How long a browser may remember what it was allowed.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// The origins whose pages may call, besides our own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    listed: Vec<HeaderValue>,
    any: bool,
}

impl Origins {
    /// Reads origins such as `https://app.example`, or `*` for any.
    pub fn parse(origins: &[String]) -> Result<Origins, ConfigError> {
        let mut all = Origins::default();
        for text in origins {
            let uri = text.parse::<Uri>().ok();
            let plain = uri.is_some_and(|uri| {
                let of = (uri.scheme_str().unwrap_or_default(), uri.authority());
                matches!(of, ("http" | "https", Some(host)) if *text == format!("{}://{host}", of.0))
            });
            match HeaderValue::from_str(text) {
                _ if text == "*" => all.any = true,
                Ok(origin) if plain => all.listed.push(origin),
                _ => {
                    let reason = format!(
                        "{text:?} is no origin; https://app.example would be, with no path, or \"*\""
                    );
                    return Err(ConfigError::unusable(KEY, reason));
                }
            }
        }
        Ok(all)
    }

    /// What lets their pages read answers; `None` if there are none.
    pub fn layer(&self) -> Option<CorsLayer> {
        let origins = match self.any {
            true => AllowOrigin::any(),
            false if self.listed.is_empty() => return None,
            false => AllowOrigin::list(self.listed.clone()),
        };
        let layer = CorsLayer::new()
            .allow_origin(origins)
            .allow_methods([Method::GET, Method::POST])
            .allow_headers(AllowHeaders::mirror_request()) // clients add headers of their own, and none is trusted for that
            .expose_headers([header::RETRY_AFTER, REQUEST_ID, HeaderName::from_static("www-authenticate")])
            .max_age(REMEMBERED);
        Some(layer)
    }

    /// Whether whoever sends these headers may open a socket: no page at all, a page of this host, or a listed one's.
    pub fn may_connect(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return true;
        };
        self.any
            || self.listed.contains(origin)
            || is_of_host(origin, headers.get(header::HOST)).unwrap_or(false)
    }
}

/// Whether a page lies on the host that is called.
fn is_of_host(origin: &HeaderValue, host: Option<&HeaderValue>) -> Option<bool> {
    let origin: Uri = origin.to_str().ok()?.parse().ok()?;
    let host: Uri = host?.to_str().ok()?.parse().ok()?;
    let (page, called) = (origin.authority()?, host.authority()?);
    let usual = match origin.scheme_str()? {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let same_port = page.port_u16().unwrap_or(usual) == called.port_u16().unwrap_or(usual);
    Some(same_port && page.host().eq_ignore_ascii_case(called.host()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_connect(listed: &[&str], origin: Option<&str>, host: &str) -> bool {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        Origins::parse(&listed).unwrap().may_connect(&headers)
    }

    #[test]
    fn pages_of_this_host_and_of_the_list_may_open_sockets() {
        for (origin, host, may) in [
            (None, "tally.example", true),
            (Some("https://tally.example"), "tally.example", true),
            (Some("https://tally.example"), "TALLY.example:443", true),
            (Some("http://tally.example"), "tally.example:80", true),
            (Some("http://127.0.0.1:8080"), "127.0.0.1:8080", true),
            (Some("http://[::1]:8080"), "[::1]:8080", true),
            (Some("https://app.example"), "tally.example", true),
            (Some("http://app.example"), "tally.example", false),
            (Some("https://app.example:444"), "tally.example", false),
            (Some("https://app.example.evil.example"), "tally.example", false),
            (Some("https://evil.example"), "tally.example", false),
            (Some("http://127.0.0.1:8081"), "127.0.0.1:8080", false),
            (Some("https://tally.example:8443"), "tally.example", false),
            (Some("null"), "tally.example", false),
            (Some("file://tally.example"), "tally.example", false),
            (Some(""), "tally.example", false),
        ] {
            assert_eq!(
                may_connect(&["https://app.example"], origin, host),
                may,
                "{origin:?} {host}"
            );
        }
        assert!(may_connect(&["*"], Some("null"), "tally.example"));
    }

    #[test]
    fn what_is_no_origin_is_refused_in_words() {
        for text in [
            "app.example",
            "https://app.example/",
            "https://app.example/a",
            "ftp://a",
            "https://",
            "*.a",
            "null",
            "",
        ] {
            let error = Origins::parse(&[text.into()]).unwrap_err().to_string();
            assert!(error.starts_with("server.cors_origins: "), "{text}: {error}");
        }
        assert!(Origins::default().layer().is_none());
    }
}
