//! What time does to boards: closed periods leave, capped boards are cut down, one node at a time looks after them.

use std::collections::BTreeSet;

use chrono::{Days, TimeDelta};
use serde_json::{Value, json};
use tallyboard::config::{Board as Configured, Settings};
use tallyboard::day::Period;
use tallyboard::ids::UserId;
use tallyboard::import;
use tallyboard::keyspace::keeper::Keeper;
use tallyboard::leaderboard::{BoardOrder, ScoreOperator, TieBreak};

use crate::harness::*;

fn days_kept(settings: &mut Settings) {
    settings.retention.day_boards_days = 3;
    settings.retention.week_boards_days = 9;
    settings.retention.month_boards_days = 20;
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_periods_leave_when_their_time_is_over_and_not_before() {
    for partitions in both_partitions() {
        // Over a change of the clocks, with days that begin in the morning.
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .zone("Europe/Berlin")
            .with(days_kept)
            .with(|s| s.day.starts_at = "04:00".into())
            .at("2027-03-01T12:00:00Z")
            .await;
        let _keeper = app.only_keeper().await;
        let (service, zone) = (app.service(), app.running().app.zone);
        let kept_days = [(Period::Day, 3), (Period::Week, 9), (Period::Month, 20)];
        let first = date("2027-03-01");
        for day in 0..55 {
            let today = first + Days::new(day);
            // Right at the turn, and right before it.
            for now in [
                zone.start_of(today),
                zone.end_of(today) - TimeDelta::milliseconds(1),
            ] {
                app.clock.set(now);
                service.score("points", "amy", 1).await;
                app.look_after().await;
                let mut wanted = BTreeSet::from(["all".to_owned()]);
                for past in 0..=day {
                    for (period, kept) in kept_days {
                        let span = period.span_of(first + Days::new(past));
                        if now < span.ends_at(&zone).unwrap() + TimeDelta::days(kept) {
                            wanted.insert(span.key());
                        }
                    }
                }
                for what in ["board", "board-distinct"] {
                    let keys = app.ttls(&format!("*:{what}:points:*")).await;
                    let left: BTreeSet<String> = keys
                        .into_iter()
                        .map(|(key, _)| key.rsplit(':').next().unwrap().to_owned())
                        .collect();
                    assert_eq!(left, wanted, "{what} at {now}");
                }
            }
        }
    }
}

/// What stays for ever; everything else expires.
const FOR_EVER: [&str; 12] = [
    "meta",
    ":generation",
    ":row-of:",
    ":user-of:",
    ":record:",
    ":profile:",
    ":board-version:",
    ":window-day:",
    ":swept",
    ":import:",
    ":all",
    ":heat",
];

async fn all_expire(app: &TestApp, after: &str) {
    for (key, ttl) in app.ttls("*").await {
        let stays = FOR_EVER.iter().any(|part| key.contains(part));
        assert_eq!(ttl > 0, !stays, "{key} after {after}: TTL {ttl}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_will_be_over_has_a_ttl_after_every_kind_of_write() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| {
                s.board[0].windows = vec![2, 7];
                s.board[0].half_life_hours = 6.0;
                s.board[0].cap = 2;
                s.board.push(Configured {
                    id: "best".into(),
                    operator: ScoreOperator::Best,
                    windows: vec![3],
                    periods: vec![Period::Week],
                    cap: 2,
                    ..Default::default()
                });
                s.checkin.points_board = "points".into();
            })
            .await;
        let service = app.service();
        for day in 1..=3 {
            app.set(&format!("2027-03-0{day}T08:00:00Z"));
            for board in ["points", "best"] {
                for (user, operator) in [
                    ("amy", "INCREMENT"),
                    ("bob", "SET"),
                    ("cid", "BEST"),
                    ("amy", "SET"),
                ] {
                    let input = json!({ "board": board, "userId": user, "points": 3, "operator": operator,
                        "idempotencyKey": format!("{user}{operator}") });
                    service.submit(input).await;
                    all_expire(&app, &format!("{operator} on {board}")).await;
                }
                service
                    .submit_all(&[json!({ "board": board, "userId": "dee", "points": 1 })])
                    .await;
                all_expire(&app, "a batch").await;
                service.remove(board, "bob").await;
                all_expire(&app, "a removal").await;
                let file = app.dir.path().join("scores.csv");
                std::fs::write(&file, format!("user,at,points\neve,2027-02-28T1{day}:00:00Z,5\n")).unwrap();
                import::scores::import(&app.running().app, &file, board)
                    .await
                    .unwrap();
                all_expire(&app, "an import").await;
            }
            app.user("amy").check_in().await;
            all_expire(&app, "a check-in").await;
            presence_expires(&app).await;
            app.look_after().await;
            all_expire(&app, "upkeep").await;
            service.board("best", &last_days(3), None).await;
            all_expire(&app, "a look at a window").await;
        }
    }
}

async fn presence_expires(app: &TestApp) {
    let id = |user: &str| UserId::parse(user).unwrap();
    let keyspace = &app.running().app.keyspace;
    let p = keyspace.partition_of(&id("amy"));
    let mut others = (0..).map(|i| format!("bob-{i}"));
    let bob = others.find(|bob| keyspace.partition_of(&id(bob)) == p).unwrap();
    let (amy, bob) = (app.user("amy"), app.user(&bob));
    amy.beat(Some("lobby"), Some("tab")).await;
    amy.beat(Some("lobby"), Some("phone")).await;
    all_expire(app, "heartbeats").await;
    amy.leave(Some("lobby"), Some("tab")).await;
    all_expire(app, "a leave").await;
    let now = app.clock.now();
    app.clock.set(now + TimeDelta::seconds(200));
    bob.beat(Some("lobby"), None).await;
    // The list of rooms may have gone between the keeper's look and its script, which then makes it anew.
    let mut redis = app.redis().await;
    let mut persist = redis::cmd("PERSIST");
    persist.arg(keyspace.keys().rooms(p));
    persist.exec_async(&mut redis).await.unwrap();
    app.clock.set(now + TimeDelta::seconds(400));
    let all: Vec<_> = app.running().app.keyspace.partitions().collect();
    let presence = &app.running().app.presence;
    presence.look_after(&all, app.clock.now()).await.unwrap();
    assert_eq!(app.anonymous().online(Some("lobby")).await, 1, "bob");
    all_expire(app, "an eviction").await;
}

/// Scores `points` of `user-i` for each i.
async fn score_all(service: &Caller<'_>, board: &str, points: impl IntoIterator<Item = i64>) {
    let inputs: Vec<Value> = points
        .into_iter()
        .enumerate()
        .map(|(i, points)| json!({ "board": board, "userId": format!("user-{i:04}"), "points": points }))
        .collect();
    for inputs in inputs.chunks(500) {
        service.apply_all(inputs).await;
    }
}

fn points_of(shown: &Shown) -> Vec<i64> {
    shown.top.iter().map(|standing| standing.points).collect()
}

/// The places by the rules, whatever was cut off before.
fn places_are_right(shown: &Shown) {
    let points = points_of(shown);
    for (i, standing) in shown.top.iter().enumerate() {
        let better: Vec<i64> = points[..i].iter().copied().filter(|&p| p != points[i]).collect();
        let distinct: BTreeSet<i64> = better.iter().copied().collect();
        assert_eq!(standing.rank, i as u64 + 1);
        assert_eq!(standing.competition, better.len() as u64 + 1);
        assert_eq!(standing.dense, distinct.len() as u64 + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capped_board_keeps_the_best_of_what_is_closed_and_of_what_nobody_gathers() {
    for partitions in both_partitions() {
        for order in [BoardOrder::HighestFirst, BoardOrder::LowestFirst] {
            let app = spawn_app()
                .with(off_disk)
                .partitions(partitions)
                .with(|s| {
                    let capped = |id: &str, operator| Configured {
                        id: id.into(),
                        operator,
                        order,
                        tie_break: TieBreak::None,
                        cap: 5,
                        periods: vec![Period::Day, Period::Month],
                        ..Default::default()
                    };
                    s.board = vec![
                        capped("sum", ScoreOperator::Increment),
                        capped("best", ScoreOperator::Best),
                        capped("set", ScoreOperator::Set),
                    ];
                })
                .at("2027-03-30T08:00:00Z")
                .await;
            let _keeper = app.only_keeper().await;
            let service = app.service();
            let sign = if order == BoardOrder::HighestFirst { -1 } else { 1 };
            // The fifth and the sixth are equal, and only the one whose id comes first stays: 1, 2, 2, 3, 4, 4, 5 …
            let points = |i: i64| 10 + sign * [1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9][i as usize];
            let (whole, cut): (Vec<i64>, Vec<i64>) =
                ((0..12).map(points).collect(), (0..5).map(points).collect());
            let (day, month) = (period("DAY"), period("MONTH"));
            for board in ["sum", "best", "set"] {
                score_all(&service, board, whole.iter().copied()).await;
            }
            app.look_after().await;
            for (board, wanted) in [("sum", &whole), ("best", &cut), ("set", &cut)] {
                for span in [&day, &month] {
                    let shown = service.board(board, span, None).await;
                    assert_eq!(&points_of(&shown), wanted, "{board}, running, P = {partitions}");
                    places_are_right(&shown);
                }
            }
            // Two days later, nobody looked: both days that closed are cut, and the month that goes on is not.
            app.set("2027-03-31T08:00:00Z");
            score_all(&service, "sum", whole.iter().copied()).await;
            app.set("2027-04-02T08:00:00Z");
            app.look_after().await;
            for on in ["2027-03-30", "2027-03-31"] {
                let shown = service.board("sum", &day, Some(date(on))).await;
                assert_eq!(points_of(&shown), cut, "{on}");
                places_are_right(&shown);
            }
            let closed = service.board("sum", &month, Some(date("2027-03-31"))).await;
            let twice: Vec<i64> = cut.iter().map(|points| 2 * points).collect();
            assert_eq!(points_of(&closed), twice);
            places_are_right(&closed);

            // What is brought in later is cut as well.
            let file = app.dir.path().join("scores.csv");
            std::fs::write(
                &file,
                format!("user,date,points\nnew,2027-03-30,{}\n", 10 + sign * 3),
            )
            .unwrap();
            import::scores::import(&app.running().app, &file, "sum")
                .await
                .unwrap();
            app.look_after().await;
            let shown = service.board("sum", &day, Some(date("2027-03-30"))).await;
            let with_it: Vec<i64> = [1, 2, 2, 3, 3].map(|points| 10 + sign * points).to_vec();
            assert_eq!(points_of(&shown), with_it);
            places_are_right(&shown);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_to_reach_decides_who_is_cut_off_among_equals() {
    let app = spawn_app()
        .with(|s| {
            s.board[0].operator = ScoreOperator::Best;
            s.board[0].cap = 3;
        })
        .await;
    let service = app.service();
    for user in ["d", "c", "b", "a"] {
        service.score("points", user, 7).await;
    }
    app.look_after().await;
    let own = ["d", "c", "b"].map(|user| (user.to_owned(), 7));
    assert_eq!(service.board("points", &period("DAY"), None).await.order(), own);
    // Whoever was cut off comes back with better points.
    assert_eq!(service.score("points", "a", 8).await.outcome, "APPLIED");
    app.look_after().await;
    let shown = service.board("points", &period("DAY"), None).await;
    assert_eq!(shown.order()[0], ("a".to_owned(), 8));
    assert_eq!(shown.participants, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn days_that_windows_need_are_cut_only_after_that() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| {
                s.board[0].operator = ScoreOperator::Best;
                s.board[0].tie_break = TieBreak::None;
                s.board[0].windows = vec![3];
                s.board[0].cap = 2;
                s.board[0].periods = vec![Period::Day, Period::Week];
            })
            .at("2027-03-01T08:00:00Z")
            .await;
        let _keeper = app.only_keeper().await;
        let service = app.service();
        score_all(&service, "points", [9, 8, 7, 6]).await;
        for (now, day, window) in [("03-01", 4, 4), ("03-02", 4, 4), ("03-03", 4, 4), ("03-04", 2, 0)] {
            app.set(&format!("2027-{now}T09:00:00Z"));
            app.look_after().await;
            let first = service
                .board("points", &period("DAY"), Some(date("2027-03-01")))
                .await;
            assert_eq!(first.participants, day, "{now}");
            let week = service.board("points", &period("WEEK"), None).await;
            assert_eq!(points_of(&week), [9, 8], "{now}");
            assert_eq!(
                service.board("points", &last_days(3), None).await.participants,
                window,
                "{now}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_cut_off_in_small_steps() {
    let app = spawn_app()
        .with(|s| {
            s.board[0].operator = ScoreOperator::Best;
            s.board[0].periods = vec![Period::AllTime];
            s.board[0].cap = 10;
        })
        .await;
    let service = app.service();
    score_all(&service, "points", 0..1_000).await;
    let keeper = app.only_keeper().await;
    app.running().app.look_after(&keeper).await.unwrap();
    let top = service.top("points", "ALL_TIME", 20).await;
    assert_eq!(top.participants, 10);
    assert_eq!(top.top[9].points, 990);
    // Each step counts as a change of the board: at most 200 users a step.
    let steps = top.version - 1_000;
    assert!((5..=990).contains(&steps), "{steps} steps");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_at_a_time_looks_after_a_partition() {
    for partitions in both_partitions() {
        let app = spawn_app().with(off_disk).partitions(partitions).await;
        let first = app.only_keeper().await;
        let keyspace = app.running().app.keyspace.clone();
        let second = Keeper::new(keyspace.clone());
        let all = first.partitions().await.unwrap();
        assert_eq!(all.len(), partitions as usize, "it renews what it holds");
        assert_eq!(second.partitions().await.unwrap(), []);
        for (key, ttl) in app.ttls("*:lease").await {
            assert!((1..=15_000).contains(&ttl), "{key}: {ttl}");
        }
        // The first one is gone, and its leases run out.
        let mut redis = app.redis().await;
        let taken = loop {
            for &p in &all {
                let mut run_out = redis::cmd("PEXPIRE");
                run_out.arg(keyspace.keys().lease(p)).arg(1);
                run_out.exec_async(&mut redis).await.unwrap();
            }
            let taken = second.partitions().await.unwrap();
            if taken.len() == all.len() {
                break taken;
            }
        };
        assert_eq!(taken, all);
        assert_eq!(first.partitions().await.unwrap(), []);
        if partitions > 1 {
            first.hold(&all).await.unwrap(); // whoever was at work when the leases went to another node ends
        }
    }
}
