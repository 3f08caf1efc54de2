//! Where the server is found, by whom, and what its answers say to browsers and proxies.

use reqwest::header::{self, HeaderMap};
use reqwest::{Client, Method, Response, StatusCode, redirect};
use serde_json::{Value, json};
use tallyboard::config::Settings;

use crate::harness::*;

const SECRET: &str = "a secret of the tests that is long enough";

/// An app that is not in `--dev`.
async fn guarded(change: impl FnOnce(&mut Settings)) -> TestApp {
    let app = spawn_app().guarded();
    app.with(|settings| {
        settings.auth.jwt_secret = SECRET.into();
        change(settings);
    })
    .await
}

fn base(app: &TestApp) -> String {
    format!("http://{}", app.address())
}

async fn get(url: impl AsRef<str>) -> Response {
    let client = Client::builder().redirect(redirect::Policy::none()).build();
    client.unwrap().get(url.as_ref()).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_served_under_the_base_path_and_nothing_beside_it() {
    let app = spawn_app().with(|settings| settings.server.base_path = "/tally/board".into());
    let app = app.await;
    let base = base(&app);
    for path in [
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/dev/token?user=amy",
        "/graphql?query={__typename}",
    ] {
        let under = get(format!("{base}/tally/board{path}")).await;
        assert_eq!(under.status(), StatusCode::OK, "{path}");
        assert_eq!(
            get(format!("{base}{path}")).await.status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    let home = get(format!("{base}/tally/board")).await;
    assert!(home.status().is_redirection());
    assert_eq!(home.headers()[header::LOCATION], "/tally/board/");
    // Whatever the page refers to lies beside it.
    let page = get(format!("{base}/tally/board/")).await.text().await.unwrap();
    for part in page.split(['"', '\'']).skip(1).step_by(2) {
        assert!(!part.starts_with('/'), "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_may_have_a_listener_of_their_own() {
    let app = spawn_app().with(|settings| settings.server.metrics_listen = "127.0.0.1:0".into());
    let app = app.await;
    assert_eq!(get(base(&app) + "/metrics").await.status(), StatusCode::NOT_FOUND);
    let apart = format!("http://{}", app.running().metrics_address.unwrap());
    let metrics = get(apart.clone() + "/metrics").await.text().await.unwrap();
    assert!(
        metrics.contains("tallyboard_live_topics") && metrics.contains("tallyboard_rate_limited_total 0")
    );
    for path in ["/", "/graphql?query={__typename}", "/readyz"] {
        assert_eq!(
            get(apart.clone() + path).await.status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_bears_the_id_of_its_request() {
    let app = spawn_app().await;
    let ask = async |id: &str| {
        let request = app.anonymous().post("{ __typename }", json!({}));
        let response = request.header("X-Request-Id", id).send().await.unwrap();
        response.headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask("from-a-proxy.7").await, "from-a-proxy.7");
    for bad in ["", "two words", "\"quoted\"", &"x".repeat(65)] {
        let made = ask(bad).await;
        assert!(made != bad && made.len() == 32, "{bad:?} became {made:?}");
    }
    for path in ["/", "/healthz", "/nowhere", "/graphql"] {
        assert!(
            get(base(&app) + path)
                .await
                .headers()
                .contains_key("x-request-id"),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_tells_browsers_what_to_keep_away_from() {
    let app = spawn_app().await;
    let url = base(&app);
    let posted = app
        .anonymous()
        .post("{ __typename }", json!({}))
        .send()
        .await
        .unwrap();
    let refused = app
        .http()
        .get(&url)
        .header("Origin", "https://evil.example")
        .send()
        .await
        .unwrap();
    let mut answers = vec![("POST".to_owned(), posted), ("refused".to_owned(), refused)];
    for path in [
        "/",
        "/index.js",
        "/index.css",
        "/graphql",
        "/graphql?query={__typename}",
        "/healthz",
        "/metrics",
        "/no",
    ] {
        answers.push((path.to_owned(), get(url.clone() + path).await));
    }
    for (what, answer) in answers {
        let text = |headers: &HeaderMap, name: &str| headers[name].to_str().unwrap().to_owned();
        let headers = answer.headers();
        assert_eq!(text(headers, "x-content-type-options"), "nosniff", "{what}");
        assert_eq!(text(headers, "x-frame-options"), "DENY", "{what}");
        assert_eq!(text(headers, "referrer-policy"), "no-referrer", "{what}");
        assert_eq!(
            text(headers, "cross-origin-resource-policy"),
            "same-origin",
            "{what}"
        );
        assert_eq!(
            text(headers, "cross-origin-opener-policy"),
            "same-origin",
            "{what}"
        );
        let policy = text(headers, "content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{what}"
        );
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{what}: {policy}"
        );
        assert_eq!(policy.contains("script-src 'self'"), what == "/", "{what}");
        assert!(
            !headers.contains_key("server") && !headers.contains_key("x-powered-by"),
            "{what}"
        );
    }
    // Nothing on the page needs more than that.
    let page = get(url + "/").await.text().await.unwrap();
    for inline in [
        "<style",
        "style=",
        " onclick=",
        " onload=",
        "<script>",
        "javascript:",
        "http-equiv",
    ] {
        assert!(!page.contains(inline), "{inline}");
    }
}

/// What a browser asks before it lets a page send something.
async fn preflight(app: &TestApp, origin: &str) -> Response {
    let request = Client::new().request(Method::OPTIONS, app.url());
    let request = request
        .header(header::ORIGIN, origin)
        .header("Access-Control-Request-Method", "POST");
    let request = request.header("Access-Control-Request-Headers", "authorization,content-type");
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_listed_origins_may_call_and_no_others() {
    let app = guarded(|settings| settings.server.cors_origins = vec!["https://app.example".into()]).await;
    let allowed = preflight(&app, "https://app.example").await;
    assert_eq!(
        allowed.headers()["access-control-allow-origin"],
        "https://app.example"
    );
    assert_eq!(
        allowed.headers()["access-control-allow-headers"],
        "authorization,content-type"
    );
    assert_eq!(allowed.headers()["access-control-allow-methods"], "GET,POST");
    for origin in [
        "https://evil.example",
        "http://app.example",
        "https://app.example.evil.example",
        "null",
    ] {
        let refused = preflight(&app, origin).await;
        assert!(
            !refused.headers().contains_key("access-control-allow-origin"),
            "{origin}"
        );
    }
    let request = app
        .anonymous()
        .post("{ __typename }", json!({}))
        .header(header::ORIGIN, "https://app.example");
    let answer = request.send().await.unwrap();
    assert_eq!(
        answer.headers()["access-control-allow-origin"],
        "https://app.example"
    );
    assert!(!answer.headers().contains_key("access-control-allow-credentials"));
    let exposed = answer.headers()["access-control-expose-headers"]
        .to_str()
        .unwrap();
    assert!(
        exposed.contains("retry-after") && exposed.contains("x-request-id"),
        "{exposed}"
    );

    let nobody = app
        .restarted(|settings| settings.server.cors_origins = Vec::new())
        .await;
    let refused = preflight(&nobody, "https://app.example").await;
    assert!(
        !refused
            .headers()
            .keys()
            .any(|name| name.as_str().starts_with("access-control"))
    );
}

/// The status of a request to open a socket.
async fn upgrade(app: &TestApp, origin: Option<&str>) -> StatusCode {
    let request = Client::new()
        .get(app.url())
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket");
    let request = request.header("Sec-WebSocket-Version", "13");
    let request = request.header("Sec-WebSocket-Protocol", "graphql-transport-ws");
    let request = request.header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    let request = match origin {
        Some(origin) => request.header(header::ORIGIN, origin),
        None => request,
    };
    request.send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_this_host_and_of_listed_origins_may_open_sockets() {
    let app = guarded(|settings| settings.server.cors_origins = vec!["https://app.example".into()]).await;
    let own = base(&app);
    for origin in [None, Some("https://app.example"), Some(own.as_str())] {
        assert_eq!(
            upgrade(&app, origin).await,
            StatusCode::SWITCHING_PROTOCOLS,
            "{origin:?}"
        );
    }
    for origin in [
        "https://evil.example",
        "http://app.example",
        "null",
        "http://127.0.0.1:1",
    ] {
        assert_eq!(
            upgrade(&app, Some(origin)).await,
            StatusCode::FORBIDDEN,
            "{origin}"
        );
    }
    let refused: Value = {
        let request = Client::new()
            .get(app.url())
            .header(header::ORIGIN, "https://evil.example");
        let request = request
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket");
        let request = request
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        request.send().await.unwrap().json().await.unwrap()
    };
    assert_eq!(refused["errors"][0]["extensions"]["code"], "FORBIDDEN");
    let any = app
        .restarted(|settings| settings.server.cors_origins = vec!["*".into()])
        .await;
    assert_eq!(
        upgrade(&any, Some("https://evil.example")).await,
        StatusCode::SWITCHING_PROTOCOLS
    );
}
