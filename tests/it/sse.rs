//! Operations over HTTP: server-sent events as `graphql-sse` speaks them, and Apollo's multipart answers.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::harness::*;

const PATIENCE: Duration = Duration::from_secs(30);

const TOP: &str = "subscription { leaderboardChanged(board: \"points\") { cause top { points } } }";

const EVENTS: &str = "text/event-stream";

/// A stream of events, read as it comes.
struct Events {
    response: Response,
    unread: String,
}

#[derive(Debug, PartialEq)]
enum Event {
    Next(Value),
    Complete,
    Comment,
    /// The answer has ended.
    End,
}

impl Events {
    async fn of(request: reqwest::RequestBuilder) -> Events {
        let response = request.header("Accept", EVENTS).send().await.unwrap();
        let headers = response.headers();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(headers["content-type"], "text/event-stream; charset=utf-8");
        assert_eq!(headers["cache-control"], "no-cache, no-transform");
        assert_eq!(headers["x-accel-buffering"], "no");
        Events {
            response,
            unread: String::new(),
        }
    }

    async fn next(&mut self) -> Event {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let event = read(block);
                self.unread = rest.to_owned();
                return event;
            }
            let chunk = timeout(PATIENCE, self.response.chunk())
                .await
                .expect("nothing came");
            match chunk.unwrap() {
                Some(bytes) => self.unread.push_str(std::str::from_utf8(&bytes).unwrap()),
                None if self.unread.is_empty() => return Event::End,
                None => panic!("it ended within an event: {:?}", self.unread),
            }
        }
    }

    /// The next event that is no comment.
    async fn event(&mut self) -> Event {
        loop {
            match self.next().await {
                Event::Comment => {}
                event => return event,
            }
        }
    }

    async fn answer(&mut self) -> Value {
        match self.event().await {
            Event::Next(answer) => answer,
            other => panic!("{other:?} instead of an answer"),
        }
    }

    async fn update(&mut self) -> Value {
        let mut answer = self.answer().await;
        assert_eq!(answer.get("errors"), None, "{answer}");
        answer["data"]["leaderboardChanged"].take()
    }

    async fn ends_complete(&mut self) {
        assert_eq!(self.event().await, Event::Complete);
        assert_eq!(self.event().await, Event::End);
    }
}

fn read(block: &str) -> Event {
    match block.lines().collect::<Vec<_>>()[..] {
        [":"] => Event::Comment,
        ["event: next", data] => {
            let data = data.strip_prefix("data: ").expect("an event has data");
            Event::Next(serde_json::from_str(data).unwrap())
        }
        ["event: complete", "data:"] => Event::Complete,
        _ => panic!("no event: {block:?}"),
    }
}

fn post(app: &TestApp, query: &str) -> reqwest::RequestBuilder {
    app.http().post(app.url()).json(&json!({ "query": query }))
}

fn get(app: &TestApp, query: &str) -> reqwest::RequestBuilder {
    let mut url = reqwest::Url::parse(&app.url()).unwrap();
    url.query_pairs_mut().append_pair("query", query);
    app.http().request(Method::GET, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_gets_a_full_state_and_then_every_change_by_post_and_by_get() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let mut streams = [
        Events::of(post(&app, TOP)).await,
        Events::of(get(&app, TOP)).await,
    ];
    for events in &mut streams {
        assert_eq!(
            events.next().await,
            Event::Comment,
            "so that the headers come at once"
        );
        assert_eq!(
            events.update().await,
            json!({ "cause": "SNAPSHOT", "top": [{ "points": 5 }] })
        );
    }
    let mut socket = Wire::open(&app.address(), json!({})).await;
    socket.send(subscribe("1", TOP)).await;
    socket.data("1").await;
    assert_eq!(
        crowd(&app.address()).await,
        [3, 3, 1],
        "streams share with sockets"
    );

    for points in 6..9 {
        app.service().score("points", "amy", 1).await;
        for events in &mut streams {
            let update = json!({ "cause": "CHANGED", "top": [{ "points": points }] });
            assert_eq!(events.update().await, update);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_the_operation_name_and_who_asks_come_with_the_request() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let query = "query Other { viewer { role } }
        subscription Own($b: ID!) { leaderboardChanged(board: $b) { leaderboard { standing { points } } } }";
    let body = json!({ "query": query, "operationName": "Own", "variables": { "b": "points" } });
    let request = app.http().post(app.url()).header("X-Dev-User", "amy").json(&body);
    let mut events = Events::of(request).await;
    assert_eq!(events.update().await["leaderboard"]["standing"]["points"], 5);

    let mut url = reqwest::Url::parse(&app.url()).unwrap();
    url.query_pairs_mut()
        .append_pair("query", query)
        .append_pair("operationName", "Own")
        .append_pair("variables", "{\"b\":\"points\"}");
    let mut events = Events::of(app.http().get(url).header("X-Dev-User", "amy")).await;
    assert_eq!(events.update().await["leaderboard"]["standing"]["points"], 5);
    assert_eq!(crowd(&app.address()).await, [2, 2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_mutations_are_answered_once_and_completed() {
    let app = spawn_app().await;
    let checked_in = post(&app, "mutation { checkIn { outcome } }").header("X-Dev-User", "amy");
    let mut events = Events::of(checked_in).await;
    assert_eq!(
        events.answer().await,
        json!({ "data": { "checkIn": { "outcome": "CHECKED_IN" } } })
    );
    events.ends_complete().await;
    for request in [
        post(&app, "{ viewer { role } }"),
        get(&app, "{ viewer { role } }"),
    ] {
        let mut events = Events::of(request).await;
        assert_eq!(
            events.answer().await,
            json!({ "data": { "viewer": { "role": "ANONYMOUS" } } })
        );
        events.ends_complete().await;
    }
    crowd_becomes(&app.address(), [0, 0, 0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_executed_is_answered_with_its_errors_and_completed() {
    let app = spawn_app().await;
    for (query, code) in [
        ("subscription {", "BAD_USER_INPUT"),
        ("subscription { nothing }", "BAD_USER_INPUT"),
        ("{ nothing }", "BAD_USER_INPUT"),
        (
            "subscription { leaderboardChanged(board: \"nowhere\") { cause } }",
            "NOT_FOUND",
        ),
        (
            "subscription { rankChanged(board: \"points\") { cause } }",
            "UNAUTHENTICATED",
        ),
        ("{ streak { current } }", "UNAUTHENTICATED"),
    ] {
        for request in [post(&app, query), get(&app, query)] {
            let mut events = Events::of(request).await;
            let answer = events.answer().await;
            assert_eq!(
                answer["errors"][0]["extensions"]["code"], code,
                "{query}: {answer}"
            );
            events.ends_complete().await;
        }
    }
    crowd_becomes(&app.address(), [0, 0, 0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_changes_nothing() {
    let app = spawn_app().await;
    let query = "mutation { checkIn { outcome } }";
    for accept in [
        EVENTS,
        "application/json",
        "multipart/mixed;boundary=graphql;subscriptionSpec=1.0",
    ] {
        let request = get(&app, query)
            .header("X-Dev-User", "amy")
            .header("Accept", accept);
        let refused = request.send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED, "{accept}");
    }
    assert_eq!(app.user("amy").streak().await.total, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_is_gone_also_when_nothing_happens() {
    let app = spawn_app().await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut events = Events::of(post(&app, TOP)).await;
        events.update().await;
        streams.push(events);
    }
    assert_eq!(crowd(&app.address()).await, [5, 5, 1]);
    drop(streams);
    crowd_becomes(&app.address(), [0, 0, 0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_too_many_is_told_when_to_come_again() {
    let app = spawn_app().with(|settings| settings.live.max_sockets = 2).await;
    let mut first = Events::of(post(&app, TOP)).await;
    first.update().await;
    let _socket = Wire::open(&app.address(), json!({})).await;
    for accept in [EVENTS, "multipart/mixed;boundary=graphql;subscriptionSpec=1.0"] {
        let refused = post(&app, TOP).header("Accept", accept).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{accept}");
        let seconds: u32 = refused.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        let body: Value = refused.json().await.unwrap();
        assert!(
            body["errors"][0]["message"]
                .as_str()
                .unwrap()
                .contains("too many"),
            "{body}"
        );
    }
    drop(first);
    crowd_becomes(&app.address(), [1, 0, 0]).await;
    Events::of(post(&app, TOP)).await.update().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_broken_by_a_comment() {
    let app = spawn_app().with(|settings| settings.live.ping_seconds = 1).await;
    let mut events = Events::of(post(&app, TOP)).await;
    assert_eq!(events.next().await, Event::Comment);
    events.update().await;
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(events.next().await, Event::Comment);
    }
    assert!(
        began.elapsed() >= Duration::from_millis(1900),
        "{:?}",
        began.elapsed()
    );
    app.service().score("points", "amy", 5).await;
    assert_eq!(events.update().await["cause"], "CHANGED");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_no_stream_is_told_that_a_subscription_needs_one() {
    let app = spawn_app().await;
    let answer: Value = post(&app, TOP).send().await.unwrap().json().await.unwrap();
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.to_lowercase().contains("subscription"), "{answer}");
    let refused = get(&app, TOP).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(flavor = "multi_thread")]
async fn apollos_multipart_answers_come_as_parts_until_the_client_leaves() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let accept = "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0,application/json";
    let mut response = post(&app, TOP).header("Accept", accept).send().await.unwrap();
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(
        kind.starts_with("multipart/mixed") && kind.contains("graphql"),
        "{kind}"
    );
    for (cause, points) in [("SNAPSHOT", 5), ("CHANGED", 6)] {
        let wanted = format!("{{\"cause\":\"{cause}\",\"top\":[{{\"points\":{points}}}]}}");
        let mut text = String::new();
        while !text.contains(&wanted) {
            let chunk = timeout(PATIENCE, response.chunk()).await.expect("nothing came");
            text.push_str(std::str::from_utf8(&chunk.unwrap().expect("it ended")).unwrap());
        }
        assert!(
            text.contains("content-type: application/json\r\n\r\n{\"payload\":{"),
            "{text}"
        );
        assert!(text.ends_with("\r\n--graphql"), "a part is whole at once: {text}");
        app.service().score("points", "amy", 1).await;
    }
    assert_eq!(live_figure(&app.address(), "sockets").await, 1);
    drop(response);
    crowd_becomes(&app.address(), [0, 0, 0]).await;
}
