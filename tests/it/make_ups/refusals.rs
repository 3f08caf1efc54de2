//! What cannot be made up, and that a refusal costs nothing.

use serde_json::json;

use super::{NOTHING, in_march};
use crate::harness::*;

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
