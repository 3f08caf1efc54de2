//! Documents that clients name by their hash, and a server that serves only those of its list.

use reqwest::header;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::*;
use tallyboard::config::Persisted;

const DAY: &str = "{ businessDay { timeZone } }";

fn hash(text: &str) -> String {
    Sha256::digest(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn named(hash: &str) -> Value {
    json!({ "persistedQuery": { "version": 1, "sha256Hash": hash } })
}

async fn ask(app: &TestApp, request: Value) -> Value {
    let request = reqwest::Client::new().post(app.url()).json(&request);
    request.send().await.unwrap().json().await.unwrap()
}

fn code(answer: &Value) -> &str {
    answer["errors"][0]["extensions"]["code"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_came_with_its_hash_may_then_be_named_by_it() {
    let app = spawn_app().await;
    let by_name = json!({ "extensions": named(&hash(DAY)) });
    let unknown = ask(&app, by_name.clone()).await;
    assert_eq!(code(&unknown), "PERSISTED_QUERY_NOT_FOUND");
    assert_eq!(unknown["errors"][0]["message"], "PersistedQueryNotFound");

    let answer = json!({ "data": { "businessDay": { "timeZone": "UTC" } } });
    assert_eq!(
        ask(&app, json!({ "query": DAY, "extensions": named(&hash(DAY)) })).await,
        answer
    );
    assert_eq!(ask(&app, by_name.clone()).await, answer);
    let link = reqwest::Client::new().get(app.url());
    let link = link
        .query(&[("extensions", named(&hash(DAY)).to_string())])
        .send()
        .await
        .unwrap();
    assert_eq!(link.json::<Value>().await.unwrap(), answer);
    let mut socket = Wire::open(&app.address(), json!({})).await;
    socket.send(json!({ "id": "1", "type": "subscribe", "payload": { "query": "", "extensions": named(&hash(DAY)) } })).await;
    assert_eq!(socket.data("1").await, answer["data"]);

    // A name that belies its document would serve one client's to another.
    let forged = json!({ "query": "{ __typename }", "extensions": named(&hash(DAY)) });
    assert_eq!(code(&ask(&app, forged).await), "BAD_USER_INPUT");
    assert_eq!(ask(&app, by_name).await, answer);
    for wrong in [
        json!({}),
        json!({ "version": 2, "sha256Hash": hash(DAY) }),
        json!(1),
        json!({ "version": 1 }),
    ] {
        let answer = ask(
            &app,
            json!({ "query": DAY, "extensions": { "persistedQuery": wrong } }),
        )
        .await;
        assert_eq!(code(&answer), "BAD_USER_INPUT");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_that_is_only_named_does_not_come_by_a_link_either() {
    let app = spawn_app().await;
    let mutation = "mutation { checkIn { outcome } }";
    ask(
        &app,
        json!({ "query": mutation, "extensions": named(&hash(mutation)) }),
    )
    .await;
    let link = reqwest::Client::new().get(app.url()).header("x-dev-user", "amy");
    let link = link
        .query(&[("extensions", named(&hash(mutation)).to_string())])
        .send()
        .await
        .unwrap();
    assert_eq!(
        (link.status().as_u16(), &link.headers()[header::ALLOW]),
        (405, &"POST".parse().unwrap())
    );
    assert_eq!(app.user("amy").streak().await.total, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_the_list_is_served_everything_else_is_refused() {
    let count = "query Online { onlineCount }";
    let watch = "subscription { onlineCountChanged { count } }";
    let dir = tempfile::tempdir().unwrap();
    let relay = json!({ "day": DAY, "watch": watch }).to_string();
    let apollo = json!({ "format": "apollo-persisted-query-manifest", "version": 1, "operations": [
        { "id": "day", "name": "Day", "type": "query", "body": DAY },
        { "id": "watch", "name": "", "type": "subscription", "body": watch },
    ] });
    for (name, text) in [("relay.json", relay), ("apollo.json", apollo.to_string())] {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let app = spawn_app()
            .with(|settings| {
                settings.graphql.persisted = Persisted::Only;
                settings.graphql.documents_file = file.to_str().unwrap().into();
            })
            .await;
        let answer = json!({ "data": { "businessDay": { "timeZone": "UTC" } } });
        for listed in [
            json!({ "query": DAY }),
            json!({ "extensions": named("day") }),
            json!({ "extensions": named(&hash(DAY)) }),
            json!({ "query": DAY, "extensions": named("day") }),
        ] {
            assert_eq!(ask(&app, listed).await, answer);
        }
        for strange in [
            json!({ "query": count }),
            json!({ "query": count, "extensions": named(&hash(count)) }),
            json!({ "query": count, "extensions": named("day") }),
            json!({ "extensions": named(&hash(count)) }),
            json!({ "query": "{" }),
        ] {
            assert_eq!(code(&ask(&app, strange).await), "FORBIDDEN");
        }
        let mut socket = Wire::open(&app.address(), json!({})).await;
        socket.send(json!({ "id": "1", "type": "subscribe", "payload": { "query": "", "extensions": named("watch") } })).await;
        assert_eq!(
            socket.data("1").await,
            json!({ "onlineCountChanged": { "count": 0 } })
        );
        socket
            .send(subscribe("2", "subscription { onlineCountChanged { at } }"))
            .await;
        let refused = socket.answer().await;
        assert_eq!(
            (&refused["type"], code(&json!({ "errors": refused["payload"] }))),
            (&json!("error"), "FORBIDDEN")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_cannot_be_read_is_told_at_the_start() {
    let place = Place::new("[graphql]\npersisted = \"only\"\n");
    assert!(
        run(&mut place.serve())
            .refusal()
            .contains("graphql.documents_file")
    );
    let place = Place::new("[graphql]\ndocuments_file = \"nowhere.json\"\n");
    assert!(run(&mut place.serve()).refusal().contains("nowhere.json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_document_may_be_named_by_its_id_over_every_transport_where_others_are_served_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("documents.json");
    std::fs::write(&file, json!({ "Day": DAY }).to_string()).unwrap();
    let app = spawn_app()
        .with(|settings| settings.graphql.documents_file = file.to_str().unwrap().into())
        .await;
    let data = json!({ "businessDay": { "timeZone": "UTC" } });
    for id in ["Day".to_owned(), hash(DAY), hash(DAY).to_ascii_uppercase()] {
        assert_eq!(
            ask(&app, json!({ "extensions": named(&id) })).await,
            json!({ "data": data })
        );
        let link = || {
            let link = reqwest::Client::new().get(app.url());
            link.query(&[("extensions", named(&id).to_string())])
        };
        let plain = link().send().await.unwrap();
        assert_eq!(plain.json::<Value>().await.unwrap(), json!({ "data": data }));
        let streamed = link().header(header::ACCEPT, "text/event-stream");
        let streamed = streamed.send().await.unwrap().text().await.unwrap();
        assert!(
            streamed.contains(&json!({ "data": data }).to_string()),
            "{streamed}"
        );
        let mut socket = Wire::open(&app.address(), json!({})).await;
        let payload = json!({ "query": "", "operationName": "", "extensions": named(&id) });
        socket
            .send(json!({ "id": "1", "type": "subscribe", "payload": payload }))
            .await;
        assert_eq!(socket.data("1").await, data);
    }
}

/// A client of the old subprotocol that has said who it is.
async fn old(address: &str) -> Wire {
    let mut wire = Wire::connect(address, Some("graphql-ws")).await;
    wire.send(json!({ "type": "connection_init", "payload": {} }))
        .await;
    assert_eq!(wire.answer().await["type"], "connection_ack");
    wire
}

async fn start(wire: &mut Wire, payload: Value) -> Value {
    wire.send(json!({ "id": "1", "type": "start", "payload": payload }))
        .await;
    let mut message = wire.answer().await;
    message["payload"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_subprotocol_serves_the_list_and_no_more_and_counts_before_it_parses() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("documents.json");
    std::fs::write(&file, json!({ "day": DAY }).to_string()).unwrap();
    let app = spawn_app()
        .with(|settings| {
            settings.graphql.persisted = Persisted::Only;
            settings.graphql.documents_file = file.to_str().unwrap().into();
        })
        .await;
    let listed = json!({ "query": "", "extensions": named("day") });
    let answer = start(&mut old(&app.address()).await, listed).await;
    assert_eq!(answer["data"], json!({ "businessDay": { "timeZone": "UTC" } }));
    let strange = start(
        &mut old(&app.address()).await,
        json!({ "query": "{ onlineCount }" }),
    )
    .await;
    assert_eq!(code(&strange), "FORBIDDEN");

    let app = spawn_app().await;
    let long = json!({ "query": format!("{{ {} }}", "a ".repeat(100_000)) });
    let refused = start(&mut old(&app.address()).await, long).await;
    let message = refused["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("more than 5000 tokens"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_only_named_does_not_hold_up_a_stop() {
    let watch = "subscription { onlineCountChanged { count } }";
    let place = Place::new("");
    let server = Server::start(place.serve());
    let mut wire = old(server.address()).await;
    let whole = json!({ "query": watch, "extensions": named(&hash(watch)) });
    assert_eq!(
        start(&mut wire, whole).await["data"],
        json!({ "onlineCountChanged": { "count": 0 } })
    );
    let mut named_only = old(server.address()).await;
    let payload = json!({ "query": "", "extensions": named(&hash(watch)) });
    let answer = start(&mut named_only, payload).await;
    assert_eq!(answer["data"], json!({ "onlineCountChanged": { "count": 0 } }));
    let stopping = tokio::task::spawn_blocking(|| server.end("TERM"));
    let (first, second, stopped) = tokio::join!(wire.closed(), named_only.closed(), stopping);
    let stopped = stopped.unwrap();
    assert_eq!((first.0, second.0, stopped.code), (1001, 1001, Some(0)));
    assert!(!stopped.stderr.contains("not done in time"), "{stopped:?}");
}
