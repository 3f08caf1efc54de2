//! How long check-ins are kept: what leaves when, what is claimed after the settings were changed, and upkeep that fails.

use chrono::{Days, TimeDelta};
use serde_json::json;
use tallyboard::config::Settings;
use tallyboard::import::{self, Summary};

use crate::harness::*;

const NOON: &str = "T12:00:00Z";

/// Check-ins of amy from `from` to `to`, by a file.
async fn import_days(app: &TestApp, from: &str, to: &str) -> Summary {
    let last = date(to);
    let days = date(from).iter_days().take_while(|day| *day <= last);
    let lines: String = days.map(|day| format!("amy,{day}\n")).collect();
    let file = app.dir.path().join("days.csv");
    std::fs::write(&file, format!("user,date\n{lines}")).unwrap();
    import::check_ins::import(&app.running().app, &file)
        .await
        .unwrap()
}

async fn states(app: &TestApp, month: &str) -> Vec<String> {
    let days = app.user("amy").calendar(month).await;
    days.into_iter().map(|day| day.state).collect()
}

async fn keys(app: &TestApp, pattern: &str) -> Vec<String> {
    app.ttls(pattern).await.into_iter().map(|(key, _)| key).collect()
}

fn keep_years(years: u32) -> impl FnOnce(&mut Settings) {
    move |settings| settings.checkin.keep_years = years
}

#[tokio::test(flavor = "multi_thread")]
async fn days_and_their_counters_leave_when_their_time_is_over_and_not_before() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.analytics.keep_days = 3)
            .at("2027-03-01T12:00:00Z")
            .await;
        let first = date("2027-03-01");
        for day in 0..8 {
            let today = first + Days::new(day);
            app.set(&format!("{today}{NOON}"));
            app.user("amy").check_in().await;
            app.look_after().await;
            let kept: Vec<String> = (day.saturating_sub(3)..=day)
                .map(|day| (first + Days::new(day)).to_string())
                .collect();
            for what in ["day", "active", "day-count", "active-count"] {
                let keys = app.ttls(&format!("*:{what}:2*")).await;
                let dates: Vec<String> = keys
                    .iter()
                    .map(|(key, _)| {
                        key.split(':')
                            .find(|part| part.starts_with("2027-"))
                            .unwrap()
                            .to_owned()
                    })
                    .collect();
                assert_eq!(dates, kept, "{what} on {today}");
            }
        }
        assert_eq!(app.user("amy").streak().await.current, 8);
    }
}

/// Where more years are kept than before and then fewer again, what came in between leaves too.
#[tokio::test(flavor = "multi_thread")]
async fn years_leave_also_after_the_setting_was_changed_back_and_forth() {
    let app = spawn_app()
        .with(|s| s.checkin.keep_years = 0)
        .at("2028-03-01T12:00:00Z")
        .await;
    app.user("amy").check_in().await;
    app.look_after().await;
    let app = app.restarted(|s| s.checkin.keep_years = 2).await;
    app.look_after().await;
    assert_eq!(import_days(&app, "2026-12-31", "2027-01-02").await.rejected, 0);
    app.look_after().await;
    assert_eq!(app.ttls("*:year:*").await.len(), 3);
    assert_eq!(app.user("amy").kinds("2026-12-01", "2027-01-31").await.len(), 3);
    let app = app.restarted(|s| s.checkin.keep_years = 1).await;
    app.look_after().await;
    let years: Vec<String> = app
        .ttls("*:year:*")
        .await
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(years, ["tb:{0}:year:2027:0", "tb:{0}:year:2028:0"]);
    assert_eq!(app.user("amy").streak().await.total, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_setting_does_not_claim_what_has_left_and_keeps_from_then_on_what_is_there() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(keep_years(0))
            .at("2026-12-30T12:00:00Z")
            .await;
        app.user("amy")
            .check_in_at(&["2026-12-30T12:00:00Z", "2027-06-01T12:00:00Z"])
            .await;
        app.look_after().await;
        assert_eq!(keys(&app, "*:year:2026:*").await.len(), 0);
        let app = app.restarted(keep_years(2)).await;
        let amy = app.user("amy");
        // 2026 is gone, and not a year of missed days.
        assert_eq!(states(&app, "2026-12").await[29..], ["UNKNOWN", "UNKNOWN"]);
        assert_eq!(amy.kinds_if_known("2026-12-30", "2027-06-01").await, None);
        assert_eq!(amy.streak_if_known("2026-12-31").await, None);
        assert_eq!(amy.known_since().await.as_deref(), Some("2027-01-01"));
        assert_eq!(amy.kinds("2027-01-01", "2027-12-31").await.len(), 1);
        assert_eq!(states(&app, "2027-01").await[0], "MISSED");
        // What came before is not taken in a second time: it is counted in the total already.
        assert_eq!(import_days(&app, "2026-12-30", "2026-12-30").await.rejected, 1);
        assert_eq!(amy.streak().await.total, 2);

        // 2027 is kept as long as the new setting says, though nobody wrote into it since.
        let (_, ttl) = app.ttls("*:year:2027:*").await.remove(0);
        let until = (at("2030-01-02T00:00:00Z") - app.clock.now()).num_milliseconds();
        assert!((until - 60_000..=until).contains(&ttl), "{ttl} and {until}");
        app.set("2029-03-01T12:00:00Z");
        app.look_after().await;
        assert_eq!(amy.kinds("2027-01-01", "2027-12-31").await.len(), 1);
        app.set("2030-01-01T12:00:00Z");
        app.look_after().await;
        assert_eq!(keys(&app, "*:year:2027:*").await.len(), 0);
        assert_eq!(
            amy.known_since().await.as_deref(),
            Some("2027-06-02"),
            "the newest is the last"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_years_and_then_more_again_claim_nothing_that_was_taken_away_between() {
    let app = spawn_app().at("2027-03-01T12:00:00Z").await;
    assert_eq!(import_days(&app, "2026-11-01", "2026-11-30").await.applied, 30);
    app.user("amy").check_in().await;
    let app = app.restarted(keep_years(0)).await;
    app.look_after().await;
    let app = app.restarted(keep_years(5)).await;
    assert_eq!(states(&app, "2026-11").await, ["UNKNOWN"; 30]);
    assert_eq!(app.user("amy").known_since().await.as_deref(), Some("2027-01-01"));
    // The same settings again change nothing, and what is lost stays lost.
    let app = app.restarted(|_| {}).await;
    assert_eq!(app.user("amy").known_since().await.as_deref(), Some("2027-01-01"));
}

#[tokio::test(flavor = "multi_thread")]
async fn as_long_as_nothing_can_have_left_a_longer_setting_takes_older_history() {
    let app = spawn_app().with(keep_years(1)).at("2027-03-01T12:00:00Z").await;
    app.user("amy").check_in().await;
    assert_eq!(import_days(&app, "2020-05-01", "2020-05-01").await.rejected, 1);
    app.set("2027-12-31T12:00:00Z");
    let app = app.restarted(keep_years(8)).await;
    assert_eq!(import_days(&app, "2020-05-01", "2020-05-01").await.applied, 1);
    let amy = app.user("amy");
    assert_eq!(amy.kinds("2020-05-01", "2022-05-01").await.len(), 1);
    assert_eq!((amy.known_since().await, amy.streak().await.total), (None, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn days_that_have_left_are_not_claimed_by_a_longer_setting_and_those_that_are_there_stay() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.analytics.keep_days = 3)
            .at("2027-03-01T12:00:00Z")
            .await;
        for day in 1..=9 {
            app.user("amy")
                .check_in_at(&[&format!("2027-03-0{day}{NOON}")])
                .await;
        }
        app.look_after().await;
        let app = app.restarted(|s| s.analytics.keep_days = 30).await;
        let figures = |day: &str| format!("{{ dayStats(on: \"{day}\") {{ checkIns active }} }}");
        let (code, message) = app.analyst().refusal(&figures("2027-03-05"), json!({})).await;
        assert_eq!(code, "BAD_USER_INPUT");
        assert!(message.contains("begin 2027-03-06"), "{message}");
        app.set("2027-04-04T12:00:00Z");
        app.look_after().await;
        let stats = app.analyst().data(&figures("2027-03-06"), json!({})).await;
        assert_eq!(stats["dayStats"], json!({ "checkIns": 1, "active": 1 }));
        for pattern in [
            "*:day:2027-03-06:*",
            "*:day-count:2027-03-06",
            "*:active*:2027-03-06*",
        ] {
            for (key, ttl) in app.ttls(pattern).await {
                assert!(ttl > TimeDelta::days(27).num_milliseconds(), "{key}: {ttl}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_days_leave_with_their_year() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(keep_years(1))
            .at("2027-03-01T12:00:00Z")
            .await;
        let amy = app.user("amy");
        amy.check_in_at(&["2027-03-01T12:00:00Z", "2027-03-03T12:00:00Z"])
            .await;
        app.service().grant("amy", 1, None).await;
        assert_eq!(amy.make_up("2027-03-02").await.outcome, "MADE_UP");
        for (now, left) in [("2028-12-31", 1), ("2029-01-01", 0)] {
            app.set(&format!("{now}{NOON}"));
            app.look_after().await;
            for kind in ["year", "makeup"] {
                assert_eq!(
                    keys(&app, &format!("*:{kind}:2027:*")).await.len(),
                    left,
                    "{kind}, {now}"
                );
            }
        }
        assert_eq!(
            states(&app, "2027-03").await[..4],
            ["UNKNOWN", "UNKNOWN", "UNKNOWN", "MISSED"]
        );
    }
}

/// What stops one sweep must not stop another: not that of days, nor of other partitions, nor of boards.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_fails_ends_neither_the_others_nor_the_turn() {
    let app = spawn_app()
        .partitions(8)
        .with(keep_years(0))
        .with(|s| {
            s.analytics.keep_days = 3;
            s.retention.day_boards_days = 3;
        })
        .at("2027-12-30T12:00:00Z")
        .await;
    let keeper = app.only_keeper().await;
    let users: Vec<String> = (0..40).map(|i| format!("user-{i}")).collect();
    for user in &users {
        app.user(user).check_in().await;
        app.service().score("points", user, 1).await;
    }
    app.running().app.look_after(&keeper).await.unwrap();
    assert_eq!(keys(&app, "*:year:2027:*").await.len(), 8);
    let keyspace = app.running().app.keyspace.clone();
    let first = keyspace.partitions().next().unwrap();
    let mut spoil = redis::cmd("HSET");
    spoil
        .arg(keyspace.keys().generation(first))
        .arg("rows")
        .arg("many");
    spoil.exec_async(&mut app.redis().await).await.unwrap();

    app.set("2028-01-10T12:00:00Z");
    app.running().app.look_after(&keeper).await.unwrap();
    let spoilt = keyspace.keys().year(first, 2027, 0);
    assert_eq!(
        keys(&app, "*:year:2027:*").await,
        [spoilt],
        "the others' years are gone"
    );
    assert_eq!(keys(&app, "*:board:points:2027-12-30").await, [""; 0]);
}
