//! The names of requests: what an operator finds a request by, from the caller's report to our log.
//!
//! Owns what may be a name, and which request is being served: whatever runs for one knows its id without being handed it.

use std::fmt;
use std::sync::Arc;

use tokio::task_local;

use crate::random;

/// The name of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

/// A longer one is not worth logging.
const LONGEST: usize = 64;

impl RequestId {
    /// A new one.
    #[allow(clippy::new_without_default)] // no two are alike
    pub fn new() -> RequestId {
        RequestId(random::unique_name().into())
    }

    /// One that somebody else has given, unless it could be mistaken in a log: letters, digits and a few signs.
    pub fn parse(text: &str) -> Option<RequestId> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(&byte);
        let good = (1..=LONGEST).contains(&text.len()) && text.bytes().all(plain);
        good.then(|| RequestId(text.into()))
    }

    /// The id of the request that this task serves, or a new one if it serves none.
    pub fn current() -> RequestId {
        SERVED.try_with(Clone::clone).unwrap_or_else(|_| RequestId::new())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

task_local! {
    static SERVED: RequestId;
}

/// Does `work` as a part of the request of that id.
pub fn within<F: Future>(id: RequestId, work: F) -> impl Future<Output = F::Output> {
    SERVED.scope(id, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_stand_in_a_log_is_an_id() {
        for good in [
            "a",
            "0b1e-77_x.y:z",
            "Root=1-67891233-abcdef012345678912345678",
            &"x".repeat(64),
        ] {
            assert_eq!(RequestId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a\nb", "a\"b", "é", "a\u{1b}[0m", &"x".repeat(65)] {
            assert_eq!(RequestId::parse(bad), None, "{bad:?}");
        }
    }

    #[tokio::test]
    async fn what_runs_for_a_request_knows_its_id() {
        let id = RequestId::new();
        let seen = within(id.clone(), async {
            tokio::task::yield_now().await;
            RequestId::current()
        });
        assert_eq!(seen.await, id);
        assert_ne!(RequestId::current(), id);
    }
}
