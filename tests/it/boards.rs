//! Leaderboards: scores, places, ties, periods.

use futures::future::join_all;
use serde_json::json;
use tallyboard::config::Board as Configured;
use tallyboard::leaderboard::{BoardOrder, RankMethod, ScoreOperator, TieBreak};

use crate::harness::*;

#[tokio::test(flavor = "multi_thread")]
async fn one_score_counts_in_all_periods_and_says_what_was_before() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-01-01T12:00:00Z")
            .await;
        let service = app.service();
        let first = service.score("points", "amy", 30).await;
        assert_eq!(first.outcome, "APPLIED");
        let keys: Vec<_> = first
            .standings
            .iter()
            .map(|s| (s.period.as_str(), s.period_key.as_str()))
            .collect();
        assert_eq!(
            keys,
            [
                ("DAY", "2027-01-01"),
                ("WEEK", "2026-W53"),
                ("MONTH", "2027-01"),
                ("ALL_TIME", "all")
            ]
        );
        assert!(first.standings.iter().all(|s| s.previous_points.is_none()));

        app.set("2027-01-02T12:00:00Z");
        let second = service.score("points", "amy", 12).await;
        let points: Vec<_> = second
            .standings
            .iter()
            .map(|s| (s.previous_points, s.standing.as_ref().unwrap().points))
            .collect();
        assert_eq!(
            points,
            [(None, 12), (Some(30), 42), (Some(30), 42), (Some(30), 42)]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reaches_the_points_first_stands_first_also_within_one_tick() {
    // With several partitions, users of one: between partitions equal points may stand either way.
    for (partitions, users) in [(1, ["amy", "zed"]), (8, ["user-0", "user-1"])] {
        for (first, second) in [(users[0], users[1]), (users[1], users[0])] {
            let app = spawn_app()
                .partitions(partitions)
                .at("2027-03-01T08:00:00Z")
                .await;
            let keyspace = &app.running().app.keyspace;
            let [a, b] =
                users.map(|user| keyspace.partition_of(&tallyboard::ids::UserId::parse(user).unwrap()));
            assert_eq!(a, b, "chosen so");
            let service = app.service();
            service.score("points", first, 40).await;
            service.score("points", second, 100).await;
            service.score("points", second, -1).await; // leaves and must arrive again
            service.score("points", first, 60).await;
            service.score("points", second, 1).await;
            for period in ["DAY", "WEEK", "MONTH", "ALL_TIME"] {
                let board = service.top("points", period, 10).await;
                assert_eq!(
                    board.order(),
                    [(first, 100), (second, 100)],
                    "{period}, P = {partitions}"
                );
                let ranks: Vec<_> = board
                    .top
                    .iter()
                    .map(|s| (s.rank, s.competition, s.dense))
                    .collect();
                assert_eq!(ranks, [(1, 1, 1), (2, 1, 1)]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_score_that_changes_nothing_keeps_the_place_it_has() {
    let app = spawn_app().await;
    let service = app.service();
    assert_eq!(service.score("points", "amy", 0).await.outcome, "APPLIED");
    assert_eq!(service.score("points", "zed", 0).await.outcome, "APPLIED");
    app.set("2027-03-01T09:00:00Z");
    let again = service.score("points", "amy", 0).await;
    assert_eq!(again.outcome, "UNCHANGED");
    assert_eq!(again.standings[0].standing.as_ref().unwrap().rank, 1);
    assert_eq!(service.top("points", "DAY", 10).await.version, 2);
    assert_eq!(
        service.top("points", "DAY", 10).await.order(),
        [("amy", 0), ("zed", 0)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_parallel_points_are_a_thousand() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let service = app.service();
        let outcomes = join_all((0..1_000).map(|_| service.score("points", "amy", 1))).await;
        let mut before: Vec<_> = outcomes
            .iter()
            .map(|scored| scored.standings[0].previous_points.unwrap_or(0))
            .collect();
        before.sort_unstable();
        assert_eq!(
            before,
            (0..1_000).collect::<Vec<_>>(),
            "each saw another score before it"
        );
        assert_eq!(
            service.rank("points", "ALL_TIME", "amy").await.unwrap().points,
            1_000
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_points_are_ranked_by_each_method_whatever_the_partitions() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let service = app.service();
        for (user, points) in [("a", 101), ("b", 100), ("c", 100), ("d", 99), ("e", -7)] {
            service.score("points", user, points).await;
        }
        let board = service.top("points", "MONTH", 10).await;
        let ranks = |get: fn(&Standing) -> u64| board.top.iter().map(get).collect::<Vec<_>>();
        assert_eq!(ranks(|s| s.rank), [1, 2, 3, 4, 5]);
        assert_eq!(ranks(|s| s.competition), [1, 2, 2, 4, 5]);
        assert_eq!(ranks(|s| s.dense), [1, 2, 2, 3, 4]);
        assert_eq!(board.participants, 5);
        for standing in &board.top {
            let alone = service.rank("points", "MONTH", &standing.user.id).await.unwrap();
            assert_eq!(&alone, standing, "P = {partitions}");
        }
        assert_eq!(service.rank("points", "MONTH", "nobody").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fewest_points_lead_where_the_lowest_are_best() {
    let app = spawn_app()
        .with(|settings| {
            settings.board = vec![Configured {
                id: "lap".into(),
                order: BoardOrder::LowestFirst,
                operator: ScoreOperator::Best,
                rank_method: RankMethod::Dense,
                ..Default::default()
            }];
        })
        .await;
    let service = app.service();
    for (user, points) in [("amy", 61_000), ("zed", 59_500), ("amy", 60_000), ("amy", 64_000)] {
        service.score("lap", user, points).await;
    }
    assert_eq!(service.score("lap", "zed", 59_500).await.outcome, "UNCHANGED");
    assert_eq!(
        service.top("lap", "DAY", 10).await.order(),
        [("zed", 59_500), ("amy", 60_000)]
    );
    let set = "mutation { submitScore(input: { board: \"lap\", userId: \"zed\", points: 70000, operator: SET }) { outcome } }";
    service.data(set, json!({})).await;
    assert_eq!(
        service.top("lap", "DAY", 10).await.order(),
        [("amy", 60_000), ("zed", 70_000)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_tie_break_equals_stand_by_user_id_across_partitions() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.board[0].tie_break = TieBreak::None)
            .await;
        let service = app.service();
        let mut users: Vec<String> = (0..40).map(|i| format!("user-{i}")).collect();
        for user in users.iter().rev() {
            service.score("points", user, 5).await;
        }
        users.sort();
        let board = service.top("points", "ALL_TIME", 100).await;
        let shown: Vec<_> = board
            .top
            .iter()
            .map(|standing| standing.user.id.clone())
            .collect();
        assert_eq!(shown, users);
        assert!(board.top.iter().all(|standing| standing.reached_at.is_none()));
        for (i, user) in users.iter().enumerate() {
            assert_eq!(
                service.rank("points", "ALL_TIME", user).await.unwrap().rank,
                i as u64 + 1
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn points_beyond_the_board_are_rejected_whole() {
    let app = spawn_app().await;
    let service = app.service();
    service.score("points", "amy", 9_999_999).await;
    for (user, points) in [
        ("amy", 2),
        ("zed", 10_000_001),
        ("zed", -10_000_001),
        ("zed", 9_007_199_254_740_991),
    ] {
        let scored = service.score("points", user, points).await;
        assert_eq!((scored.outcome.as_str(), scored.standings.len()), ("REJECTED", 0));
        let rejection = scored.rejection.unwrap();
        assert_eq!(rejection.code, "POINTS_OUT_OF_RANGE");
        assert!(rejection.message.contains("10000000"), "{}", rejection.message);
    }
    // A new day's board has room, the others have none: nothing changes anywhere.
    app.set("2027-03-02T08:00:00Z");
    assert_eq!(service.score("points", "amy", 2).await.outcome, "REJECTED");
    assert_eq!(service.top("points", "DAY", 10).await.participants, 0);
    assert_eq!(service.score("points", "amy", 1).await.outcome, "APPLIED");
    assert_eq!(
        service.top("points", "ALL_TIME", 10).await.order(),
        [("amy", 10_000_000)]
    );

    let unknown = service.score("nowhere", "amy", 2).await;
    assert_eq!(unknown.rejection.unwrap().code, "UNKNOWN_BOARD");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_period_stays_readable_and_the_new_one_begins_empty() {
    let app = spawn_app().at("2027-02-28T23:59:59Z").await;
    let service = app.service();
    service.score("points", "amy", 7).await;
    app.set("2027-03-01T00:00:00Z");
    for period in ["DAY", "WEEK", "MONTH"] {
        assert_eq!(service.top("points", period, 10).await.order(), [], "{period}");
        let query =
            "query ($span: BoardSpan) { leaderboard(board: \"points\", on: \"2027-02-28\", span: $span)
            { closed endsAt top { points } } }";
        let shown = service.data(query, json!({ "span": { "period": period } })).await["leaderboard"].clone();
        assert_eq!(
            shown,
            json!({ "closed": true, "endsAt": "2027-03-01T00:00:00+00:00", "top": [{ "points": 7 }] })
        );
    }
    assert_eq!(service.top("points", "ALL_TIME", 10).await.order(), [("amy", 7)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_reaching_is_never_later_than_now() {
    let app = spawn_app().at("2027-03-01T08:00:00.001Z").await;
    let service = app.service();
    for user in 0..20 {
        service.score("points", &format!("user-{user}"), 5).await;
    }
    for period in ["DAY", "WEEK", "MONTH", "ALL_TIME"] {
        for standing in service.top("points", period, 20).await.top {
            let reached = at(standing.reached_at.as_deref().unwrap());
            assert!(reached <= app.clock.now(), "{period}: {reached}");
            assert!(
                (app.clock.now() - reached).num_seconds() < 10,
                "{period}: {reached}"
            );
        }
    }
}
