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
    for path in ["/", "/healthz", "/readyz", "/metrics", "/dev/token?user=amy", "/graphql?query={__typename}"] {
        let under = get(format!("{base}/tally/board{path}")).await;
        assert_eq!(under.status(), StatusCode::OK, "{path}");
        assert_eq!(get(format!("{base}{path}")).await.status(), StatusCode::NOT_FOUND, "{path}");
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
    assert!(metrics.contains("tallyboard_live_sockets") && metrics.contains("tallyboard_rate_limited_total 0"));
    for path in ["/", "/graphql?query={__typename}", "/readyz"] {
        assert_eq!(get(apart.clone() + path).await.status(), StatusCode::NOT_FOUND, "{path}");
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
        assert!(get(base(&app) + path).await.headers().contains_key("x-request-id"), "{path}");
    }
}
