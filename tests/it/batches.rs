//! Batches of scores, and the keys by which a score counts once.

use futures::future::join_all;
use serde_json::{Value, json};
use tallyboard::config::Board as Configured;

use crate::harness::*;

fn input(user: &str, points: i64) -> Value {
    json!({ "board": "points", "userId": user, "points": points })
}

fn keyed(user: &str, points: i64, key: &str) -> Value {
    json!({ "board": "points", "userId": user, "points": points, "idempotencyKey": key })
}

fn outcomes(scored: &[Scored]) -> Vec<&str> {
    scored
        .iter()
        .map(|scored| match &scored.rejection {
            Some(rejection) => rejection.code.as_str(),
            None => scored.outcome.as_str(),
        })
        .collect()
}

/// A period's key, the points before, and place and points now.
type Period<'s> = (&'s str, Option<i64>, Option<(u64, i64)>);

fn shown(scored: &Scored) -> Vec<Period<'_>> {
    let place = |standing: &Option<Standing>| standing.as_ref().map(|s| (s.rank, s.points));
    scored
        .standings
        .iter()
        .map(|of| (of.period_key.as_str(), of.previous_points, place(&of.standing)))
        .collect()
}

async fn points_of(app: &TestApp, user: &str) -> Option<i64> {
    let standing = app.service().rank("points", "ALL_TIME", user).await;
    standing.map(|standing| standing.points)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_score_of_a_batch_has_an_outcome_of_its_own() {
    for partitions in both_partitions() {
        let app = spawn_app().with(off_disk).partitions(partitions).await;
        let service = app.service();
        service.submit(keyed("amy", 1, "used")).await;
        let inputs = [
            input("amy", 5),
            input("amy", 0),
            input("bob", 10_000_001),
            input("bob", 20_000_001),
            json!({ "board": "nowhere", "userId": "amy", "points": 1 }),
            json!({ "board": "no board's id", "userId": "amy", "points": 1 }),
            json!({ "board": "points", "points": 1 }),
            input("a b", 1),
            keyed("amy", 1, ""),
            keyed("amy", 1, &"k".repeat(256)),
            keyed("amy", 1, &"k".repeat(255)),
            keyed("amy", 1, "used"),
            keyed("amy", 2, "used"),
            keyed("amy", 30_000_000, "used"),
            input("amy", 10_000_000),
            input("amy", -10_000_000),
            input("amy", -7),
            input("amy", 15_000_000),
        ];
        let scored = service.submit_all(&inputs).await;
        assert_eq!(
            outcomes(&scored),
            [
                "APPLIED",
                "UNCHANGED",
                "POINTS_OUT_OF_RANGE",
                "POINTS_OUT_OF_RANGE",
                "UNKNOWN_BOARD",
                "UNKNOWN_BOARD",
                "BAD_USER_INPUT",
                "BAD_USER_INPUT",
                "BAD_USER_INPUT",
                "BAD_USER_INPUT",
                "APPLIED",
                "REPLAYED",
                "KEY_CONFLICT",
                "KEY_CONFLICT",
                "POINTS_OUT_OF_RANGE",
                "APPLIED",
                "APPLIED",
                "APPLIED", // more than there are points, but the sum lies within them
            ]
        );
        for scored in &scored {
            let refused = scored.outcome == "REJECTED";
            assert_eq!(scored.rejection.is_some(), refused);
            assert_eq!(scored.standings.is_empty(), refused);
        }
        assert_eq!(
            points_of(&app, "amy").await,
            Some(1 + 5 + 1 - 10_000_000 - 7 + 15_000_000)
        );
        assert_eq!(points_of(&app, "bob").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_of_one_user_in_a_batch_are_applied_in_their_order() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.board[0].windows = vec![2]) // the first batch also brings the day about
            .await;
        let service = app.service();
        let operators = ["INCREMENT", "SET", "BEST"];
        let inputs: Vec<Value> = (0..500)
            .map(|i| {
                let (user, points) = (format!("user-{}", i % 7), (i * 37) % 101 - 20);
                let operator = operators[(i as usize / 7) % 3];
                json!({ "board": "points", "userId": user, "points": points, "operator": operator })
            })
            .collect();
        let mut held = [None; 7];
        for scored in [
            service.submit_all(&inputs).await,
            service.submit_all(&inputs).await,
        ] {
            assert_eq!(scored.len(), 500);
            for (i, scored) in scored.iter().enumerate() {
                let (before, points) = (held[i % 7], (i as i64 * 37) % 101 - 20);
                assert_eq!(scored.standings[3].previous_points, before, "score {i}");
                let after = match (operators[(i / 7) % 3], before) {
                    ("INCREMENT", Some(before)) => before + points,
                    ("BEST", Some(before)) => points.max(before),
                    _ => points,
                };
                let outcome = if before == Some(after) {
                    "UNCHANGED"
                } else {
                    "APPLIED"
                };
                assert_eq!(scored.outcome, outcome, "score {i}");
                assert_eq!(scored.standings[3].standing.as_ref().unwrap().points, after);
                held[i % 7] = Some(after);
            }
        }
        for (user, points) in held.into_iter().enumerate() {
            let user = format!("user-{user}");
            assert_eq!(points_of(&app, &user).await, points);
            let window = service.place("points", &last_days(2), &user).await;
            assert_eq!(window.map(|standing| standing.points), points);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_bounds_and_a_caller() {
    let app = spawn_app()
        .with(|s| {
            s.board.push(Configured {
                id: "own".into(),
                user_writes: true,
                ..Default::default()
            });
        })
        .await;
    let query = "mutation ($inputs: [SubmitScoreInput!]!) { submitScores(inputs: $inputs) { outcome rejection { code } } }";
    let many: Vec<Value> = (0..501).map(|i| input(&format!("user-{i}"), 1)).collect();
    let refused = app.service().refusal(query, json!({ "inputs": many })).await;
    assert_eq!(refused.0, "BAD_USER_INPUT");
    assert_eq!(app.service().top("points", "DAY", 1).await.participants, 0);
    let nothing = app.service().data(query, json!({ "inputs": [] })).await;
    assert_eq!(nothing, json!({ "submitScores": [] }));
    for inputs in [json!([]), json!([input("amy", 1)])] {
        let refused = app.anonymous().refusal(query, json!({ "inputs": inputs })).await;
        assert_eq!(refused.0, "UNAUTHENTICATED");
    }

    let amy = app.user("amy");
    let own = |user: Option<&str>, operator: Option<&str>| json!({ "board": "own", "userId": user, "points": 1, "operator": operator });
    let inputs = [
        own(None, None),
        own(Some("amy"), None),
        own(Some("bob"), None),
        own(None, Some("SET")),
        json!({ "board": "points", "points": 1 }),
    ];
    let scored = amy.submit_all(&inputs).await;
    assert_eq!(
        outcomes(&scored),
        ["APPLIED", "APPLIED", "FORBIDDEN", "FORBIDDEN", "FORBIDDEN"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sent_again_counts_once_and_shows_places_as_they_are_now() {
    for partitions in both_partitions() {
        let mut app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.board[0].windows = vec![2])
            .at("2027-03-30T20:00:00Z")
            .await;
        app.service().score("points", "amy", 2).await;
        let first = app.service().submit(keyed("amy", 5, "k")).await;
        let days = ["2027-03-30", "2027-W13", "2027-03", "all"];
        assert_eq!(first.outcome, "APPLIED");
        assert_eq!(shown(&first), days.map(|day| (day, Some(2), Some((1, 7)))));

        app.service().score("points", "zed", 9).await;
        let again = app.service().submit(keyed("amy", 5, "k")).await;
        assert_eq!(again.outcome, "REPLAYED");
        assert_eq!(shown(&again), days.map(|day| (day, Some(2), Some((2, 7)))));

        for (other, what) in [
            (keyed("amy", 6, "k"), "points"),
            (
                json!({ "board": "points", "userId": "amy", "points": 5, "operator": "SET", "idempotencyKey": "k" }),
                "operator",
            ),
        ] {
            let conflict = app.service().submit(other).await;
            assert_eq!(conflict.rejection.unwrap().code, "KEY_CONFLICT", "other {what}");
            assert_eq!(conflict.standings, []);
        }

        // The day turns, others score, the server starts anew: the answer is about the periods of then.
        app.set("2027-03-31T08:00:00Z");
        app.service().score("points", "amy", 1).await;
        app = app.restarted(|_| {}).await;
        let later = app.service().submit(keyed("amy", 5, "k")).await;
        assert_eq!(later.outcome, "REPLAYED");
        let now = [(2, 7), (2, 8), (2, 8), (2, 8)];
        let wanted: Vec<_> = days
            .iter()
            .zip(now)
            .map(|(&day, place)| (day, Some(2), Some(place)))
            .collect();
        assert_eq!(shown(&later), wanted);
        assert_eq!(points_of(&app, "amy").await, Some(8));

        // Who was taken off has no place; the points before are still known.
        app.service().remove("points", "amy").await;
        let removed = app.service().submit(keyed("amy", 5, "k")).await;
        assert_eq!(shown(&removed)[3], ("all", Some(2), None));
        assert_eq!(points_of(&app, "amy").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_remembered_for_a_day_by_the_clock() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        let service = app.service();
        let outcome = async |points| {
            let scored = app.service().submit(keyed("amy", points, "k")).await;
            outcomes(&[scored])[0].to_owned()
        };
        assert_eq!(outcome(5).await, "APPLIED");
        app.set("2027-03-02T07:59:59.999Z");
        assert_eq!(outcome(5).await, "REPLAYED");
        assert_eq!(outcome(4).await, "KEY_CONFLICT");
        app.set("2027-03-02T08:00:00Z");
        assert_eq!(outcome(4).await, "APPLIED");
        assert_eq!(outcome(4).await, "REPLAYED");
        assert_eq!(points_of(&app, "amy").await, Some(9));

        // What changed nothing is remembered; what was refused is not.
        let unchanged = keyed("amy", 0, "nothing");
        assert_eq!(service.submit(unchanged.clone()).await.outcome, "UNCHANGED");
        assert_eq!(service.submit(unchanged).await.outcome, "REPLAYED");
        let refused = keyed("amy", 9_999_999, "much");
        assert_eq!(service.submit(refused.clone()).await.outcome, "REJECTED");
        service.score("points", "amy", -9).await;
        assert_eq!(service.submit(refused.clone()).await.outcome, "APPLIED");
        assert_eq!(service.submit(refused).await.outcome, "REPLAYED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_its_callers_and_its_users_own() {
    let app = spawn_app().with(|s| s.board[0].user_writes = true).await;
    let service = app.service();
    for user in ["amy", "bob"] {
        assert_eq!(service.submit(keyed(user, 5, "k")).await.outcome, "APPLIED");
    }
    let own = json!({ "board": "points", "points": 5, "idempotencyKey": "k" });
    for user in ["amy", "bob"] {
        assert_eq!(app.user(user).submit(own.clone()).await.outcome, "APPLIED");
        assert_eq!(app.user(user).submit(own.clone()).await.outcome, "REPLAYED");
        assert_eq!(points_of(&app, user).await, Some(10));
    }
    let query = "mutation ($input: SubmitScoreInput!) { submitScore(input: $input) { outcome } }";
    for key in ["", &"k".repeat(256)] {
        let refused = service
            .refusal(query, json!({ "input": keyed("amy", 1, key) }))
            .await;
        assert_eq!(refused.0, "BAD_USER_INPUT", "{} bytes", key.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_parallel_sends_of_one_key_count_once() {
    for partitions in both_partitions() {
        let app = spawn_app().with(off_disk).partitions(partitions).await;
        let service = app.service();
        let batch = [keyed("amy", 3, "k")];
        let (single, batches) = futures::future::join(
            join_all((0..25).map(|_| service.submit(keyed("amy", 3, "k")))),
            join_all((0..25).map(|_| service.submit_all(&batch))),
        )
        .await;
        let all: Vec<Scored> = single.into_iter().chain(batches.into_iter().flatten()).collect();
        let count = |outcome: &str| all.iter().filter(|scored| scored.outcome == outcome).count();
        assert_eq!((count("APPLIED"), count("REPLAYED")), (1, 49));
        assert!(
            all.iter()
                .all(|scored| scored.standings[0].previous_points.is_none())
        );
        assert_eq!(points_of(&app, "amy").await, Some(3));
    }
}

/// A partition that cannot answer: its users' scores fail, the others' count, with boards that turn their day as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_in_trouble_fails_its_own_scores_only() {
    let app = spawn_app()
        .partitions(8)
        .with(|settings| settings.board[0].windows = vec![7])
        .await;
    let users: Vec<String> = (0..40).map(|i| format!("user-{i}")).collect();
    let inputs: Vec<Value> = users.iter().map(|user| input(user, 5)).collect();
    app.service().apply_all(&inputs).await;
    app.set("2027-03-02T08:00:00Z");
    // What the partition keeps its users' rows in is something else now: every script of theirs fails.
    let (mut redis, lost) = (app.redis().await, "tb:{3}:user-of:0");
    redis::cmd("DEL").arg(lost).exec_async(&mut redis).await.unwrap();
    redis::cmd("SET")
        .arg(lost)
        .arg("x")
        .exec_async(&mut redis)
        .await
        .unwrap();
    let keyspace = &app.running().app.keyspace;
    let of = |user: &str| {
        keyspace
            .partition_of(&tallyboard::ids::UserId::parse(user).unwrap())
            .index()
    };
    let scored = app.service().submit_all(&inputs).await;
    let mut failed = 0;
    for (user, outcome) in users.iter().zip(outcomes(&scored)) {
        let wanted = if of(user) == 3 { "UNAVAILABLE" } else { "APPLIED" };
        assert_eq!(outcome, wanted, "{user}");
        failed += usize::from(of(user) == 3);
    }
    assert!((1..users.len()).contains(&failed), "{failed} of them live there");
}
