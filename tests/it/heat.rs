//! Heat: what is hot now, compared with a sum that is worked out anew for each moment.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tallyboard::config::Board as Configured;
use tallyboard::day::Period;
use tallyboard::import;
use tallyboard::leaderboard::BoardOrder;

use crate::harness::*;

const HALF_LIFE_HOURS: f64 = 6.0;

fn hot(order: BoardOrder) -> Configured {
    Configured {
        id: "hot".into(),
        order,
        half_life_hours: HALF_LIFE_HOURS,
        ..Default::default()
    }
}

/// Points as they came: by user, when and how many.
#[derive(Default)]
struct Scores(Vec<(String, DateTime<Utc>, i64)>);

impl Scores {
    fn add(&mut self, user: &str, at: DateTime<Utc>, points: i64) {
        self.0.push((user.into(), at, points));
    }

    /// Everybody's heat, by the definition.
    fn naive(&self, now: DateTime<Utc>) -> BTreeMap<&str, f64> {
        let mut heat = BTreeMap::new();
        for (user, at, points) in &self.0 {
            let half_lives = (now - *at).num_milliseconds() as f64 / (HALF_LIFE_HOURS * 3_600_000.0);
            *heat.entry(user.as_str()).or_insert(0.0) += *points as f64 * (-half_lives).exp2();
        }
        heat
    }
}

/// The board shows the naive heat, in its order, with its places.
async fn compare(app: &TestApp, scores: &Scores, order: BoardOrder) -> Vec<String> {
    let (service, naive) = (app.service(), scores.naive(app.clock.now()));
    let shown = service.board("hot", &heat(), None).await;
    assert_eq!(shown.participants, naive.len() as u64);
    assert_eq!(shown.top.len(), naive.len());
    let sign = if order == BoardOrder::LowestFirst {
        1.0
    } else {
        -1.0
    };
    let mut last = f64::NEG_INFINITY;
    for (i, standing) in shown.top.iter().enumerate() {
        let wanted = naive[standing.user.id.as_str()];
        let off = (standing.points as f64 - wanted).abs();
        assert!(
            off <= 0.5 + wanted.abs() * 1e-9 + 1e-6,
            "{standing:?} should be {wanted}"
        );
        assert!(
            sign * wanted >= last - wanted.abs() * 1e-9,
            "{:?} in {naive:?}",
            shown.order()
        );
        last = sign * wanted;
        assert_eq!(standing.rank, i as u64 + 1);
        assert!(standing.competition <= standing.rank && standing.dense <= standing.competition);
        assert_eq!(standing.reached_at, None);
    }
    for place in [0, shown.top.len() / 2, shown.top.len() - 1] {
        let user = &shown.top[place].user.id;
        assert_eq!(
            service.place("hot", &heat(), user).await.as_ref(),
            Some(&shown.top[place])
        );
        let around = service.around("hot", &heat(), user, 2).await;
        let wanted = &shown.top[place.saturating_sub(2)..(place + 3).min(shown.top.len())];
        assert_eq!(around, wanted);
    }
    shown.top.into_iter().map(|standing| standing.user.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn heat_is_the_sum_of_what_is_left_of_all_points() {
    for (partitions, order) in [
        (1, BoardOrder::HighestFirst),
        (8, BoardOrder::HighestFirst),
        (8, BoardOrder::LowestFirst),
    ] {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.board = vec![hot(order)])
            .await;
        let (service, mut scores) = (app.service(), Scores::default());
        for turn in 0..120_i64 {
            app.clock
                .set(app.clock.now() + TimeDelta::seconds((turn * 7919) % 5_000));
            let (user, points) = (format!("user-{}", (turn * turn) % 17), (turn * 31) % 200 - 60);
            let points = if turn % 20 == 7 { 0 } else { points };
            if service.score("hot", &user, points).await.outcome == "APPLIED" {
                scores.add(&user, app.clock.now(), points);
            }
        }
        let stands = compare(&app, &scores, order).await;
        // Time alone changes nothing about the order, however much of it passes.
        for hours in [1, 13, 100, 2_000] {
            app.clock.set(app.clock.now() + TimeDelta::hours(hours));
            assert_eq!(compare(&app, &scores, order).await, stands, "{hours} hours later");
        }

        app.clock.set(app.clock.now() + TimeDelta::hours(6 * 2_000));
        assert_eq!(
            compare(&app, &scores, order).await,
            stands,
            "2,000 half-lives later"
        );
        for (user, points) in [
            ("user-1", 40),
            ("late", 41),
            ("user-2", -3),
            ("user-3", 0),
            ("user-1", 2),
        ] {
            service.score("hot", user, points).await;
            scores.add(user, app.clock.now(), points);
        }
        let anew = compare(&app, &scores, order).await;
        let first = if order == BoardOrder::HighestFirst {
            ["user-1", "late"]
        } else {
            ["late", "user-1"]
        };
        let at = |user: &str| anew.iter().position(|other| other == user).unwrap();
        assert!(at(first[0]) < at(first[1]));

        assert!(service.remove("hot", "user-1").await);
        assert_eq!(service.place("hot", &heat(), "user-1").await, None);
        scores.0.retain(|(user, ..)| user != "user-1");
        compare(&app, &scores, order).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heat_that_cancels_out_is_none() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.board = vec![hot(BoardOrder::HighestFirst)])
            .await;
        let service = app.service();
        for later in [0, 6 * 2_500] {
            app.clock.set(app.clock.now() + TimeDelta::hours(later));
            for (user, points) in [
                ("zero", 0),
                ("gone", 5),
                ("gone", 2),
                ("gone", -7),
                ("cold", -1),
                ("warm", 1),
            ] {
                service.score("hot", user, points).await;
            }
            let shown = service.board("hot", &heat(), None).await;
            let wanted = [("warm", 1), ("gone", 0), ("zero", 0), ("cold", -1)];
            assert_eq!(
                shown.order(),
                wanted.map(|(user, points)| (user.to_owned(), points))
            );
            let competition: Vec<u64> = shown.top.iter().map(|standing| standing.competition).collect();
            assert_eq!(competition, [1, 2, 2, 4]);
            let dense: Vec<u64> = shown.top.iter().map(|standing| standing.dense).collect();
            assert_eq!(dense, [1, 2, 2, 3]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_heat_holds_whoever_is_shown_within_it() {
    for (partitions, order) in [(1, BoardOrder::HighestFirst), (8, BoardOrder::LowestFirst)] {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.board = vec![hot(order)])
            .await;
        let service = app.service();
        for points in -21..=21 {
            service.score("hot", &format!("user{points}"), points).await;
        }
        // After one half-life every second user lies half-way between two points.
        for hours in [0, 6, 5, 1] {
            app.clock.set(app.clock.now() + TimeDelta::hours(hours));
            let all = service.board("hot", &heat(), None).await.order();
            for (least, most) in [
                (-11, 11),
                (0, 0),
                (-1, 0),
                (1, 3),
                (-4, -2),
                (3, 1),
                (-30, -10),
                (10, 10),
            ] {
                let query = "query ($least: SafeInt, $most: SafeInt) { leaderboard(board: \"hot\", span: { heat: true }) {
                    entries(first: 100, minPoints: $least, maxPoints: $most) { totalCount nodes { user { id } points } } } }";
                let variables = json!({ "least": least, "most": most });
                let entries = service.data(query, variables).await["leaderboard"]["entries"].take();
                let nodes: Vec<(String, i64)> = entries["nodes"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|node| {
                        let id = node["user"]["id"].as_str().unwrap();
                        (id.to_owned(), node["points"].as_i64().unwrap())
                    })
                    .collect();
                let within = |points: i64| (least..=most).contains(&points);
                let wanted: Vec<_> = all
                    .iter()
                    .filter(|(_, points)| within(*points))
                    .cloned()
                    .collect();
                assert_eq!(nodes, wanted, "{least} to {most} after {hours} hours");
                assert_eq!(entries["totalCount"].as_u64(), Some(wanted.len() as u64));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn imported_scores_are_as_warm_as_their_age_leaves_them() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .at("2027-03-01T00:00:00Z")
            .with(|s| {
                let mut slow = hot(BoardOrder::HighestFirst);
                slow.id = "slow".into();
                slow.half_life_hours = 24.0 * 30.0;
                slow.periods = vec![Period::Day]; // kept for 40 days, while heat remembers for longer
                s.board = vec![hot(BoardOrder::HighestFirst), slow];
            })
            .await;
        app.service().score("hot", "amy", 8).await;
        app.service().score("slow", "amy", 8).await;
        let file = app.dir.path().join("scores.csv");
        let csv = "user,at,points\namy,2027-02-28T18:00:00Z,64\nbob,2027-02-28T12:00:00Z,400\nold,2026-12-31T00:00:00Z,80\n";
        std::fs::write(&file, csv).unwrap();
        for board in ["hot", "slow"] {
            for applied in [3, 0] {
                let summary = import::scores::import(&app.running().app, &file, board)
                    .await
                    .unwrap();
                assert_eq!(summary.applied, applied, "{board}: again it changes nothing");
            }
        }
        let order = async |board| app.service().board(board, &heat(), None).await.order();
        let own = |wanted: [(&str, i64); 3]| wanted.map(|(user, points)| (user.to_owned(), points));
        assert_eq!(order("hot").await, own([("bob", 100), ("amy", 40), ("old", 0)]));
        assert_eq!(order("slow").await, own([("bob", 395), ("amy", 72), ("old", 20)]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_see_heat_cool_down_without_a_write() {
    let app = spawn_app()
        .with(|s| s.board = vec![hot(BoardOrder::HighestFirst)])
        .await;
    app.service().score("hot", "amy", 1_000).await;
    let mut socket = Socket::open(&app.anonymous()).await;
    let query = "subscription { leaderboardChanged(board: \"hot\", span: { heat: true }) {
        cause leaderboard { id version } top { points } } }";
    socket.subscribe(query, json!({})).await;
    let snapshot = socket.update().await;
    assert_eq!(
        (&snapshot["cause"], &snapshot["top"]),
        (&json!("SNAPSHOT"), &json!([{ "points": 1_000 }]))
    );
    for left in [500, 250] {
        app.clock.set(app.clock.now() + TimeDelta::hours(6));
        let since = Instant::now();
        let update: Value = loop {
            let update = socket.update().await;
            if update["top"][0]["points"] == left {
                break update;
            }
        };
        // About a second, on a busy machine.
        assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
        assert_eq!(update["cause"], "CHANGED");
        assert_eq!(
            update["leaderboard"]["version"],
            snapshot["leaderboard"]["version"]
        );
    }
}
