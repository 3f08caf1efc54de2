//! What is asked: the parameters of a request, in a body or in a link.
//!
//! Owns their reading (GraphQL over HTTP, section 5). Pure.

use std::collections::HashMap;
use std::fmt;

use async_graphql::{Request, Variables};
use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// What was sent.
#[derive(Debug)]
pub enum Asked {
    /// One request.
    One(Box<Request>),
    /// Several, answered in their order.
    Batch(Vec<Request>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    query: Option<String>,
    operation_name: Option<String>,
    variables: Option<Variables>,
    extensions: Option<HashMap<String, async_graphql::Value>>,
}

impl Parameters {
    fn request(self) -> Result<Request, String> {
        let extensions = self.extensions.unwrap_or_default();
        // Who names a persisted document need not send it.
        if self.query.is_none() && !extensions.contains_key("persistedQuery") {
            return Err("there is no query".into());
        }
        let mut request = Request::new(self.query.unwrap_or_default());
        request.operation_name = self.operation_name;
        request.variables = self.variables.unwrap_or_default();
        request.extensions.0 = extensions;
        Ok(request)
    }
}

/// Reads a body; a batch has at most `most` requests.
pub fn in_body(body: &[u8], most: usize) -> Result<Asked, String> {
    let is_batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if !is_batch {
        let request = serde_json::from_slice::<Parameters>(body).map_err(|error| error.to_string())?;
        return Ok(Asked::One(Box::new(request.request()?)));
    }
    let AtMost(batch) = at_most(body, most)?;
    match batch.is_empty() {
        true => Err("a batch has at least one request".into()),
        false => Ok(Asked::Batch(batch)),
    }
}

struct AtMost(Vec<Request>);

/// Reads a batch, no further than it may be long.
fn at_most(body: &[u8], most: usize) -> Result<AtMost, String> {
    struct Batch(usize);

    impl<'de> Visitor<'de> for Batch {
        type Value = AtMost;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of requests")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut requests: A) -> Result<AtMost, A::Error> {
            let mut read = Vec::new();
            while let Some(parameters) = requests.next_element_seed(AsObject)? {
                if read.len() == self.0 {
                    return Err(A::Error::custom(format!(
                        "a batch has at most {} requests",
                        self.0
                    )));
                }
                read.push(parameters.request().map_err(A::Error::custom)?);
            }
            Ok(AtMost(read))
        }
    }

    let mut json = serde_json::Deserializer::from_slice(body);
    let batch = json
        .deserialize_seq(Batch(most))
        .map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    Ok(batch)
}

/// An element of a batch. Serde would take a list for the fields of a struct as well.
struct AsObject;

impl<'de> DeserializeSeed<'de> for AsObject {
    type Value = Parameters;

    fn deserialize<D: Deserializer<'de>>(self, element: D) -> Result<Parameters, D::Error> {
        element.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AsObject {
    type Value = Parameters;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Parameters, A::Error> {
        Parameters::deserialize(MapAccessDeserializer::new(object))
    }
}

/// Reads a link. (async-graphql's own reading knows no `operationName`.)
pub fn in_link(uri: &Uri) -> Result<Request, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Link {
        query: Option<String>,
        operation_name: Option<String>,
        variables: Option<String>,
        extensions: Option<String>,
    }

    fn json<T: DeserializeOwned>(name: &str, text: Option<String>) -> Result<Option<T>, String> {
        let text = text.filter(|text| !text.is_empty());
        let value = text.map(|text| serde_json::from_str(&text)).transpose();
        value.map_err(|error| format!("{name}: {error}"))
    }

    let Query(link) = Query::<Link>::try_from_uri(uri).map_err(|error| error.body_text())?;
    Parameters {
        query: link.query,
        operation_name: link.operation_name,
        variables: json::<Option<Variables>>("variables", link.variables)?.flatten(),
        extensions: json::<Option<_>>("extensions", link.extensions)?.flatten(),
    }
    .request()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_refused_in_words() {
        for (body, words) in [
            ("", "EOF"),
            ("{", "EOF"),
            ("{} {}", "trailing"),
            ("1", "invalid type"),
            ("null", "invalid type"),
            ("\"{ a }\"", "invalid type"),
            ("{}", "no query"),
            (r#"{"query":null}"#, "no query"),
            (r#"{"query":["{ a }"]}"#, "expected a string"),
            (r#"{"query":"{ a }","variables":"a"}"#, "invalid type"),
            (r#"{"query":"{ a }","variables":[1]}"#, "invalid type"),
            (r#"{"query":"{ a }","operationName":1}"#, "invalid type"),
            (r#"{"query":"{ a }","extensions":false}"#, "invalid type"),
            ("[]", "at least one"),
            (r#"[{"query":"{ a }"},{}]"#, "no query"),
            (r#"[["{ a }",null,null,null]]"#, "expected a request"),
            (r#"[{"query":"{ a }"}"#, "EOF"),
            (r#"[{"query":"{ a }"}]]"#, "trailing"),
        ] {
            let reason = in_body(body.as_bytes(), 10).unwrap_err();
            assert!(reason.contains(words), "{body}: {reason}");
        }
    }

    #[test]
    fn a_batch_is_bounded() {
        let batch = |many: usize| format!("[{}]", vec![r#"{"query":"{ a }"}"#; many].join(","));
        assert!(matches!(in_body(batch(3).as_bytes(), 3), Ok(Asked::Batch(all)) if all.len() == 3));
        let reason = in_body(batch(4).as_bytes(), 3).unwrap_err();
        assert!(reason.contains("at most 3"), "{reason}");
    }

    #[test]
    fn a_link_has_all_that_a_body_has() {
        let link = "/graphql?query=query%20A(%24b:Int)%7Ba%7D&operationName=A&variables=%7B%22b%22:1%7D&extensions=null";
        let request = in_link(&link.parse().unwrap()).unwrap();
        assert_eq!(
            (request.query.as_str(), request.operation_name.as_deref()),
            ("query A($b:Int){a}", Some("A"))
        );
        assert_eq!(request.variables.len(), 1);
        for (link, words) in [
            ("/graphql", "no query"),
            ("/graphql?query=%7Ba%7D&variables=%5B%5D", "variables"),
            ("/graphql?query=%7Ba%7D&extensions=1", "extensions"),
        ] {
            let reason = in_link(&link.parse().unwrap()).unwrap_err();
            assert!(reason.contains(words), "{link}: {reason}");
        }
    }
}
