//! Runs that reach beyond the kept years: a make-up joins them whole.

use super::milestone;
use crate::harness::*;

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

/// Brings check-ins in that are not newer than `on`, on that day.
async fn import(app: &TestApp, on: &str, runs: &[(&str, &str)]) {
    app.set(&format!("{on}T12:00:00Z"));
    let days = runs.iter().flat_map(|(first, last)| {
        let last = date(last);
        date(first).iter_days().take_while(move |day| *day <= last)
    });
    let lines: String = days.map(|day| format!("amy,{day}\n")).collect();
    let file = app.dir.path().join("days.csv");
    std::fs::write(&file, format!("user,date\n{lines}")).unwrap();
    let done = tallyboard::import::check_ins::import(&app.running().app, &file).await;
    assert_eq!(done.unwrap().rejected, 0);
}

/// How many numbers the only user's record has: nine, and two for each run that is remembered.
async fn numbers_kept(app: &TestApp) -> usize {
    let mut redis = app.redis().await;
    let (key, _) = app.ttls("*:record:*").await.remove(0);
    let mut get = redis::cmd("HVALS");
    let kept: Vec<String> = get.arg(key).query_async(&mut redis).await.unwrap();
    assert_eq!(kept.len(), 1);
    kept[0].split(' ').count()
}

/// A long run ended, a short one after it too: the long one is not forgotten for the short one's sake.
struct Life {
    keep_years: u32,
    window_days: u32,
    /// What is imported, and when.
    imports: &'static [(&'static str, &'static [(&'static str, &'static str)])],
    /// The days with a check-in after it.
    then: &'static [&'static str],
    /// The gap right after the long run.
    gap: &'static str,
    /// How long the run is that making it up brings about.
    joined: u32,
    /// More than the kept part of the long run, less than all of it.
    reached_before: u32,
}

const LIVES: [Life; 4] = [
    Life {
        keep_years: 0,
        window_days: 12,
        imports: &[
            ("2026-12-31", &[("2026-12-20", "2026-12-31")]),
            ("2027-12-20", &[("2027-01-01", "2027-12-20")]),
        ],
        then: &["2027-12-22", "2027-12-24"],
        gap: "2027-12-21",
        joined: 366 + 1 + 1,
        reached_before: 355,
    },
    Life {
        keep_years: 1,
        window_days: 366,
        imports: &[
            ("2025-12-31", &[("2025-12-20", "2025-12-31")]),
            (
                "2026-12-31",
                &[("2026-01-01", "2026-12-25"), ("2026-12-27", "2026-12-31")],
            ),
            ("2027-12-10", &[("2027-01-01", "2027-12-10")]),
        ],
        then: &["2027-12-20"],
        gap: "2026-12-26",
        joined: 371 + 1 + 349,
        reached_before: 365,
    },
    // Both runs come from one file, and the long one never was the newest.
    Life {
        keep_years: 1,
        window_days: 366,
        imports: &[(
            "2026-12-31",
            &[("2025-06-01", "2026-12-29"), ("2026-12-31", "2026-12-31")],
        )],
        then: &["2027-01-01", "2027-12-28"],
        gap: "2026-12-30",
        joined: 577 + 1 + 2,
        reached_before: 500,
    },
    Life {
        keep_years: 2,
        window_days: 366,
        imports: &[
            ("2024-12-31", &[("2024-12-20", "2024-12-31")]),
            ("2025-12-31", &[("2025-01-01", "2025-12-31")]),
            (
                "2026-12-31",
                &[("2026-01-01", "2026-12-25"), ("2026-12-27", "2026-12-31")],
            ),
            ("2027-12-10", &[("2027-01-01", "2027-12-10")]),
        ],
        then: &["2027-12-20"],
        gap: "2026-12-26",
        joined: 736 + 1 + 349,
        reached_before: 730,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn a_long_run_that_ended_before_another_is_rejoined_whole_and_its_milestones_are_not_paid_again() {
    for life in LIVES {
        for partitions in both_partitions() {
            let app = spawn_app()
                .with(off_disk)
                .partitions(partitions)
                .with(|s| {
                    s.checkin.keep_years = life.keep_years;
                    s.makeup.window_days = life.window_days;
                    s.checkin.milestone = vec![
                        milestone(life.reached_before, 7_777, 0),
                        milestone(life.joined, 1_000, 0),
                    ];
                })
                .at("2024-12-01T12:00:00Z")
                .await;
            let said = format!("{} years kept, P = {partitions}", life.keep_years);
            for (on, runs) in life.imports {
                import(&app, on, runs).await;
            }
            let amy = app.user("amy");
            for day in life.then {
                amy.check_in_at(&[&format!("{day}T12:00:00Z")]).await;
            }
            assert!([11, 13].contains(&numbers_kept(&app).await), "{said}");
            app.service().grant("amy", 1, None).await;
            let made_up = amy.make_up(life.gap).await;
            assert_eq!(made_up.outcome, "MADE_UP", "{said}");
            assert_eq!(made_up.reward.points, 1_000, "{said}");
            assert_eq!(made_up.streak.longest, life.joined, "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_no_longer_remembered_once_no_make_up_can_join_it() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.checkin.keep_years = 0)
            .at("2027-12-31T12:00:00Z")
            .await;
        let amy = app.user("amy");
        amy.check_in_at(&["2027-12-31T12:00:00Z", "2028-01-01T12:00:00Z"])
            .await;
        assert_eq!(numbers_kept(&app).await, 9, "it goes on");
        amy.check_in_at(&["2028-01-03T12:00:00Z"]).await;
        assert_eq!(numbers_kept(&app).await, 11);
        amy.check_in_at(&["2028-01-05T12:00:00Z"]).await;
        assert_eq!(numbers_kept(&app).await, 11, "the run of the 3rd is wholly kept");
        amy.check_in_at(&["2028-01-20T12:00:00Z", "2028-01-21T12:00:00Z"])
            .await;
        assert_eq!(numbers_kept(&app).await, 9);
    }
}
