//! Who is asking, which day it is, and how wrong input is refused.

use serde_json::{Value, json};

use crate::harness::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_whom_the_development_headers_name() {
    let app = spawn_app().await;
    let viewer = "{ viewer { role user { id } } }";
    let ask = async |caller: Caller<'_>| caller.data(viewer, json!({})).await["viewer"].clone();
    assert_eq!(
        ask(app.anonymous()).await,
        json!({ "role": "ANONYMOUS", "user": null })
    );
    assert_eq!(
        ask(app.user("amy")).await,
        json!({ "role": "USER", "user": { "id": "amy" } })
    );
    assert_eq!(
        ask(app.service()).await,
        json!({ "role": "SERVICE", "user": null })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_business_day_is_the_zones_and_not_the_hosts() {
    let day = "{ businessDay { date timeZone startsAt endsAt } }";
    let app = spawn_app()
        .zone("Asia/Kolkata")
        .with(|settings| settings.day.starts_at = "04:00".into())
        .at("2027-03-01T22:29:59Z")
        .await;
    let shown = app.anonymous().data(day, json!({})).await["businessDay"].clone();
    assert_eq!(
        shown,
        json!({
            "date": "2027-03-01", "timeZone": "Asia/Kolkata",
            "startsAt": "2027-02-28T22:30:00+00:00", "endsAt": "2027-03-01T22:30:00+00:00",
        })
    );
    app.set("2027-03-01T22:30:00Z");
    assert_eq!(
        app.anonymous().data(day, json!({})).await["businessDay"]["date"],
        "2027-03-02"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_acts_for_oneself_and_only_a_backend_for_anybody() {
    let app = spawn_app().await;
    let streak = "query ($user: ID) { streak(userId: $user) { current } }";
    let amys = json!({ "user": "amy" });
    assert_eq!(
        app.anonymous().refusal(streak, amys.clone()).await.0,
        "UNAUTHENTICATED"
    );
    assert_eq!(
        app.anonymous().refusal(streak, json!({})).await.0,
        "UNAUTHENTICATED"
    );
    assert_eq!(app.user("bob").refusal(streak, amys.clone()).await.0, "FORBIDDEN");
    app.user("amy").data(streak, amys.clone()).await;
    app.service().data(streak, amys).await;
    assert_eq!(app.service().refusal(streak, json!({})).await.0, "BAD_USER_INPUT");

    let score = "mutation ($board: ID!) { submitScore(input: { board: $board, points: 1 }) { outcome } }";
    assert_eq!(
        app.user("amy")
            .refusal(score, json!({ "board": "points" }))
            .await
            .0,
        "FORBIDDEN"
    );
    assert_eq!(
        app.anonymous()
            .refusal(score, json!({ "board": "points" }))
            .await
            .0,
        "UNAUTHENTICATED"
    );
    assert_eq!(
        app.anonymous()
            .refusal(score, json!({ "board": "nowhere" }))
            .await
            .0,
        "UNAUTHENTICATED"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_may_take_its_users_own_scores_but_not_their_choice_of_operator() {
    let app = spawn_app()
        .with(|settings| settings.board[0].user_writes = true)
        .await;
    assert_eq!(app.user("amy").score("points", "amy", 5).await.outcome, "APPLIED");
    let other =
        "mutation { submitScore(input: { board: \"points\", points: 1, userId: \"bob\" }) { outcome } }";
    assert_eq!(app.user("amy").refusal(other, json!({})).await.0, "FORBIDDEN");
    let set = "mutation { submitScore(input: { board: \"points\", points: 1, operator: SET }) { outcome } }";
    assert_eq!(app.user("amy").refusal(set, json!({})).await.0, "FORBIDDEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_public_reads_boards_and_online_counts_need_a_sign_in() {
    let app = spawn_app()
        .with(|settings| settings.auth.public_reads = false)
        .await;
    for query in [
        "{ leaderboard(board: \"points\") { id } }",
        "{ onlineCount }",
        "{ rank(board: \"points\", userId: \"a\") { points } }",
    ] {
        assert_eq!(
            app.anonymous().refusal(query, json!({})).await.0,
            "UNAUTHENTICATED",
            "{query}"
        );
        app.user("amy").data(query, json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_refused_in_words_and_change_nothing() {
    let app = spawn_app().await;
    let long = "x".repeat(129);
    let streak = "query ($user: ID) { streak(userId: $user) { current } }";
    for (user, said) in [
        (long.as_str(), "this one has 129"),
        ("a b", "no spaces"),
        ("", "has 0"),
        ("ä", "ASCII"),
    ] {
        let (code, message) = app.service().refusal(streak, json!({ "user": user })).await;
        assert_eq!(code, "BAD_USER_INPUT");
        assert!(message.contains(said), "{message}");
        let (code, _) = app
            .service()
            .refusal(
                "mutation ($user: ID) { checkIn(userId: $user) { outcome } }",
                json!({ "user": user }),
            )
            .await;
        assert_eq!(code, "BAD_USER_INPUT");
    }

    let top = "query ($first: Int!) { leaderboard(board: \"points\") { top(first: $first) { points } } }";
    for first in [-1, 501] {
        let (code, message) = app.anonymous().refusal(top, json!({ "first": first })).await;
        assert_eq!(code, "BAD_USER_INPUT", "{message}");
    }
    let (code, message) = app
        .anonymous()
        .refusal("{ leaderboard(board: \"nowhere\") { id } }", json!({}))
        .await;
    assert_eq!((code.as_str(), message.contains("nowhere")), ("NOT_FOUND", true));

    let span = "query ($span: BoardSpan) { leaderboard(board: \"points\", span: $span) { id } }";
    for span_value in [json!({ "lastDays": 7 }), json!({ "heat": true })] {
        assert_eq!(
            app.anonymous()
                .refusal(span, json!({ "span": span_value }))
                .await
                .0,
            "BAD_USER_INPUT"
        );
    }
    let on = "{ leaderboard(board: \"points\", on: \"2027-03-02\") { id } }";
    let (code, message) = app.anonymous().refusal(on, json!({})).await;
    assert_eq!(
        (code.as_str(), message.contains("future")),
        ("BAD_USER_INPUT", true),
        "{message}"
    );

    let range = "query ($from: Date!, $to: Date!) { checkIns(from: $from, to: $to) { date } }";
    for (from, to) in [("2027-03-01", "2027-02-28"), ("2020-01-01", "2027-01-01")] {
        let (code, _) = app
            .user("amy")
            .refusal(range, json!({ "from": from, "to": to }))
            .await;
        assert_eq!(code, "BAD_USER_INPUT", "{from}..{to}");
    }

    let mut redis = app.redis().await;
    let users: Option<u64> = redis::cmd("HGET")
        .arg("tb:{0}:generation")
        .arg("rows")
        .query_async(&mut redis)
        .await
        .unwrap();
    assert_eq!(users, None, "nobody was added");
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_dates_and_numbers_are_refused_in_their_field_and_in_words() {
    let app = spawn_app().await;
    let range = "query ($from: Date!) { checkIns(userId: \"a\", from: $from, to: \"2026-03-01\") { date } }";
    let month = "query ($month: Month) { calendar(userId: \"a\", month: $month) { month } }";
    let score = "mutation ($points: SafeInt!) { submitScore(input: { board: \"points\", points: $points, userId: \"a\" }) { outcome } }";
    let cases: [(&str, Value, &str); 7] = [
        (range, json!({ "from": "2026-02-30" }), "28 days"),
        (range, json!({ "from": "2026-13-01" }), "01 to 12"),
        (range, json!({ "from": "26-1-1" }), "YYYY-MM-DD"),
        (month, json!({ "month": "2026-13" }), "01 to 12"),
        (score, json!({ "points": 9_007_199_254_740_992_i64 }), "2^53"),
        (score, json!({ "points": i64::MIN }), "2^53"),
        (score, json!({ "points": 1.5 }), "2^53"),
    ];
    for (query, variables, said) in cases {
        let answer = app.service().ask(query, variables.clone()).await;
        let error = &answer["errors"][0];
        let message = error["message"].as_str().unwrap_or_default();
        assert_eq!(
            answer["data"].as_object().unwrap().len(),
            1,
            "its key stays: {answer}"
        );
        assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{answer}");
        assert!(message.contains(said), "{variables}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_cannot_be_run_is_refused_with_a_code() {
    let app = spawn_app().await;
    let deep = format!(
        "{{ __schema {} }}",
        "{ types { fields { type ".repeat(10) + "{ name }" + &"} } }".repeat(10)
    );
    for broken in [
        "{",
        "{ nothing }",
        "{ calendar(month: 2026) { month } }",
        "{ viewer }",
        &deep,
    ] {
        let answer = app.anonymous().ask(broken, json!({})).await;
        assert_eq!(
            answer["errors"][0]["extensions"]["code"], "BAD_USER_INPUT",
            "{broken}: {answer}"
        );
        assert!(answer["data"].is_null(), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failing_field_is_null_and_its_neighbours_are_answered() {
    let app = spawn_app().await;
    let answer = app
        .anonymous()
        .ask(
            "{ onlineCount a: streak { current } boards { id } b: wallet { points } }",
            json!({}),
        )
        .await;
    assert_eq!(
        answer["data"],
        json!({ "onlineCount": 0, "a": null, "boards": [{ "id": "points" }], "b": null })
    );
    assert_eq!(answer["errors"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_this_machine_is_served_and_nothing_that_was_forwarded() {
    let app = spawn_app().await;
    let body = json!({ "query": "{ viewer { role } }" });
    for (header, value) in [
        ("Host", "evil.example"),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("Forwarded", "for=10.0.0.1"),
    ] {
        let answer = app
            .http()
            .post(app.url())
            .header(header, value)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 403, "{header}");
    }
    assert_eq!(
        app.http()
            .post(app.url())
            .json(&body)
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_may_be_sent_by_get_and_mutations_never() {
    let app = spawn_app().await;
    let get = async |query: &str| {
        app.http()
            .get(app.url())
            .query(&[("query", query)])
            .send()
            .await
            .unwrap()
    };
    let answer = get("{ viewer { role } }").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.json::<Value>().await.unwrap()["data"]["viewer"]["role"],
        "ANONYMOUS"
    );
    assert_eq!(get("mutation { checkIn { outcome } }").await.status(), 405);

    let text = app
        .http()
        .post(app.url())
        .header("Content-Type", "text/plain")
        .body("{\"query\":\"{viewer{role}}\"}");
    assert_eq!(text.send().await.unwrap().status(), 415);
    let broken = app
        .http()
        .post(app.url())
        .header("Content-Type", "application/json")
        .body("{");
    assert_eq!(broken.send().await.unwrap().status(), 400);
    let nobody = app
        .http()
        .post(app.url())
        .header("X-Dev-User", "a b")
        .json(&json!({ "query": "{ viewer { role } }" }));
    assert_eq!(nobody.send().await.unwrap().status(), 400);
}
