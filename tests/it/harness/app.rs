//! A server for one test: port 0, a private Redis in a directory of its own, a clock that the test moves.

use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Value, json};
use tallyboard::clock::Clock;
use tallyboard::config::{Board, Rate, Settings};
use tallyboard::server::{self, Running};
use tempfile::TempDir;

use super::shape;

/// An instant, as RFC 3339.
pub fn at(instant: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(instant).unwrap().to_utc()
}

/// A date, as `YYYY-MM-DD`.
pub fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// One partition and several: what must hold, holds with both.
pub fn both_partitions() -> [u32; 2] {
    [1, 8]
}

/// Begins to describe an app; awaiting it starts it.
pub fn spawn_app() -> Blueprint {
    let mut settings = Settings::default();
    settings.server.listen = "127.0.0.1:0".parse().unwrap();
    settings.server.shutdown_seconds = 5;
    settings.redis.timeout_ms = 5_000; // tests share two cores: only tests about timeouts want short ones
    // The clock stands still, so nothing is ever given back: only tests about limits want any.
    settings.rate = Rate {
        user_mutations: 0,
        user_operations: 0,
        address_mutations: 0,
        address_operations: 0,
        service_mutations: 0,
        service_operations: 0,
    };
    settings.board = vec![Board {
        id: "points".into(),
        title: "Points".into(),
        ..Default::default()
    }];
    Blueprint {
        settings,
        now: at("2027-03-01T08:00:00Z"),
        dev: true,
    }
}

pub struct Blueprint {
    settings: Settings,
    now: DateTime<Utc>,
    dev: bool,
}

impl Blueprint {
    pub fn at(mut self, instant: &str) -> Blueprint {
        self.now = at(instant);
        self
    }

    pub fn zone(mut self, zone: &str) -> Blueprint {
        self.settings.day.time_zone = zone.into();
        self
    }

    pub fn partitions(mut self, partitions: u32) -> Blueprint {
        self.settings.redis.partitions = partitions;
        self
    }

    /// Without `--dev`: callers are told apart by tokens only.
    pub fn guarded(mut self) -> Blueprint {
        self.dev = false;
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Settings)) -> Blueprint {
        change(&mut self.settings);
        self
    }
}

impl IntoFuture for Blueprint {
    type Output = TestApp;
    type IntoFuture = Pin<Box<dyn Future<Output = TestApp> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let dir = TempDir::new().unwrap();
            TestApp::open(dir, self.settings, self.now, self.dev).await
        })
    }
}

/// A running server. Dropping it stops it and asserts that nothing is left behind.
pub struct TestApp {
    pub clock: Clock,
    pub dir: TempDir,
    pub settings: Settings,
    running: Option<Running>,
    http: reqwest::Client,
    dev: bool,
}

impl TestApp {
    /// Starts a server on a directory that may hold data already.
    pub async fn start(dir: TempDir, settings: Settings, now: DateTime<Utc>) -> TestApp {
        TestApp::open(dir, settings, now, true).await
    }

    async fn open(dir: TempDir, mut settings: Settings, now: DateTime<Utc>, dev: bool) -> TestApp {
        settings.server.data_dir = dir.path().join("data");
        let clock = Clock::manual(now);
        let running = server::start(settings.clone(), clock.clone(), dev).await.unwrap();
        TestApp {
            clock,
            dir,
            settings,
            running: Some(running),
            http: reqwest::Client::new(),
            dev,
        }
    }

    pub fn set(&self, instant: &str) {
        self.clock.set(at(instant));
    }

    pub fn url(&self) -> String {
        format!("http://{}/graphql", self.address())
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        self.running().address.to_string()
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A connection to the app's Redis beside the server's.
    pub async fn redis(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.running().redis_address().clone()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    /// Stops the server and starts another on the same data.
    pub async fn restarted(mut self, change: impl FnOnce(&mut Settings)) -> TestApp {
        let now = self.clock.now();
        self.running.take().unwrap().stop().await;
        let mut settings = self.settings.clone();
        change(&mut settings);
        let dir = std::mem::replace(&mut self.dir, TempDir::new().unwrap());
        TestApp::open(dir, settings, now, self.dev).await
    }

    /// Stops the server and hands over its data and settings.
    pub async fn stopped(mut self) -> (TempDir, Settings) {
        self.running.take().unwrap().stop().await;
        (
            std::mem::replace(&mut self.dir, TempDir::new().unwrap()),
            self.settings.clone(),
        )
    }

    pub fn anonymous(&self) -> Caller<'_> {
        Caller {
            app: self,
            user: None,
            role: None,
            token: None,
        }
    }

    /// Whoever a token names.
    pub fn bearer(&self, token: impl Into<String>) -> Caller<'_> {
        Caller {
            token: Some(format!("Bearer {}", token.into())),
            ..self.anonymous()
        }
    }

    /// Whoever such an `Authorization` names.
    pub fn authorized(&self, authorization: &str) -> Caller<'_> {
        Caller {
            token: Some(authorization.into()),
            ..self.anonymous()
        }
    }

    pub fn user(&self, id: &str) -> Caller<'_> {
        Caller {
            user: Some(id.into()),
            ..self.anonymous()
        }
    }

    pub fn service(&self) -> Caller<'_> {
        Caller {
            role: Some("SERVICE"),
            ..self.anonymous()
        }
    }

    pub fn analyst(&self) -> Caller<'_> {
        Caller {
            role: Some("ANALYST"),
            ..self.anonymous()
        }
    }

    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        let pid = running.redis_pid();
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(running.stop()));
        if !std::thread::panicking() {
            let alive = pid.is_some_and(|pid| PathBuf::from(format!("/proc/{pid}")).exists());
            assert!(!alive, "the private Redis outlived its server");
        }
    }
}

/// Somebody who sends requests.
#[derive(Clone)]
pub struct Caller<'a> {
    pub app: &'a TestApp,
    user: Option<String>,
    role: Option<&'static str>,
    token: Option<String>,
}

impl Caller<'_> {
    /// The claims as a socket's `connection_init` carries them.
    pub fn claims(&self) -> Value {
        json!({ "devUser": self.user, "devRole": self.role, "Authorization": self.token })
    }

    /// A request with the caller's headers.
    pub fn post(&self, query: &str, variables: Value) -> reqwest::RequestBuilder {
        let mut request = self.app.http.post(self.app.url());
        if let Some(user) = &self.user {
            request = request.header("X-Dev-User", user);
        }
        if let Some(role) = self.role {
            request = request.header("X-Dev-Role", role);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", token);
        }
        request.json(&json!({ "query": query, "variables": variables }))
    }

    /// The whole answer, its shape checked against the schema.
    pub async fn ask(&self, query: &str, variables: Value) -> Value {
        let answer = self.try_ask(query, variables).await.unwrap();
        shape::check(query, &answer);
        answer
    }

    /// The whole answer, unless the connection fails.
    pub async fn try_ask(&self, query: &str, variables: Value) -> reqwest::Result<Value> {
        self.post(query, variables).send().await?.json().await
    }

    /// The data of an answer without errors.
    pub async fn data(&self, query: &str, variables: Value) -> Value {
        let mut answer = self.ask(query, variables).await;
        assert!(answer.get("errors").is_none(), "{query}: {answer}");
        answer["data"].take()
    }

    /// One field of an answer without errors, typed.
    pub async fn field<T: serde::de::DeserializeOwned>(&self, query: &str, variables: Value) -> T {
        let data = self.data(query, variables).await;
        let (_, value) = data.as_object().unwrap().iter().next().unwrap();
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{query}: {error}: {value}"))
    }

    /// The code and the message of the only error.
    pub async fn refusal(&self, query: &str, variables: Value) -> (String, String) {
        let answer = self.ask(query, variables).await;
        let errors = answer["errors"]
            .as_array()
            .unwrap_or_else(|| panic!("{query} was not refused: {answer}"));
        assert_eq!(errors.len(), 1, "{answer}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&errors[0]["extensions"]["code"]),
            text(&errors[0]["message"]),
        )
    }
}
