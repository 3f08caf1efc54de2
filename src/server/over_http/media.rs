//! Media types: what a request is written in, and what its answer is to be.
//!
//! Owns the choice (GraphQL over HTTP, sections 4.1, 5.2 and 6.1). Pure.

use async_graphql::http::is_accept_multipart_mixed;
use axum::http::{HeaderMap, HeaderValue, header};
use mediatype::{MediaType, MediaTypeList, ReadParams};

use crate::live::streams::Spelling;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// `application/json`: for clients older than the specification, which take only 200 for an answer.
    Json,
    /// `application/graphql-response+json`: the status says whether anything was executed.
    GraphqlResponse,
}

impl Media {
    /// What a client with these headers prefers. One that names nothing that is written here gets JSON all the same.
    pub fn wanted(headers: &HeaderMap) -> Media {
        let (graphql, json) = liked(headers);
        match graphql {
            Some(liked) if liked > 0 && json.is_none_or(|json| liked >= json) => Media::GraphqlResponse,
            _ => Media::Json,
        }
    }

    /// As a header.
    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Media::Json => "application/json; charset=utf-8",
            Media::GraphqlResponse => "application/graphql-response+json; charset=utf-8",
        })
    }
}

/// How much a client likes the new type and the old, in thousandths; `None`: it does not name it.
fn liked(headers: &HeaderMap) -> (Option<u16>, Option<u16>) {
    let accepts = headers.get_all(header::ACCEPT).iter();
    let texts = accepts.filter_map(|accept| accept.to_str().ok());
    let (mut graphql, mut json) = (None, None);
    for kind in texts.flat_map(MediaTypeList::new).flatten() {
        let liked = quality(&kind);
        match kind.essence().to_string().to_ascii_lowercase().as_str() {
            "application/graphql-response+json" => graphql = graphql.max(Some(liked)),
            "application/json" | "application/*" | "*/*" => json = json.max(Some(liked)),
            _ => {}
        }
    }
    (graphql, json)
}

/// How a client with these headers takes a stream of answers; `None`: not at all.
pub fn stream(headers: &HeaderMap) -> Option<Spelling> {
    let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
    let events = |kind: &MediaType<'_>| {
        kind.essence()
            .to_string()
            .eq_ignore_ascii_case("text/event-stream")
    };
    if MediaTypeList::new(accept)
        .flatten()
        .any(|kind| events(&kind) && quality(&kind) > 0)
    {
        return Some(Spelling::Events);
    }
    is_accept_multipart_mixed(accept).then_some(Spelling::Parts)
}

/// Whether a client names JSON among what it takes. Some name all that they could read, streams too, whatever they ask.
pub fn takes_json(headers: &HeaderMap) -> bool {
    let (graphql, json) = liked(headers);
    graphql.max(json).is_some_and(|liked| liked > 0)
}

/// How much a type is wanted, in thousandths (RFC 9110, section 12.4.2).
fn quality(kind: &MediaType<'_>) -> u16 {
    let given = mediatype::Name::new("q").and_then(|q| kind.get_param(q));
    let given = given.and_then(|q| q.as_str().parse::<f32>().ok());
    given.map_or(1000, |q| (q.clamp(0.0, 1.0) * 1000.0) as u16)
}

/// Whether a request says that it is JSON in UTF-8. Forms and plain text, which a page of anybody's may send to us with no
/// leave asked, are not.
pub fn is_json(headers: &HeaderMap) -> bool {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let Some(Ok(kind)) = text.map(MediaType::parse) else {
        return false;
    };
    let charset = kind.get_param(mediatype::names::CHARSET);
    kind.essence() == mediatype::media_type!(APPLICATION / JSON)
        && charset.is_none_or(|charset| charset.unquoted_str().eq_ignore_ascii_case("utf-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| (name.clone(), value.parse().unwrap()));
        values.collect()
    }

    #[test]
    fn who_asks_for_the_new_type_first_gets_it() {
        const NEW: &str = "application/graphql-response+json";
        for (accept, wanted) in [
            (vec![], Media::Json),
            (vec!["*/*"], Media::Json),
            (vec!["text/html, */*;q=0.1"], Media::Json),
            (vec![NEW], Media::GraphqlResponse),
            (vec!["Application/GraphQL-Response+JSON"], Media::GraphqlResponse),
            (
                vec!["application/graphql-response+json; charset=utf-8, application/json; charset=utf-8"],
                Media::GraphqlResponse,
            ),
            (
                vec!["application/graphql-response+json;q=0.9, application/json"],
                Media::Json,
            ),
            (vec!["application/json;q=0.9", NEW], Media::GraphqlResponse),
            (vec!["application/graphql-response+json;q=0"], Media::Json),
            (vec!["image/png", ",;=,"], Media::Json),
        ] {
            assert_eq!(
                Media::wanted(&headers(header::ACCEPT, &accept)),
                wanted,
                "{accept:?}"
            );
        }
    }

    #[test]
    fn json_is_json_in_utf_8() {
        for (kind, json) in [
            ("application/json", true),
            ("APPLICATION/JSON;charset=\"UTF-8\"", true),
            ("application/json; charset=latin1", false),
            ("application/jsonp", false),
            ("application/graphql-response+json", false),
            ("text/plain", false),
            ("text/plain; application/json", false),
            ("application/x-www-form-urlencoded", false),
            ("multipart/form-data; boundary=x", false),
            ("", false),
        ] {
            assert_eq!(is_json(&headers(header::CONTENT_TYPE, &[kind])), json, "{kind:?}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn a_stream_is_for_those_who_take_one() {
        for (accept, wanted, json) in [
            ("text/event-stream", Some(Spelling::Events), false),
            ("Text/Event-Stream; charset=utf-8", Some(Spelling::Events), false),
            ("text/event-stream;q=0, application/json", None, true),
            ("text/event-streams", None, false),
            (
                "application/json, text/event-stream, multipart/mixed",
                Some(Spelling::Events),
                true,
            ),
            (
                "application/json;q=0, text/event-stream",
                Some(Spelling::Events),
                false,
            ),
            (
                "multipart/mixed;boundary=graphql;subscriptionSpec=1.0, application/json",
                Some(Spelling::Parts),
                true,
            ),
            ("*/*", None, true),
        ] {
            let headers = headers(header::ACCEPT, &[accept]);
            assert_eq!(
                (stream(&headers), takes_json(&headers)),
                (wanted, json),
                "{accept}"
            );
        }
    }
}
