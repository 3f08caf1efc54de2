//! Who shares a topic: whoever asks the same and may see the same, however it is written.

use serde_json::{Value, json};

use crate::harness::*;

/// The first answer to `query`, which must come without errors.
async fn first(wire: &mut Wire, id: &str, query: &str, variables: Value) -> Value {
    wire.send(
        json!({ "id": id, "type": "subscribe", "payload": { "query": query, "variables": variables } }),
    )
    .await;
    wire.data(id).await
}

const TOO_MUCH: &str = "the document has more than 1000 fields; ask in several requests";

#[tokio::test(flavor = "multi_thread")]
async fn ten_ways_to_write_one_question_share_one_topic() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let ways: [(&str, Value); 10] = [
        (
            "subscription { leaderboardChanged(board: \"points\", first: 3) { why: cause top { user { id } points } } }",
            json!({}),
        ),
        (
            "subscription{leaderboardChanged(board:\"points\",first:3){why:cause,top{user{id},points}}}",
            json!({}),
        ),
        (
            "# A comment\nsubscription Named {\n\tleaderboardChanged(first: 3, board: \"points\") {\n
               why: cause\n top { user { id } points } } }",
            json!({}),
        ),
        (
            "subscription ($b: ID!, $n: Int!) { leaderboardChanged(board: $b, first: $n) {
               why: cause top { user { id } points } } }",
            json!({ "b": "points", "n": 3 }),
        ),
        (
            "subscription ($n: Int! = 3) { leaderboardChanged(board: \"points\", first: $n) {
               why: cause top { user { id } points } } }",
            json!({}),
        ),
        (
            "subscription ($s: BoardSpan) { leaderboardChanged(board: \"points\", span: $s, first: 3) {
               why: cause top { user { id } points } } }",
            json!({}),
        ),
        (
            "subscription { ...Root } fragment Root on Subscription {
               leaderboardChanged(board: \"points\", first: 3) { ...All } }
             fragment All on LeaderboardUpdate { why: cause top { ...Row } }
             fragment Row on Standing { user { id } points }",
            json!({}),
        ),
        (
            "subscription { leaderboardChanged(board: \"points\", first: 3) {
               why: cause ... on LeaderboardUpdate { top { user { id } } } top { points } } }",
            json!({}),
        ),
        (
            "subscription ($yes: Boolean!, $no: Boolean!) { leaderboardChanged(board: \"points\", first: 3) {
               why: cause top { user { id } points @include(if: $yes) rank @skip(if: $yes) }
               moves @include(if: $no) { from } } }",
            json!({ "yes": true, "no": false }),
        ),
        (
            "query Other { viewer { role } }
             subscription Picked { leaderboardChanged(board: \"\"\"points\"\"\", first: 3) {
               why: cause top { user { id } points } } }",
            json!({}),
        ),
    ];
    let mut wires = Vec::new();
    for (query, variables) in &ways {
        let mut wire = Wire::open(&app.address(), json!({})).await;
        let mut payload = json!({ "query": query, "variables": variables });
        if query.contains("Picked") {
            payload["operationName"] = json!("Picked");
        }
        wire.send(json!({ "id": "1", "type": "subscribe", "payload": payload }))
            .await;
        let data = wire.data("1").await;
        let top = json!([{ "user": { "id": "amy" }, "points": 5 }]);
        assert_eq!(
            data,
            json!({ "leaderboardChanged": { "why": "SNAPSHOT", "top": top } }),
            "{query}"
        );
        wires.push(wire);
    }
    assert_eq!(crowd(&app.address()).await, [10, 10, 1]);

    app.service().score("points", "zed", 7).await;
    for wire in &mut wires {
        let data = wire.data("1").await["leaderboardChanged"].take();
        assert_eq!(
            (&data["why"], &data["top"][0]["points"]),
            (&json!("CHANGED"), &json!(7))
        );
    }
    while let Some(wire) = wires.pop() {
        drop(wire);
        let left = wires.len() as u64;
        crowd_becomes(&app.address(), [left, left, u64::from(left > 0)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_answer_shows_otherwise_is_another_topic() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let mut wire = Wire::open(&app.address(), json!({})).await;
    let others = [
        "leaderboardChanged(board: \"points\") { cause top { points rank } }",
        "leaderboardChanged(board: \"points\") { top { points rank } cause }",
        "leaderboardChanged(board: \"points\") { cause top { rank points } }",
        "leaderboardChanged(board: \"points\") { why: cause top { points rank } }",
        "changed: leaderboardChanged(board: \"points\") { cause top { points rank } }",
        "leaderboardChanged(board: \"points\", first: 9) { cause top { points rank } }",
        "leaderboardChanged(board: \"points\", span: { period: WEEK }) { cause top { points rank } }",
        "leaderboardChanged(board: \"points\") { cause top { points rank(method: DENSE) } }",
        "leaderboardChanged(board: \"points\") { cause top { points rank } __typename }",
        "rankChanged(board: \"points\", userId: \"amy\") { cause }",
        "rankChanged(board: \"points\", userId: \"zed\") { cause }",
    ];
    for (place, other) in others.iter().enumerate() {
        let id = place.to_string();
        first(&mut wire, &id, &format!("subscription {{ {other} }}"), json!({})).await;
        let topics = place as u64 + 1;
        assert_eq!(crowd(&app.address()).await, [1, topics, topics], "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_a_users_own_is_shared_by_that_users_sockets_and_by_nobody_else() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    app.service().score("points", "zed", 9).await;
    let board = "subscription { leaderboardChanged(board: \"points\") {
        leaderboard { standing { points user { id } } } top { points } } }";
    let rank = "subscription { rankChanged(board: \"points\") { standing { points user { id } } } }";
    let mut wires = Vec::new();
    for user in ["amy", "zed", "amy", "zed"] {
        let points = if user == "amy" { 5 } else { 9 };
        let mut wire = Wire::open(&app.address(), app.user(user).claims()).await;
        let own = json!({ "points": points, "user": { "id": user } });
        let data = first(&mut wire, "board", board, json!({})).await;
        assert_eq!(data["leaderboardChanged"]["leaderboard"]["standing"], own);
        let data = first(&mut wire, "rank", rank, json!({})).await;
        assert_eq!(data["rankChanged"]["standing"], own);
        wires.push((user, wire));
    }
    assert_eq!(crowd(&app.address()).await, [4, 8, 4]);

    // Both change, and each hears of itself.
    app.service().score("points", "amy", 10).await;
    app.service().score("points", "zed", 10).await;
    for (user, wire) in &mut wires {
        let own = json!({ "points": if *user == "amy" { 15 } else { 19 }, "user": { "id": user } });
        let mut heard = [false; 2];
        while heard != [true; 2] {
            let message = wire.answer().await;
            assert_eq!(message["type"], "next", "{message}");
            let data = &message["payload"]["data"];
            let (which, standing) = match message["id"].as_str() {
                Some("board") => (0, &data["leaderboardChanged"]["leaderboard"]["standing"]),
                _ => (1, &data["rankChanged"]["standing"]),
            };
            assert_eq!(standing["user"]["id"], *user, "{message}");
            heard[which] |= *standing == own;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_signed_in_shares_with_who_has_not_what_is_everybodys() {
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    let query = "subscription { leaderboardChanged(board: \"points\") { top { points user { id name } }
        leaderboard { standing(userId: \"amy\") { rank } } } }";
    let rank = "subscription { rankChanged(board: \"points\", userId: \"amy\") { standing { rank } } }";
    let mut wires = Vec::new();
    for caller in [app.anonymous(), app.user("amy"), app.user("zed"), app.service()] {
        let mut wire = Wire::open(&app.address(), caller.claims()).await;
        first(&mut wire, "1", query, json!({})).await;
        first(&mut wire, "2", rank, json!({})).await;
        wires.push(wire);
    }
    assert_eq!(crowd(&app.address()).await, [4, 8, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_is_refused_although_others_follow_the_same() {
    let app = spawn_app()
        .with(|settings| settings.auth.public_reads = false)
        .await;
    let query = "subscription { leaderboardChanged(board: \"points\") { cause } }";
    let rank = "subscription { rankChanged(board: \"points\", userId: \"amy\") { cause } }";
    let mut amy = Wire::open(&app.address(), app.user("amy").claims()).await;
    first(&mut amy, "1", query, json!({})).await;
    first(&mut amy, "2", rank, json!({})).await;

    let mut nobody = Wire::open(&app.address(), json!({})).await;
    for query in [query, rank] {
        nobody.send(subscribe("1", query)).await;
        let refused = nobody.answer().await;
        assert_eq!(refused["type"], "error", "{refused}");
        assert_eq!(
            refused["payload"][0]["extensions"]["code"], "UNAUTHENTICATED",
            "{refused}"
        );
    }
    assert_eq!(crowd(&app.address()).await, [2, 2, 2]);
    app.service().score("points", "amy", 5).await;
    assert_eq!(amy.answer().await["type"], "next");
    nobody.send(json!({ "type": "ping" })).await;
    assert_eq!(nobody.answer().await["type"], "pong");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_ends_with_its_last_subscriber_and_another_begins_with_the_state_as_it_is_then() {
    let app = spawn_app().await;
    let query = "subscription { leaderboardChanged(board: \"points\") { cause top { points } } }";
    for points in 1..=3 {
        app.service().score("points", "amy", 1).await;
        let mut wire = Wire::open(&app.address(), json!({})).await;
        let data = first(&mut wire, "1", query, json!({})).await;
        let update = json!({ "cause": "SNAPSHOT", "top": [{ "points": points }] });
        assert_eq!(data["leaderboardChanged"], update);
        wire.send(json!({ "id": "1", "type": "complete" })).await;
        crowd_becomes(&app.address(), [1, 0, 0]).await;
        drop(wire);
        crowd_becomes(&app.address(), [0, 0, 0]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_can_make_a_topic_of_others_answer_something_else() {
    const SELECTED: &str = "cause leaderboard { standing(userId: \"amy\") { rank points user { id } } }";
    let plain = format!("subscription {{ leaderboardChanged(board: \"points\") {{ {SELECTED} }} }}");
    let attacks = [
        format!(
            "subscription {{ leaderboardChanged(board: \"points\") {{ {SELECTED} }} leaderboardChanged: __typename }}"
        ),
        "subscription { leaderboardChanged(board: \"points\") { cause leaderboard { standing(userId: \"amy\") { rank } }
           leaderboard { standing { points user { id } } } } }"
            .to_owned(),
        "subscription { leaderboardChanged(board: \"points\") { cause leaderboard { standing { rank } }
           leaderboard { standing(userId: \"amy\") { points user { id } } } } }"
            .to_owned(),
    ];
    let app = spawn_app().await;
    app.service().score("points", "amy", 5).await;
    app.service().score("points", "mallory", 9).await;
    let mut mallory = Wire::open(&app.address(), app.user("mallory").claims()).await;
    for attack in &attacks {
        mallory.send(subscribe("attack", attack)).await;
        let refused = mallory.answer().await;
        assert_eq!(refused["type"], "error", "{attack}: {refused}");
        assert_eq!(refused["payload"][0]["extensions"]["code"], "BAD_USER_INPUT");
    }
    // A key that is left out is not answered, to nobody.
    let skipped = format!(
        "subscription {{ leaderboardChanged(board: \"points\") {{ {SELECTED} }} x: __typename @skip(if: true) }}"
    );
    let mut amy = Wire::open(&app.address(), json!({})).await;
    let (first_of_all, then) = (
        first(&mut mallory, "1", &skipped, json!({})).await,
        first(&mut amy, "1", &plain, json!({})).await,
    );
    assert_eq!((first_of_all.get("x"), &first_of_all), (None, &then));
    assert_eq!(then["leaderboardChanged"]["leaderboard"]["standing"]["points"], 5);
    assert_eq!(crowd(&app.address()).await, [2, 2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_spreads_to_more_than_anybody_can_walk_through_is_refused_at_once() {
    let doubling = |root: &str| {
        let fragments: String = (0..40)
            .map(|i| {
                format!(
                    "fragment F{i} on {root} {{ ...F{next} ...F{next} }} ",
                    next = i + 1
                )
            })
            .collect();
        fragments
    };
    let app = spawn_app().await;
    let wide: String = (0..2_000).map(|i| format!("a{i}: cause ")).collect();
    let again = "...F ".repeat(500);
    let documents = [
        format!(
            "subscription {{ ...F0 }} {} fragment F40 on Subscription {{ leaderboardChanged(board: \"points\") {{ cause }} }}",
            doubling("Subscription")
        ),
        format!(
            "subscription {{ leaderboardChanged(board: \"points\") {{ ...F0 }} }} {} fragment F40 on LeaderboardUpdate {{ cause }}",
            doubling("LeaderboardUpdate")
        ),
        format!(
            "subscription {{ {again} }} fragment F on Subscription {{ leaderboardChanged(board: \"points\") {{ {wide} }} }}"
        ),
        format!(
            "{{ ...F0 }} {} fragment F40 on Query {{ viewer {{ role }} }}",
            doubling("Query")
        ),
    ];
    let mut wire = Wire::open(&app.address(), json!({})).await;
    for document in &documents {
        wire.send(subscribe("1", document)).await;
        let refused = wire.answer().await;
        assert_eq!(refused["type"], "error", "{refused}");
        let message = refused["payload"][0]["message"].as_str().unwrap();
        assert!(
            [TOO_MUCH, "the document selects too much"].contains(&message),
            "{message}"
        );
    }
    let refused = app.anonymous().refusal(&documents[3], json!({})).await;
    assert_eq!(refused, ("BAD_USER_INPUT".into(), TOO_MUCH.into()));
}

/// What is shared, so that nobody shares a private field by adding it to an object that is.
#[test]
fn the_fields_that_answer_everybody_alike_are_these() {
    let document = async_graphql_parser::parse_schema(tallyboard::graphql::sdl()).unwrap();
    let mut shared = Vec::new();
    for definition in &document.definitions {
        use async_graphql_parser::types::{TypeKind, TypeSystemDefinition};
        let TypeSystemDefinition::Type(ty) = definition else {
            continue;
        };
        let TypeKind::Object(object) = &ty.node.kind else {
            continue;
        };
        let marked = |directives: &[async_graphql_parser::Positioned<
            async_graphql_parser::types::ConstDirective,
        >]| {
            directives
                .iter()
                .any(|directive| directive.node.name.node == "shared")
        };
        let fields = object.fields.iter().map(|field| &field.node);
        let fields = fields.filter(|field| marked(&ty.node.directives) || marked(&field.directives));
        let names: Vec<&str> = fields.map(|field| field.name.node.as_str()).collect();
        if !names.is_empty() {
            shared.push(format!("{}: {}", ty.node.name.node, names.join(" ")));
        }
    }
    assert_eq!(
        shared,
        [
            "Board: id title order operator tieBreak rankMethod periods windows maxPoints",
            "Leaderboard: id board period periodKey startsAt endsAt closed previousOn nextOn participants epoch version \
             top entries around standing",
            "LeaderboardUpdate: cause leaderboard top sinceVersion moves",
            "OnlineCount: room count at",
            "PageInfo: hasPreviousPage hasNextPage startCursor endCursor",
            "RankMove: user from to",
            "RankUpdate: cause leaderboard standing previousRank above pointsToAbove overtakenBy overtakenCount",
            "Standing: user rank points reachedAt percentile",
            "StandingConnection: edges nodes pageInfo totalCount",
            "StandingEdge: cursor node",
            "Subscription: leaderboardChanged rankChanged onlineCountChanged",
            "User: id name avatarUrl",
        ]
    );
}
