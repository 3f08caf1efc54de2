//! Making missed days up: which can be, what it costs, what it mends and what it leaves alone.

use futures::future::join_all;
use serde_json::{Value, json};
use tallyboard::config::{Board as Configured, Milestone, Settings};
use tallyboard::day::Period;
use tallyboard::leaderboard::TieBreak;

use crate::harness::*;

const NOTHING: Reward = Reward {
    points: 0,
    make_up_cards: 0,
};

fn milestone(streak: u32, points: i64, make_up_cards: u32) -> Milestone {
    Milestone {
        streak,
        points,
        make_up_cards,
    }
}

/// Checks `user` in at noon on each of these days of March 2027.
async fn in_march(app: &TestApp, user: &str, days: impl IntoIterator<Item = u32>) {
    for day in days {
        app.set(&format!("2027-03-{day:02}T12:00:00Z"));
        assert_eq!(app.user(user).check_in().await.outcome, "CHECKED_IN");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_made_up_joins_the_runs_on_both_sides_for_one_card() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let amy = app.user("amy");
        in_march(&app, "amy", [1, 2, 3, 4, 6]).await;
        app.service().grant("amy", 2, None).await;
        let before = amy.wallet().await;
        assert_eq!((amy.streak().await.current, amy.streak().await.longest), (1, 4));
        let fifth = |days: Vec<Day>| (days[4].state.clone(), days[4].can_make_up);
        assert_eq!(fifth(amy.calendar("2027-03").await), ("MISSED".into(), true));

        let made_up = amy.make_up("2027-03-05").await;
        assert_eq!(
            (made_up.outcome.as_str(), made_up.date.as_str(), made_up.reward),
            ("MADE_UP", "2027-03-05", NOTHING)
        );
        let streak = &made_up.streak;
        assert_eq!((streak.current, streak.longest, streak.total), (6, 6, 6));
        assert!(streak.checked_in_today && !streak.at_risk);
        let left = Reward {
            make_up_cards: 1,
            ..before
        };
        assert_eq!((made_up.wallet, amy.wallet().await), (left, left));

        let again = amy.make_up("2027-03-05").await;
        assert_eq!(
            (again.outcome.as_str(), again.reward, again.wallet),
            ("ALREADY_CHECKED_IN", NOTHING, left)
        );
        assert_eq!(again.streak, amy.streak().await);
        assert_eq!(fifth(amy.calendar("2027-03").await), ("MADE_UP".into(), false));
        let kinds = amy.kinds("2027-03-04", "2027-03-06").await;
        let kinds: Vec<_> = kinds
            .iter()
            .map(|(date, kind)| (&date[8..], kind.as_str()))
            .collect();
        assert_eq!(kinds, [("04", "NORMAL"), ("05", "MAKE_UP"), ("06", "NORMAL")]);
        for (on, current) in [("2027-03-04", 4), ("2027-03-05", 5), ("2027-03-06", 6)] {
            assert_eq!(
                amy.streak_on(on).await.current,
                current,
                "what was made up since counts"
            );
        }
        // Today's check-in, said again, is as it was first paid; and the count goes on from six.
        let repeated = amy.check_in().await;
        assert_eq!(
            (repeated.outcome.as_str(), repeated.reward.points),
            ("ALREADY_CHECKED_IN", 10)
        );
        app.set("2027-03-07T12:00:00Z");
        let seventh = amy.check_in().await;
        assert_eq!((seventh.streak.current, seventh.reward.points), (7, 150));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_spends_no_card_and_the_first_reason_that_applies_is_given() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.makeup.window_days = 3)
            .at("2027-03-02T12:00:00Z")
            .await;
        let amy = app.user("amy");
        // Nobody has written anything: not even a row is there.
        assert_eq!(amy.make_up("2027-03-01").await.outcome, "OUTSIDE_WINDOW");
        assert_eq!(amy.make_up("2027-03-02").await.outcome, "NOT_A_PAST_DAY");
        in_march(&app, "amy", [5, 10]).await;
        let refusals = async |wallet: Reward| {
            for (day, outcome) in [
                ("2027-03-10", "ALREADY_CHECKED_IN"), // and today
                ("2027-03-05", "ALREADY_CHECKED_IN"), // and out of the window
                ("2027-03-11", "NOT_A_PAST_DAY"),
                ("2028-03-11", "NOT_A_PAST_DAY"),
                ("2027-03-06", "OUTSIDE_WINDOW"), // four days back
                ("2027-03-04", "OUTSIDE_WINDOW"), // before the first
                ("1999-12-31", "OUTSIDE_WINDOW"), // of a year that is not kept
            ] {
                let refused = amy.make_up(day).await;
                assert_eq!(
                    (
                        refused.outcome.as_str(),
                        refused.date.as_str(),
                        refused.reward,
                        refused.wallet
                    ),
                    (outcome, day, NOTHING, wallet)
                );
                assert_eq!(refused.streak, amy.streak().await);
            }
        };
        let without = amy.wallet().await;
        refusals(without).await;
        let refused = amy.make_up("2027-03-07").await;
        assert_eq!((refused.outcome.as_str(), refused.wallet), ("NO_CARDS", without));
        assert!(!amy.calendar("2027-03").await.iter().any(|day| day.can_make_up));

        app.service().grant("amy", 1, None).await;
        let with = Reward {
            make_up_cards: 1,
            ..without
        };
        refusals(with).await;
        let can: Vec<String> = amy
            .calendar("2027-03")
            .await
            .into_iter()
            .filter(|day| day.can_make_up)
            .map(|day| day.date)
            .collect();
        assert_eq!(can, ["2027-03-07", "2027-03-08", "2027-03-09"]);
        // A day before the first check-in, within the window.
        app.service().grant("new", 1, None).await;
        in_march(&app, "new", [10]).await;
        assert_eq!(
            app.user("new").make_up("2027-03-09").await.outcome,
            "OUTSIDE_WINDOW"
        );
        assert!(
            !app.user("new")
                .calendar("2027-03")
                .await
                .iter()
                .any(|day| day.can_make_up)
        );

        // Today, still open.
        app.set("2027-03-11T12:00:00Z");
        assert_eq!(amy.make_up("2027-03-11").await.outcome, "NOT_A_PAST_DAY");
        assert_eq!(
            amy.make_up("2027-03-08").await.outcome,
            "MADE_UP",
            "three days back"
        );
        assert_eq!(amy.make_up("2027-03-09").await.outcome, "NO_CARDS");
        for bad in ["2027-02-29", "yesterday"] {
            let query = format!("mutation {{ makeUpCheckIn(date: \"{bad}\") {{ outcome }} }}");
            assert_eq!(amy.refusal(&query, json!({})).await.0, "BAD_USER_INPUT");
        }
        let other = "mutation { makeUpCheckIn(date: \"2027-03-09\", userId: \"amy\") { outcome } }";
        assert_eq!(app.user("zed").refusal(other, json!({})).await.0, "FORBIDDEN");
        assert_eq!(
            app.service().data(other, json!({})).await["makeUpCheckIn"]["outcome"],
            "NO_CARDS"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_day_of_a_year_can_be_made_up_in_the_next() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-12-30T12:00:00Z")
            .await;
        let amy = app.user("amy");
        amy.check_in_at(&[
            "2027-12-30T12:00:00Z",
            "2028-01-01T12:00:00Z",
            "2028-01-02T12:00:00Z",
        ])
        .await;
        app.service().grant("amy", 1, None).await;
        let made_up = amy.make_up("2027-12-31").await;
        assert_eq!((made_up.outcome.as_str(), made_up.streak.current), ("MADE_UP", 4));
        let kinds = amy.kinds("2027-12-01", "2028-01-31").await;
        assert_eq!(
            kinds
                .iter()
                .map(|(_, kind)| kind == "MAKE_UP")
                .collect::<Vec<_>>(),
            [false, true, false, false]
        );
        assert_eq!(amy.calendar("2027-12").await[30].state, "MADE_UP");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_milestone_reached_through_a_make_up_is_paid_and_not_a_second_time() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s: &mut Settings| {
                s.checkin.points_board = "points".into();
                s.checkin.milestone = vec![
                    milestone(3, 30, 1),
                    milestone(5, 500, 0),
                    milestone(6, 600, 1),
                    milestone(7, 70, 0),
                    milestone(8, 8_000, 0),
                ];
            })
            .await;
        let amy = app.user("amy");
        // 3 is paid on the third; the gap hides 5 and 6.
        in_march(&app, "amy", [1, 2, 3, 4, 6, 7]).await;
        let before = amy.wallet().await;
        assert_eq!(
            before,
            Reward {
                points: 4 * 10 + 30 + 2 * 10,
                make_up_cards: 1
            }
        );
        let made_up = amy.make_up("2027-03-05").await;
        // 4 is the longest that it joins, 7 what it makes: 5, 6 and 7 are paid, no cycle points, no weekly bonus.
        assert_eq!(
            made_up.reward,
            Reward {
                points: 1_170,
                make_up_cards: 1
            }
        );
        assert_eq!(
            made_up.wallet,
            Reward {
                points: before.points + 1_170,
                make_up_cards: 1
            }
        );
        assert_eq!(amy.make_up("2027-03-05").await.reward, NOTHING);
        // Points are earned today.
        assert_eq!(amy.top("points", "DAY", 9).await.order(), [("amy", 1_180)]);
        assert_eq!(amy.top("points", "ALL_TIME", 9).await.order(), [("amy", 1_260)]);
        app.set("2027-03-08T12:00:00Z");
        let eighth = amy.check_in().await;
        assert_eq!((eighth.streak.current, eighth.reward.points), (8, 8_010));
        assert_eq!(amy.top("points", "ALL_TIME", 9).await.order(), [("amy", 9_270)]);

        // A new run earns them anew.
        app.service().grant("zed", 1, None).await;
        in_march(&app, "zed", [10, 11, 13]).await;
        assert_eq!(app.user("zed").make_up("2027-03-12").await.reward.points, 30);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_card_and_three_missed_days_the_streak_stays_broken() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let amy = app.user("amy");
        in_march(&app, "amy", [1, 2, 3, 4, 8]).await;
        app.service().grant("amy", 1, None).await;
        let made_up = amy.make_up("2027-03-06").await;
        assert_eq!(
            (made_up.outcome.as_str(), made_up.wallet.make_up_cards),
            ("MADE_UP", 0)
        );
        assert_eq!(
            (
                made_up.streak.current,
                made_up.streak.longest,
                made_up.streak.total
            ),
            (1, 4, 6)
        );
        for day in ["2027-03-05", "2027-03-07"] {
            assert_eq!(amy.make_up(day).await.outcome, "NO_CARDS");
        }
        assert_eq!(amy.check_in().await.streak.current, 1);
        // With two more it is one run; the older gap first.
        app.service().grant("amy", 2, None).await;
        let older = amy.make_up("2027-03-05").await.streak;
        assert_eq!(
            (older.current, older.longest),
            (1, 6),
            "older runs make the longest longer only"
        );
        let newer = amy.make_up("2027-03-07").await.streak;
        assert_eq!((newer.current, newer.longest, newer.total), (8, 8, 8));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn yesterday_made_up_while_today_is_open_puts_the_streak_at_risk_and_saves_it() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let amy = app.user("amy");
        in_march(&app, "amy", [1, 2, 3]).await;
        app.service().grant("amy", 2, None).await;
        app.set("2027-03-06T12:00:00Z");
        assert_eq!(amy.streak().await.current, 0);
        // The day before yesterday alone brings nothing back.
        let streak = amy.make_up("2027-03-04").await.streak;
        assert_eq!((streak.current, streak.longest, streak.at_risk), (0, 4, false));
        let streak = amy.make_up("2027-03-05").await.streak;
        assert_eq!(
            (streak.current, streak.at_risk, streak.checked_in_today),
            (5, true, false)
        );
        assert_eq!(streak.ends_at.as_deref(), Some("2027-03-07T00:00:00+00:00"));
        assert_eq!(streak.last_date.as_deref(), Some("2027-03-05"));
        let receipt = amy.check_in().await;
        assert_eq!(
            (receipt.outcome.as_str(), receipt.streak.current),
            ("CHECKED_IN", 6)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_run_is_rejoined_whole_though_its_first_year_is_gone() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.checkin.keep_years = 0)
            .at("2027-12-27T12:00:00Z")
            .await;
        let amy = app.user("amy");
        for day in [
            "2027-12-27",
            "2027-12-28",
            "2027-12-29",
            "2027-12-30",
            "2027-12-31",
            "2028-01-01",
            "2028-01-03",
            "2028-01-05",
        ] {
            amy.check_in_at(&[&format!("{day}T12:00:00Z")]).await;
        }
        app.service().grant("amy", 3, None).await;
        assert_eq!(amy.make_up("2027-12-26").await.outcome, "OUTSIDE_WINDOW");
        app.service().adjust("amy", 5, None).await; // which keeps what the record remembers
        let streak = amy.make_up("2028-01-02").await.streak;
        assert_eq!((streak.current, streak.longest, streak.total), (1, 8, 9));
        let streak = amy.make_up("2028-01-04").await.streak;
        assert_eq!((streak.current, streak.longest, streak.total), (10, 10, 10));
    }
}

fn fed(settings: &mut Settings) {
    settings.checkin.count_board = "count".into();
    settings.checkin.points_board = "points".into();
    settings.checkin.milestone = vec![milestone(4, 100, 0)];
    settings.board[0].max_points = 60;
    settings.board.push(Configured {
        id: "count".into(),
        tie_break: TieBreak::None,
        windows: vec![7],
        half_life_hours: 24.0,
        ..Default::default()
    });
    assert_eq!(settings.board[1].periods[0], Period::Day);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_make_up_counts_for_its_day_where_that_is_still_open_and_leaves_the_rest_as_it_is() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).with(fed).await;
        let amy = app.user("amy");
        let counted = async |span: &Value, on: &str| amy.board("count", span, Some(date(on))).await.order();
        // Sunday the 7th was missed; the 8th is a Monday.
        in_march(&app, "amy", [4, 5, 6, 8]).await;
        app.service().grant("amy", 1, None).await;
        let window = amy.board("count", &last_days(7), None).await;
        let hot = amy.place("count", &heat(), "amy").await.unwrap().points;
        let active = app.active("2027-03-07").await;

        let made_up = amy.make_up("2027-03-07").await;
        assert_eq!((made_up.outcome.as_str(), made_up.streak.current), ("MADE_UP", 5));
        let amys = |points: i64| vec![("amy".to_owned(), points)];
        assert_eq!(counted(&period("DAY"), "2027-03-07").await, [], "a closed day");
        assert_eq!(
            counted(&period("WEEK"), "2027-03-07").await,
            amys(3),
            "a closed week"
        );
        assert_eq!(
            counted(&period("DAY"), "2027-03-08").await,
            amys(1),
            "another day"
        );
        assert_eq!(
            counted(&period("WEEK"), "2027-03-08").await,
            amys(1),
            "another week"
        );
        assert_eq!(counted(&period("MONTH"), "2027-03-08").await, amys(5));
        assert_eq!(amy.top("count", "ALL_TIME", 9).await.order(), [("amy", 5)]);
        assert_eq!(amy.board("count", &last_days(7), None).await, window);
        assert_eq!(amy.place("count", &heat(), "amy").await.unwrap().points, hot);
        assert_eq!(app.checked_in("2027-03-07").await, (1, 1));
        assert_eq!(app.active("2027-03-07").await, active, "nobody was there");
        // The points board is full, which holds nothing up: the wallet gets it all.
        assert_eq!((made_up.reward.points, made_up.wallet.points), (100, 140));
        assert_eq!(amy.top("points", "ALL_TIME", 9).await.order(), [("amy", 60)]);
        app.set("2027-03-09T12:00:00Z");
        let receipt = amy.check_in().await;
        assert_eq!(
            (receipt.outcome.as_str(), receipt.wallet.points),
            ("CHECKED_IN", 150)
        );
    }
}

impl TestApp {
    /// Bits and counter of a day's check-ins, over all partitions.
    async fn checked_in(&self, date: &str) -> (u64, u64) {
        (
            self.bits(&format!("*:day:{date}:*")).await,
            self.sum(&format!("*:day-count:{date}")).await,
        )
    }

    /// Bits and counter of a day's activity.
    async fn active(&self, date: &str) -> (u64, u64) {
        (
            self.bits(&format!("*:active:{date}:*")).await,
            self.sum(&format!("*:active-count:{date}")).await,
        )
    }

    async fn bits(&self, pattern: &str) -> u64 {
        let mut redis = self.redis().await;
        let mut bits = 0;
        for (key, _) in self.ttls(pattern).await {
            let count: u64 = redis::cmd("BITCOUNT")
                .arg(key)
                .query_async(&mut redis)
                .await
                .unwrap();
            bits += count;
        }
        bits
    }

    async fn sum(&self, pattern: &str) -> u64 {
        let mut redis = self.redis().await;
        let mut sum = 0;
        for (key, _) in self.ttls(pattern).await {
            let count: u64 = redis::cmd("GET").arg(key).query_async(&mut redis).await.unwrap();
            sum += count;
        }
        sum
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_parallel_make_ups_and_a_hundred_in_one_document_are_one() {
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let (amy, bob) = (app.user("amy"), app.user("bob"));
        in_march(&app, "amy", [1, 3]).await;
        app.user("bob").check_in().await;
        for user in ["amy", "bob"] {
            app.service().grant(user, 60, None).await;
        }
        let (made_up, granted) = tokio::join!(
            join_all((0..50).map(|_| amy.make_up("2027-03-02"))),
            join_all((0..10).map(|_| async { app.service().adjust("amy", 1, None).await })),
        );
        let fresh = made_up.iter().filter(|receipt| receipt.outcome == "MADE_UP");
        assert_eq!(fresh.count(), 1);
        assert!(
            made_up
                .iter()
                .all(|receipt| ["MADE_UP", "ALREADY_CHECKED_IN"].contains(&receipt.outcome.as_str()))
        );
        assert!(granted.iter().all(|change| change.outcome == "APPLIED"));
        assert_eq!(
            amy.wallet().await,
            Reward {
                points: 30,
                make_up_cards: 59
            }
        );
        assert_eq!(amy.streak().await.current, 3);

        app.set("2027-03-05T12:00:00Z");
        let aliases: Vec<String> = (0..100)
            .map(|i| {
                format!("a{i}: makeUpCheckIn(date: \"2027-03-04\") {{ outcome wallet {{ makeUpCards }} }}")
            })
            .collect();
        let data = bob
            .data(&format!("mutation {{ {} }}", aliases.join(" ")), json!({}))
            .await;
        let payloads: Vec<&Value> = data.as_object().unwrap().values().collect();
        let fresh = payloads.iter().filter(|payload| payload["outcome"] == "MADE_UP");
        assert_eq!(fresh.count(), 1);
        assert!(
            payloads
                .iter()
                .all(|payload| payload["wallet"]["makeUpCards"] == 59)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_that_the_zone_skipped_cannot_be_made_up_and_is_not_missed() {
    let app = spawn_app()
        .zone("Pacific/Apia")
        .with(|s| s.makeup.window_days = 2)
        .at("2011-12-28T12:00:00-10:00")
        .await;
    let amy = app.user("amy");
    amy.check_in_at(&["2011-12-28T12:00:00-10:00", "2011-12-31T12:00:00+14:00"])
        .await;
    app.service().grant("amy", 2, None).await;
    app.set("2012-01-01T12:00:00+14:00");
    amy.check_in().await;
    for query in [
        "mutation { makeUpCheckIn(date: \"2011-12-30\") { outcome } }",
        "{ streak(on: \"2011-12-30\") { current } }",
    ] {
        let (code, message) = amy.refusal(query, json!({})).await;
        assert_eq!(code, "BAD_USER_INPUT");
        assert!(message.contains("Pacific/Apia"), "{message}");
    }
    // Two days back by the zone's calendar is the 29th.
    let made_up = amy.make_up("2011-12-29").await;
    assert_eq!((made_up.outcome.as_str(), made_up.streak.current), ("MADE_UP", 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_made_up_where_the_window_is_closed() {
    let app = spawn_app().with(|s| s.makeup.window_days = 0).await;
    in_march(&app, "amy", [1, 3]).await;
    app.service().grant("amy", 1, None).await;
    assert_eq!(
        app.user("amy").make_up("2027-03-02").await.outcome,
        "OUTSIDE_WINDOW"
    );
}
