//! Check-ins, streaks, rewards and the calendar.

use futures::future::join_all;
use serde_json::json;

use crate::harness::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_day_missed_ends_the_streak_but_an_open_day_does_not() {
    let app = spawn_app().at("2027-03-01T08:00:00Z").await;
    let amy = app.user("amy");
    amy.check_in().await;

    app.set("2027-03-02T23:59:00Z");
    let streak = amy.streak().await;
    assert_eq!(
        (streak.current, streak.at_risk, streak.checked_in_today),
        (1, true, false)
    );
    assert_eq!(streak.ends_at.as_deref(), Some("2027-03-03T00:00:00+00:00"));

    app.set("2027-03-03T00:00:00Z");
    let streak = amy.streak().await;
    assert_eq!(
        (streak.current, streak.longest, streak.at_risk, streak.ends_at),
        (0, 1, false, None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_check_in_there_is_nothing_but_a_reward_to_come() {
    let app = spawn_app().await;
    let streak = app.user("amy").streak().await;
    let first = Reward {
        points: 10,
        make_up_cards: 0,
    };
    assert_eq!(
        (streak.current, streak.total, streak.last_date, streak.next_reward),
        (0, 0, None, Some(first))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streak_runs_over_a_years_end_and_a_leap_day() {
    for days in [
        [
            "2027-12-31T12:00:00Z",
            "2028-01-01T12:00:00Z",
            "2028-01-02T12:00:00Z",
        ],
        [
            "2028-02-28T12:00:00Z",
            "2028-02-29T12:00:00Z",
            "2028-03-01T12:00:00Z",
        ],
    ] {
        let app = spawn_app().at(days[0]).await;
        app.user("amy").check_in_at(&days).await;
        assert_eq!(app.user("amy").streak().await.current, 3, "{days:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streak_runs_over_both_clock_changes_of_berlin() {
    // The evening before, late on the day of 23 or 25 hours, early on the day after.
    for days in [
        [
            "2027-03-27T22:30:00Z",
            "2027-03-28T21:59:00Z",
            "2027-03-28T22:01:00Z",
        ],
        [
            "2027-10-30T21:30:00Z",
            "2027-10-31T22:59:00Z",
            "2027-10-31T23:01:00Z",
        ],
    ] {
        let app = spawn_app().zone("Europe/Berlin").at(days[0]).await;
        app.user("amy").check_in_at(&days).await;
        assert_eq!(app.user("amy").streak().await.current, 3, "{days:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_small_hours_belong_to_the_day_before_where_the_day_starts_at_four() {
    let app = spawn_app()
        .with(|settings| settings.day.starts_at = "04:00".into())
        .at("2027-03-02T03:59:00Z")
        .await;
    let amy = app.user("amy");
    assert_eq!(amy.check_in().await.date, "2027-03-01");
    app.set("2027-03-02T04:00:00Z");
    let receipt = amy.check_in().await;
    assert_eq!(
        (
            receipt.outcome.as_str(),
            receipt.date.as_str(),
            receipt.streak.current
        ),
        ("CHECKED_IN", "2027-03-02", 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_parallel_check_ins_are_one() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let amy = app.user("amy");
        let receipts = join_all((0..50).map(|_| amy.check_in())).await;
        let fresh: Vec<_> = receipts
            .iter()
            .filter(|receipt| receipt.outcome == "CHECKED_IN")
            .collect();
        assert_eq!(fresh.len(), 1);
        for receipt in &receipts {
            assert_eq!(
                (receipt.reward, receipt.wallet),
                (fresh[0].reward, fresh[0].wallet)
            );
        }
        assert_eq!(amy.streak().await.total, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_check_ins_in_one_document_are_one() {
    let app = spawn_app().await;
    let aliases: Vec<String> = (0..100)
        .map(|i| format!("a{i}: checkIn {{ outcome wallet {{ points }} }}"))
        .collect();
    let data = app
        .user("amy")
        .data(&format!("mutation {{ {} }}", aliases.join(" ")), json!({}))
        .await;
    let outcomes: Vec<_> = data.as_object().unwrap().values().collect();
    assert_eq!(
        outcomes
            .iter()
            .filter(|payload| payload["outcome"] == "CHECKED_IN")
            .count(),
        1
    );
    assert!(outcomes.iter().all(|payload| payload["wallet"]["points"] == 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn rewards_follow_the_cycle_the_weeks_and_the_milestones() {
    let app = spawn_app()
        .with(|settings| {
            let milestone = tallyboard::config::Milestone {
                streak: 3,
                points: 500,
                make_up_cards: 1,
            };
            settings.checkin.milestone = vec![milestone];
        })
        .at("2027-03-01T08:00:00Z")
        .await;
    let amy = app.user("amy");
    let mut earned = Vec::new();
    for day in 1..=8 {
        app.set(&format!("2027-03-0{day}T08:00:00Z"));
        let promised = amy.streak().await.next_reward.unwrap();
        let receipt = amy.check_in().await;
        assert_eq!(receipt.reward, promised, "day {day}");
        let again = amy.check_in().await;
        assert_eq!(
            (again.outcome.as_str(), again.reward, again.wallet),
            ("ALREADY_CHECKED_IN", promised, receipt.wallet)
        );
        earned.push(receipt.reward.points);
    }
    assert_eq!(earned, [10, 10, 510, 10, 10, 10, 150, 10]);
    let wallet: Reward = amy.field("{ wallet { points makeUpCards } }", json!({})).await;
    assert_eq!(
        wallet,
        Reward {
            points: 720,
            make_up_cards: 1
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_in_feeds_its_boards_and_a_full_one_never_blocks_it() {
    let app = spawn_app()
        .with(|settings| {
            settings.checkin.points_board = "points".into();
            settings.checkin.count_board = "count".into();
            settings.board[0].max_points = 25;
            settings.board.push(tallyboard::config::Board {
                id: "count".into(),
                ..Default::default()
            });
        })
        .at("2027-03-01T08:00:00Z")
        .await;
    let amy = app.user("amy");
    amy.check_in_at(&[
        "2027-03-01T08:00:00Z",
        "2027-03-02T08:00:00Z",
        "2027-03-03T08:00:00Z",
    ])
    .await;
    assert_eq!(amy.top("points", "ALL_TIME", 10).await.order(), [("amy", 25)]);
    assert_eq!(amy.top("points", "DAY", 10).await.order(), [("amy", 10)]);
    assert_eq!(amy.top("count", "MONTH", 10).await.order(), [("amy", 3)]);
    let wallet: Reward = amy.field("{ wallet { points makeUpCards } }", json!({})).await;
    assert_eq!(wallet.points, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calendar_tells_what_is_known_of_each_day() {
    let app = spawn_app()
        .zone("Pacific/Apia")
        .at("2011-12-27T12:00:00-10:00")
        .await;
    let amy = app.user("amy");
    amy.check_in_at(&[
        "2011-12-27T12:00:00-10:00",
        "2011-12-29T12:00:00-10:00",
        "2011-12-31T12:00:00+14:00",
    ])
    .await;
    app.set("2012-01-02T12:00:00+14:00");
    let days = amy.calendar("2011-12").await;
    let states: Vec<(&str, &str)> = days[25..]
        .iter()
        .map(|day| (&day.date[8..], day.state.as_str()))
        .collect();
    // The 30th did not take place in Apia.
    let wanted = [
        ("26", "BEFORE_FIRST"),
        ("27", "CHECKED_IN"),
        ("28", "MISSED"),
        ("29", "CHECKED_IN"),
        ("31", "CHECKED_IN"),
    ];
    assert_eq!(states, wanted);
    assert_eq!(amy.streak().await.longest, 2);

    let states: Vec<String> = amy
        .calendar("2012-01")
        .await
        .into_iter()
        .map(|day| day.state)
        .collect();
    assert_eq!(states[..3], ["MISSED", "TODAY_OPEN", "FUTURE"]);
    assert_eq!(amy.calendar("2008-12").await[0].state, "BEFORE_FIRST");

    let range = "{ checkIns(from: \"2011-12-28\", to: \"2012-01-02\") { date kind } }";
    let checked_in = amy.data(range, json!({})).await["checkIns"].clone();
    assert_eq!(
        checked_in,
        json!([{ "date": "2011-12-29", "kind": "NORMAL" }, { "date": "2011-12-31", "kind": "NORMAL" }])
    );
}

/// Two nodes whose clocks differ: the day that one of them has begun is not undone by the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_back_over_midnight_pays_nothing_twice() {
    let app = spawn_app().at("2027-03-02T00:00:01Z").await;
    let amy = app.user("amy");
    let first = amy.check_in().await;
    app.set("2027-03-01T23:59:59Z");
    let again = amy.check_in().await;
    assert_eq!(
        (again.outcome.as_str(), again.date.as_str()),
        ("ALREADY_CHECKED_IN", "2027-03-02")
    );
    assert_eq!(again.wallet, first.wallet);
}

/// The keys that match `pattern` and have no TTL, without their numbers.
async fn kept_for_ever(app: &TestApp) -> Vec<String> {
    let without_ttl = app.ttls("*").await.into_iter().filter(|(_, ttl)| *ttl < 0);
    let mut names: Vec<String> = without_ttl
        .map(|(key, _)| key.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
        .filter(|key| key != "tb:{0}:swept") // the keeper's own, whenever it comes by
        .collect();
    names.sort();
    names.dedup();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_that_should_expire_has_a_ttl_after_every_kind_of_write() {
    let app = spawn_app()
        .with(|settings| {
            settings.checkin.points_board = "points".into();
            settings.checkin.count_board = "count".into();
            settings.checkin.milestone = vec![tallyboard::config::Milestone {
                streak: 2,
                points: 5,
                make_up_cards: 0,
            }];
            settings.board[0]
                .periods
                .retain(|period| *period != tallyboard::day::Period::AllTime);
            settings.board.push(tallyboard::config::Board {
                id: "count".into(),
                ..settings.board[0].clone()
            });
        })
        .at("2027-03-01T08:00:00Z")
        .await;
    let amy = app.user("amy");
    let mut wanted = vec![
        "tb:meta",
        "tb:{0}:generation",
        "tb:{0}:record:",
        "tb:{0}:row-of:",
        "tb:{0}:user-of:",
    ];
    app.service().grant("amy", 2, Some("key")).await;
    app.service().adjust("amy", 2, None).await;
    assert_eq!(kept_for_ever(&app).await, wanted, "after the wallet");
    wanted.insert(1, "tb:{0}:board-version:count");
    wanted.insert(2, "tb:{0}:board-version:points");
    amy.check_in().await;
    assert_eq!(kept_for_ever(&app).await, wanted, "after a check-in");
    app.set("2027-03-03T08:00:00Z");
    assert_eq!(amy.make_up("2027-03-02").await.outcome, "MADE_UP");
    assert_eq!(kept_for_ever(&app).await, wanted, "after a make-up");
    let file = app.dir.path().join("days.csv");
    std::fs::write(&file, "user,date\namy,2026-12-31\n").unwrap();
    tallyboard::import::check_ins::import(&app.running().app, &file)
        .await
        .unwrap();
    assert_eq!(kept_for_ever(&app).await, wanted, "after an import");
    app.service().score("points", "bob", 5).await;
    amy.data(
        "mutation { heartbeat(room: \"lobby\") { onlineCount } }",
        json!({}),
    )
    .await;
    assert_eq!(kept_for_ever(&app).await, wanted, "after a score and a heartbeat");
}

/// A record as an older writer may have left it, the first check-in a date.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_first_check_in_is_a_date_goes_on_as_any_other() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-03-01T08:00:00Z")
            .await;
        let amy = app.user("amy");
        amy.check_in_at(&["2027-03-01T08:00:00Z", "2027-03-02T08:00:00Z"])
            .await;
        let mut redis = app.redis().await;
        let (key, _) = app.ttls("*:record:*").await.remove(0);
        let stored: Vec<String> = redis::cmd("HGETALL")
            .arg(&key)
            .query_async(&mut redis)
            .await
            .unwrap();
        assert_eq!(stored[1], "-1 20879 2 2 2 10 0 20 0");
        let dated = stored[1].replacen("-1", "20878", 1);
        let mut set = redis::cmd("HSET");
        set.arg(&key).arg(&stored[0]).arg(&dated);
        set.exec_async(&mut redis).await.unwrap();
        assert_eq!(amy.check_in().await.outcome, "ALREADY_CHECKED_IN");
        app.service().adjust("amy", 5, None).await;
        set.exec_async(&mut redis).await.unwrap();

        app.set("2027-03-03T08:00:00Z");
        let receipt = amy.check_in().await;
        assert_eq!((receipt.streak.current, receipt.streak.total), (3, 3));
        assert_eq!(receipt.wallet.points, 30);
        let march = amy.calendar("2027-03").await;
        assert_eq!(
            (
                march[0].state.as_str(),
                amy.calendar("2027-02").await[27].state.as_str()
            ),
            ("CHECKED_IN", "BEFORE_FIRST")
        );
        let stored: Vec<String> = redis::cmd("HVALS")
            .arg(&key)
            .query_async(&mut redis)
            .await
            .unwrap();
        assert_eq!(stored, ["-2 20880 3 3 3 10 0 30 0"]);
    }
}
