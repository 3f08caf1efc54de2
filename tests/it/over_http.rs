//! GraphQL over HTTP: the public audit, media types and statuses, what is refused and how much may be asked.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::clients::home;
use crate::harness::*;

const NEW: &str = "application/graphql-response+json";

fn request(app: &TestApp, method: Method) -> RequestBuilder {
    reqwest::Client::new().request(method, app.url())
}

/// Posts a body as JSON for `service`.
async fn post(app: &TestApp, body: impl Into<String>) -> Response {
    let request = request(app, Method::POST).header("x-dev-role", "SERVICE");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    request.body(body.into()).send().await.unwrap()
}

async fn errors(response: Response) -> (StatusCode, Vec<(String, String)>) {
    let status = response.status();
    let kind = response.headers()[header::CONTENT_TYPE]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(kind.ends_with("json; charset=utf-8"), "{kind}");
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer.get("data"), None, "{answer}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = answer["errors"].as_array().unwrap().iter();
    let errors = errors.map(|error| (text(&error["extensions"]["code"]), text(&error["message"])));
    (status, errors.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_audit_finds_no_error_and_no_warning() {
    let app = spawn_app().await;
    let url = app.url();
    let mut node = Command::new("node");
    node.arg("audit.mjs").arg(url).current_dir(home().await);
    let audit = node.output().await.unwrap();
    let table = String::from_utf8(audit.stdout).unwrap();
    #[allow(clippy::print_stdout)] // the table that a run is asked for
    {
        println!("{table}");
    }
    let told = String::from_utf8_lossy(&audit.stderr);
    assert!(audit.status.success(), "{table}{told}");
    assert!(table.lines().count() > 50, "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_says_whether_anything_was_executed_to_those_who_ask_for_the_new_type() {
    let app = spawn_app().await;
    for (query, new, old) in [
        ("{ businessDay { date } }", 200, 200),
        (
            "{ leaderboard(board: \"none\") { id } businessDay { date } }",
            200,
            200,
        ),
        ("{", 400, 200),
        ("{ nothing }", 400, 200),
        ("query A { a: __typename } query B { b: __typename }", 400, 200),
        ("query ($id: ID!) { user(id: $id) { id } }", 400, 200),
    ] {
        for (accept, status) in [(NEW, new), ("application/json", old), ("*/*", old)] {
            let request = request(&app, Method::POST).header(header::ACCEPT, accept);
            let response = request.json(&json!({ "query": query })).send().await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{accept} {query}");
            let kind = response.headers()[header::CONTENT_TYPE]
                .to_str()
                .unwrap()
                .to_owned();
            let expected = if accept == NEW { NEW } else { "application/json" };
            assert_eq!(kind, format!("{expected}; charset=utf-8"));
            let answer: Value = response.json().await.unwrap();
            assert_eq!(answer.get("data").is_some(), new == 200, "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_comes_by_post_as_json_and_in_no_other_way() {
    let app = spawn_app().await;
    let mutation = "mutation { checkIn(userId: \"amy\") { outcome } }";
    let link = |query: &str| request(&app, Method::GET).query(&[("query", query)]);
    for query in [
        mutation,
        "query A { __typename } mutation B { checkIn { outcome } }",
    ] {
        let request = link(query).query(&[("operationName", if query == mutation { "" } else { "B" })]);
        let response = request.header("x-dev-role", "SERVICE").send().await.unwrap();
        assert_eq!(response.headers()[header::ALLOW], "POST");
        let (status, errors) = errors(response).await;
        assert_eq!(
            (status, errors[0].0.as_str()),
            (StatusCode::METHOD_NOT_ALLOWED, "BAD_USER_INPUT")
        );
    }
    // Beside a mutation that is not meant, a query may be asked.
    let beside =
        link("query A { __typename } mutation B { checkIn { outcome } }").query(&[("operationName", "A")]);
    assert_eq!(beside.send().await.unwrap().status(), StatusCode::OK);

    let json = json!({ "query": mutation }).to_string();
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b",
        "application/graphql",
        "application/json; charset=utf-16",
        "",
    ] {
        let request = request(&app, Method::POST).header("x-dev-role", "SERVICE");
        let response = request
            .header(header::CONTENT_TYPE, kind)
            .body(json.clone())
            .send()
            .await
            .unwrap();
        let (status, errors) = errors(response).await;
        assert_eq!(
            (status, errors[0].0.as_str()),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "BAD_USER_INPUT"),
            "{kind}"
        );
    }
    for method in [Method::PUT, Method::DELETE, Method::PATCH] {
        let response = request(&app, method)
            .json(&json!({ "query": mutation }))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
    assert_eq!(app.user("amy").streak().await.total, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_answered_in_its_order_each_by_itself() {
    let app = spawn_app().await;
    let batch = json!([
        { "query": "mutation { checkIn(userId: \"amy\") { outcome } }" },
        { "query": "{ nothing }" },
        { "query": "query ($u: ID!) { streak(userId: $u) { current } }", "variables": { "u": "amy" } },
    ]);
    let response = post(&app, batch.to_string()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answers: Value = response.json().await.unwrap();
    assert_eq!(
        answers[0],
        json!({ "data": { "checkIn": { "outcome": "CHECKED_IN" } } })
    );
    assert_eq!(
        (
            answers[1].get("data"),
            &answers[1]["errors"][0]["extensions"]["code"]
        ),
        (None, &json!("BAD_USER_INPUT"))
    );
    assert_eq!(answers[2], json!({ "data": { "streak": { "current": 1 } } }));
    assert_eq!(answers.as_array().unwrap().len(), 3);
}

/// What is asked of a server to make it work, and the status of the refusal.
fn attacks() -> Vec<(&'static str, String, u16)> {
    let query = |query: String| json!({ "query": query }).to_string();
    let many = |count: usize, what: &dyn Fn(usize) -> String| (0..count).map(what).collect::<String>();
    let one = json!({ "query": "{ __typename }" });
    let aliases = |count| format!("{{ {} }}", many(count, &|i| format!("a{i}: __typename ")));
    let writes = many(10_000, &|i| format!("a{i}: checkIn {{ outcome }} "));
    let directives = |count| format!("{{ __typename {} }}", "@skip(if: false) ".repeat(count));
    let nested = |depth: usize| {
        let (open, close) = ("ofType { ".repeat(depth), " }".repeat(depth));
        format!("{{ __type(name: \"Query\") {{ {open}name{close} }} }}")
    };
    let lists = "[".repeat(100_000);
    let user = |id: &str| format!("{{ user(id: {id}) {{ id }} }}");
    let text = |length| format!("\"{}\"", "x".repeat(length));
    let tables = many(100, &|i| format!("a{i}: top(first: 500) {{ points }} "));
    let chain = |link: &dyn Fn(usize) -> String| (0..).map(link).take(20_000).collect::<String>();
    let chain = chain(&|i| format!("fragment A{i} on Q{{...A{}}}", i + 1));
    let variable = json!({ "u": "x".repeat(1_000_000) });
    let variable = json!({ "query": "query ($u: ID!) { user(id: $u) { id } }", "variables": variable });
    vec![
        ("batch", json!(vec![one.clone(); 2_000]).to_string(), 400),
        ("small batch", json!(vec![one; 11]).to_string(), 400),
        ("aliases", query(aliases(10_000)), 200),
        ("some aliases", query(aliases(201)), 200),
        ("mutations", query(format!("mutation {{ {writes} }}")), 200),
        ("directives", query(directives(10_000)), 200),
        ("some directives", query(directives(51)), 200),
        ("depth", query(nested(100)), 200),
        ("some depth", query(nested(14)), 200),
        ("brackets", query("{".repeat(500_000)), 200),
        ("lists", query(user(&lists)), 200),
        ("body", query(" ".repeat(10 << 20)), 413),
        ("string", query(user(&text(1 << 20))), 413),
        ("long string", query(user(&text(1_000_000))), 200),
        ("variable", variable.to_string(), 200),
        (
            "complexity",
            query(format!("{{ leaderboard(board: \"points\") {{ {tables} }} }}")),
            200,
        ),
        ("chain", query(format!("{{f(a:[\"\"\"x\"])...A0}}{chain}")), 200),
        ("chain apart", query(format!("{{f(a:[\"\"\"x\"])}}{chain}")), 200),
        ("spreads", query(format!("{{a{}}}", "...F".repeat(100_000))), 200),
        (
            "numbers",
            query(user(&format!("[{}]", "1-".repeat(200_000)))),
            200,
        ),
        ("zeros", query(user(&format!("[{}]", "0".repeat(500_000)))), 200),
        (
            "words",
            query(user(&format!("[{}]", "true".repeat(100_000)))),
            200,
        ),
        ("name", query(format!("{{ {} }}", "x".repeat(1_000_000))), 200),
        (
            "block strings",
            query(format!("{{ a(b: [{}]) }}", "\"\"\"".repeat(150_001))),
            200,
        ),
        (
            "operation",
            json!({ "query": "{ __typename }", "operationName": "x".repeat(1_000_000) }).to_string(),
            200,
        ),
        (
            "text for variables",
            json!({ "query": "{ __typename }", "variables": "x".repeat(1_000_000) }).to_string(),
            400,
        ),
        (
            "text for a hash",
            json!({ "query": "{ __typename }", "extensions": { "persistedQuery": "x".repeat(1_000_000) } })
                .to_string(),
            200,
        ),
        (
            "list for a request",
            r#"[["{ __typename }",null,null,null]]"#.into(),
            400,
        ),
        (
            "nested variable",
            format!("{{\"query\":\"{{a}}\",\"variables\":{{\"a\":{lists}}}}}"),
            400,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_too_much_is_refused_quickly_and_leaves_no_memory_behind() {
    let place = Place::new("[[board]]\nid = \"points\"\n");
    let server = Server::start(place.serve());
    let url = format!("http://{}/graphql", server.address());
    let attacks = attacks();
    let client = reqwest::Client::new();
    let send = async |name: &str, body: &String, status: u16| {
        let request = client.post(&url).header(header::CONTENT_TYPE, "application/json");
        // A body that is too large may be refused before it was sent whole.
        let response = match request.body(body.clone()).send().await {
            Ok(response) => response,
            Err(error) if status == 413 && !error.is_timeout() => return,
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(response.status().as_u16(), status, "{name}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(
            answer["errors"][0]["extensions"]["code"], "BAD_USER_INPUT",
            "{name}: {answer}"
        );
        assert!(
            answer.to_string().len() < 2_000,
            "{name}: the refusal is as long as the attack"
        );
    };
    for (name, body, status) in &attacks {
        send(name, body, *status).await;
    }
    let before = resident_kib(server.pid());
    for _ in 0..5 {
        for (name, body, status) in &attacks {
            tokio::time::timeout(Duration::from_secs(10), send(name, body, *status))
                .await
                .expect(name);
        }
    }
    let after = resident_kib(server.pid());
    assert!(
        after < before + 24 * 1024,
        "{before} KiB before, {after} KiB after"
    );
    assert_eq!(server.end("TERM").code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_json_as_well_as_a_stream_gets_a_stream_for_subscriptions_only() {
    // What urql sends with whatever it asks.
    const URQL: &str = "application/graphql-response+json, application/graphql+json, application/json, \
                        text/event-stream, multipart/mixed";
    let app = spawn_app().await;
    let ask = async |query: &str, accept: &str| {
        let request = request(&app, Method::POST).header(header::ACCEPT, accept);
        let response = request.json(&json!({ "query": query })).send().await.unwrap();
        let kind = response.headers()[header::CONTENT_TYPE]
            .to_str()
            .unwrap()
            .to_owned();
        (response.status().as_u16(), kind)
    };
    let json = format!("{NEW}; charset=utf-8");
    let events = "text/event-stream; charset=utf-8".to_owned();
    let watch = "subscription { onlineCountChanged { count } }";
    assert_eq!(ask("{ onlineCount }", URQL).await, (200, json.clone()));
    assert_eq!(
        ask("mutation { checkIn { outcome } }", URQL).await,
        (200, json.clone())
    );
    assert_eq!(ask("{ nothing }", URQL).await, (400, json));
    assert_eq!(ask(watch, URQL).await, (200, events.clone()));
    assert_eq!(ask("{ onlineCount }", "text/event-stream").await, (200, events));
    let (_, refused) = ask(watch, "text/event-stream;q=0, application/json").await;
    assert_eq!(refused, "application/json; charset=utf-8");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_aliases_and_a_long_table_are_no_attack() {
    let app = spawn_app().await;
    let aliases: String = (0..100).map(|i| format!("a{i}: onlineCount ")).collect();
    let fields = "edges { cursor node { rank points reachedAt percentile user { id name avatarUrl } } }";
    let long = format!("{{ leaderboard(board: \"points\") {{ entries(first: 500) {{ {fields} }} }} }}");
    for query in [format!("{{ {aliases} }}"), long, INTROSPECTION.into()] {
        let answer: Value = post(&app, json!({ "query": query }).to_string())
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(answer.get("errors"), None, "{answer}");
    }
}

/// What GraphiQL asks.
const INTROSPECTION: &str = "query IntrospectionQuery { __schema { queryType { name } mutationType { name }
    subscriptionType { name } types { ...FullType } directives { name description locations args { ...InputValue } } } }
    fragment FullType on __Type { kind name description fields(includeDeprecated: true) { name description
    args { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason } inputFields { ...InputValue }
    interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
    possibleTypes { ...TypeRef } }
    fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }
    fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
    ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }";

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_not_shown_where_introspection_is_off() {
    let app = spawn_app()
        .with(|settings| settings.graphql.introspection = false)
        .await;
    for query in [
        INTROSPECTION,
        "{ __type(name: \"Query\") { name } }",
        "{ busnessDay { date } }",
    ] {
        let answer: Value = post(&app, json!({ "query": query }).to_string())
            .await
            .json()
            .await
            .unwrap();
        let text = answer.to_string();
        assert!(
            answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT",
            "{text}"
        );
        assert!(
            !text.contains("\"name\":\"") && !text.contains("Did you mean"),
            "{text}"
        );
    }
    let answer: Value = post(&app, json!({ "query": "{ __typename }" }).to_string())
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(answer, json!({ "data": { "__typename": "Query" } }));
}
