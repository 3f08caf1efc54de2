//! Streaks over time: which days are in a row, how a past day stood, and what stays when years leave.

use serde_json::json;

use crate::harness::*;

const NOON: &str = "T12:00:00Z";

/// Checks `user` in at noon on each of these dates, and answers with the current streak each time.
async fn on_dates(app: &TestApp, user: &str, dates: &[&str]) -> Vec<u32> {
    let mut streaks = Vec::new();
    for date in dates {
        app.set(&format!("{date}{NOON}"));
        streaks.push(app.user(user).check_in().await.streak.current);
    }
    streaks
}

async fn import(app: &TestApp, rows: impl Iterator<Item = (String, String)>) {
    let lines: String = rows.map(|(user, date)| format!("{user},{date}\n")).collect();
    let file = app.dir.path().join("days.csv");
    std::fs::write(&file, format!("user,date\n{lines}")).unwrap();
    let done = tallyboard::import::check_ins::import(&app.running().app, &file).await;
    assert_eq!(done.unwrap().rejected, 0);
}

fn days(user: &str, from: &str, to: &str) -> impl Iterator<Item = (String, String)> {
    let (user, to) = (user.to_owned(), date(to));
    date(from)
        .iter_days()
        .take_while(move |day| *day <= to)
        .map(move |day| (user.clone(), day.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streak_grows_over_a_months_end_breaks_at_a_gap_and_goes_by_days_not_hours() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2026-11-01T12:00:00Z")
            .await;
        assert_eq!(on_dates(&app, "amy", &["2026-11-30", "2026-12-01"]).await, [1, 2]);
        assert_eq!(on_dates(&app, "bob", &["2026-11-30", "2026-12-02"]).await, [1, 1]);
        // Monday, Wednesday, Friday.
        let every_other = ["2026-12-07", "2026-12-09", "2026-12-11"];
        assert_eq!(on_dates(&app, "cid", &every_other).await, [1, 1, 1]);
        assert_eq!(app.user("cid").streak().await.longest, 1);

        app.user("dee")
            .check_in_at(&["2026-12-14T07:00:00Z", "2026-12-15T06:00:00Z"])
            .await;
        assert_eq!(app.user("dee").streak().await.current, 2, "23 hours later");
        app.user("eve")
            .check_in_at(&["2026-12-16T00:00:00Z", "2026-12-17T23:59:59Z"])
            .await;
        assert_eq!(app.user("eve").streak().await.current, 2, "48 hours later");

        app.set("2026-12-18T23:59:59Z");
        let open = app.user("eve").streak().await;
        assert_eq!(
            (open.current, open.at_risk, open.checked_in_today),
            (2, true, false)
        );
        assert_eq!(open.ends_at.as_deref(), Some("2026-12-19T00:00:00+00:00"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_400_days_is_400_and_still_is_when_its_first_year_is_gone() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.checkin.keep_years = 1)
            .at("2027-12-31T12:00:00Z")
            .await;
        import(&app, days("amy", "2026-11-28", "2027-12-31")).await;
        let amy = app.user("amy");
        assert_eq!(amy.streak().await.current, 399);
        app.set("2028-01-01T00:00:01Z");
        let receipt = amy.check_in().await;
        assert_eq!(
            (receipt.outcome.as_str(), receipt.streak.current),
            ("CHECKED_IN", 400)
        );

        // 2026 is no longer kept since the year has turned: its rows leave, the streak stays.
        app.look_after().await;
        assert_eq!(app.ttls("*:year:2026:*").await, []);
        assert_eq!(app.ttls("*:year:2027:*").await.len(), 1);
        let streak = amy.streak().await;
        assert_eq!((streak.current, streak.longest, streak.total), (400, 400, 400));
        assert_eq!(amy.streak_on("2027-12-31").await.current, 399);
        assert_eq!(
            amy.streak_on("2027-01-01").await.current,
            35,
            "the run began before the kept years"
        );
        // The year that is gone is unknown from the first check-in on, and nobody takes that for a year without any.
        assert_eq!(amy.kinds_if_known("2026-12-31", "2027-01-02").await, None);
        assert_eq!(amy.kinds_if_known("2026-11-01", "2026-11-27").await, Some(vec![]));
        assert_eq!(amy.known_since().await.as_deref(), Some("2027-01-01"));
        assert_eq!(amy.kinds("2027-01-01", "2027-01-02").await.len(), 2);
        let states = |days: Vec<Day>| days.into_iter().map(|day| day.state).collect::<Vec<_>>();
        assert_eq!(states(amy.calendar("2026-12").await), ["UNKNOWN"; 31]);
        let november = states(amy.calendar("2026-11").await);
        assert_eq!(november[26..], ["BEFORE_FIRST", "UNKNOWN", "UNKNOWN", "UNKNOWN"]);
        assert_eq!(amy.streak_if_known("2026-12-31").await, None);
        assert_eq!(amy.streak_if_known("2026-11-28").await, None, "the first itself");
        assert_eq!(
            amy.streak_on("2026-11-27").await.total,
            0,
            "before the first there is nothing"
        );
        assert_eq!(amy.make_up("2026-12-31").await.outcome, "OUTSIDE_WINDOW");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_day_stands_as_it_stood_then_without_the_grace() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .at("2027-12-01T12:00:00Z")
            .await;
        let amy = app.user("amy");
        let dates = [
            "2027-12-29",
            "2027-12-30",
            "2027-12-31",
            "2028-01-01",
            "2028-01-03",
        ];
        on_dates(&app, "amy", &dates).await;
        for (on, current, longest, total, last) in [
            ("2027-12-28", 0, 0, 0, None),
            ("2027-12-29", 1, 1, 1, Some("2027-12-29")),
            ("2028-01-01", 4, 4, 4, Some("2028-01-01")),
            ("2028-01-02", 0, 4, 4, Some("2028-01-01")),
            ("2028-01-03", 1, 4, 5, Some("2028-01-03")),
        ] {
            let streak = amy.streak_on(on).await;
            let shown = (
                streak.current,
                streak.longest,
                streak.total,
                streak.last_date.as_deref(),
            );
            assert_eq!(shown, (current, longest, total, last), "{on}");
            assert_eq!(
                (streak.checked_in_today, streak.at_risk),
                (current > 0, false),
                "{on}"
            );
        }
        let earlier = amy.streak_on("2028-01-01").await;
        assert_eq!(earlier.ends_at.as_deref(), Some("2028-01-03T00:00:00+00:00"));
        assert_eq!(earlier.next_reward.map(|reward| reward.points), Some(10));

        // Today is as `streak` without a date: with the grace.
        app.set("2028-01-04T08:00:00Z");
        assert_eq!(amy.streak_on("2028-01-04").await, amy.streak().await);
        assert!(amy.streak_on("2028-01-04").await.at_risk);
        for (on, code) in [("2028-01-05", "BAD_USER_INPUT"), ("2028-02-30", "BAD_USER_INPUT")] {
            let query = format!("{{ streak(on: \"{on}\") {{ current }} }}");
            assert_eq!(amy.refusal(&query, json!({})).await.0, code, "{on}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_streak_that_hangs_on_a_year_that_is_gone_says_that_it_is_at_least_so_long() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|settings| settings.checkin.keep_years = 0)
            .at("2026-12-31T12:00:00Z")
            .await;
        import(&app, days("amy", "2026-12-01", "2026-12-31")).await;
        let dates = ["2027-01-01", "2027-01-02", "2027-01-20", "2027-06-01"];
        on_dates(&app, "amy", &dates).await;
        let amy = app.user("amy");
        for (on, current, longest, total, exact) in [
            ("2027-01-01", 1, 1, 32, false), // 32 in truth
            ("2027-01-02", 2, 2, 33, false),
            ("2027-01-03", 0, 33, 33, true), // the longest of all was before, and the record knows it
            ("2027-01-20", 1, 33, 34, true),
            ("2027-06-01", 1, 33, 35, true),
        ] {
            let streak = amy.streak_on(on).await;
            assert_eq!(
                (streak.current, streak.longest, streak.total, streak.exact),
                (current, longest, total, exact),
                "{on}"
            );
        }
        assert!(amy.streak().await.exact);
    }
}
