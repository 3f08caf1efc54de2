//! Which runs become one, and what that earns.

use tallyboard::config::Settings;

use super::{NOTHING, in_march, milestone};
use crate::harness::*;

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
