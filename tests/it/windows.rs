//! The turn of days, weeks and months: closed periods, and windows over the last days, compared with a plain model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{Datelike, Days, NaiveDate, TimeDelta};
use serde_json::{Value, json};
use tallyboard::config::{Board as Configured, Settings};
use tallyboard::day::Period;
use tallyboard::import;
use tallyboard::leaderboard::{BoardOrder, ScoreOperator};

use crate::harness::*;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, many: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % many
    }
}

/// A board as a list of cells: points by period and user.
struct Model {
    id: &'static str,
    lowest_first: bool,
    operator: &'static str,
    windows: Vec<u32>,
    cells: BTreeMap<String, BTreeMap<String, i64>>,
}

const PERIODS: [Period; 4] = [Period::Day, Period::Week, Period::Month, Period::AllTime];

impl Model {
    fn new(id: &'static str, operator: &'static str, lowest_first: bool, windows: &[u32]) -> Model {
        Model {
            id,
            lowest_first,
            operator,
            windows: windows.to_vec(),
            cells: BTreeMap::new(),
        }
    }

    fn better(&self, a: i64, b: i64) -> i64 {
        if self.lowest_first { a.min(b) } else { a.max(b) }
    }

    fn score(&mut self, user: &str, points: i64, operator: Option<&str>, date: NaiveDate) {
        for period in PERIODS {
            let key = period.span_of(date).key();
            let before = self.cells.get(&key).and_then(|cell| cell.get(user)).copied();
            let after = match (operator.unwrap_or(self.operator), before) {
                ("INCREMENT", before) => before.unwrap_or(0) + points,
                ("BEST", Some(before)) => self.better(before, points),
                _ => points,
            };
            self.cells.entry(key).or_default().insert(user.into(), after);
        }
    }

    fn remove(&mut self, user: &str, today: NaiveDate) {
        let mut keys: Vec<String> = PERIODS.iter().map(|period| period.span_of(today).key()).collect();
        let longest = self.windows.iter().copied().max().unwrap_or(1);
        keys.extend(days_until(today, longest).map(|day| day.to_string()));
        for key in keys {
            self.cells.entry(key).or_default().remove(user);
        }
    }

    fn ranked(&self, points: BTreeMap<String, i64>) -> Vec<(String, i64)> {
        let mut order: Vec<_> = points.into_iter().collect();
        let sign = if self.lowest_first { 1 } else { -1 };
        order.sort_by_key(|(user, points)| (sign * points, user.clone()));
        order
    }

    fn window(&self, days: u32, today: NaiveDate) -> Vec<(String, i64)> {
        let mut points: BTreeMap<String, i64> = BTreeMap::new();
        for day in days_until(today, days) {
            for (user, &value) in self.cells.get(&day.to_string()).into_iter().flatten() {
                let so_far = points.get(user).copied();
                let value = match (self.operator, so_far) {
                    (_, None) => value,
                    ("BEST", Some(so_far)) => self.better(so_far, value),
                    (_, Some(so_far)) => so_far + value,
                };
                points.insert(user.clone(), value);
            }
        }
        self.ranked(points)
    }

    fn period(&self, period: Period, date: NaiveDate) -> Vec<(String, i64)> {
        self.ranked(
            self.cells
                .get(&period.span_of(date).key())
                .cloned()
                .unwrap_or_default(),
        )
    }

    /// Every window shows what the cells say, with its places.
    async fn compare_windows(&self, service: &Caller<'_>, today: NaiveDate, when: &str) {
        for &days in &self.windows {
            let (shown, wanted) = (
                service.board(self.id, &last_days(days), None).await,
                self.window(days, today),
            );
            assert_eq!(
                shown.order(),
                wanted,
                "{} over {days} days, {today}: {when}",
                self.id
            );
            assert_eq!(shown.participants, wanted.len() as u64);
            for (i, standing) in shown.top.iter().enumerate() {
                let better: Vec<i64> = wanted[..i]
                    .iter()
                    .map(|(_, points)| *points)
                    .filter(|&points| points != standing.points)
                    .collect();
                let distinct: BTreeSet<i64> = better.iter().copied().collect();
                assert_eq!(standing.rank, i as u64 + 1);
                assert_eq!(standing.competition, better.len() as u64 + 1);
                assert_eq!(standing.dense, distinct.len() as u64 + 1);
                assert_eq!(standing.reached_at, None);
            }
            let Some(place) = wanted.len().checked_sub(2) else {
                continue;
            };
            let user = &wanted[place].0;
            assert_eq!(
                service.place(self.id, &last_days(days), user).await.as_ref(),
                Some(&shown.top[place])
            );
            let around = service.around(self.id, &last_days(days), user, 2).await;
            assert_eq!(around, shown.top[place.saturating_sub(2)..]);
        }
    }

    /// Every calendar period shows what the cells say.
    async fn compare_periods(&self, service: &Caller<'_>, date: NaiveDate, periods: &[Period]) {
        for &of in periods {
            let shown = service.board(self.id, &period(of.as_str()), Some(date)).await;
            // Equal points stand in the order of arrival, which is another test's.
            let mut points = shown.order();
            points.sort();
            let mut wanted = self.period(of, date);
            wanted.sort();
            assert_eq!(points, wanted, "{} {} of {date}", self.id, of.as_str());
        }
    }
}

fn board(id: &str, change: impl FnOnce(&mut Configured)) -> Configured {
    let mut board = Configured {
        id: id.into(),
        ..Default::default()
    };
    change(&mut board);
    board
}

/// Adds scores of the past by a file.
async fn import_scores(app: &TestApp, board: &str, rows: &[(String, String, i64)]) {
    let mut csv = String::from("user,at,points\n");
    for (user, at, points) in rows {
        csv += &format!("{user},{at},{points}\n");
    }
    let file = app.dir.path().join("scores.csv");
    std::fs::write(&file, csv).unwrap();
    let summary = import::scores::import(&app.running().app, &file, board)
        .await
        .unwrap();
    assert_eq!((summary.applied, summary.rejected), (rows.len() as u64, 0));
}

fn three_boards(settings: &mut Settings) {
    settings.board = vec![
        board("sum", |board| board.windows = vec![7, 30, 1]),
        board("laps", |board| {
            board.operator = ScoreOperator::Best;
            board.order = BoardOrder::LowestFirst;
            board.periods = vec![Period::AllTime]; // the days are kept for the windows only
            board.windows = vec![3];
        }),
        board("fed", |board| board.windows = vec![2]),
    ];
    settings.checkin.points_board = "fed".into();
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_of_random_histories_are_what_their_days_say() {
    for partitions in both_partitions() {
        let mut app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(three_boards)
            .await;
        let mut dice = Dice(0x9e37_79b9 + u64::from(partitions));
        let mut models = [
            Model::new("sum", "INCREMENT", false, &[7, 30, 1]),
            Model::new("laps", "BEST", true, &[3]),
            Model::new("fed", "INCREMENT", false, &[2]),
        ];
        let mut today = date("2027-12-22");
        let mut run = 0; // days in a row that amy has checked in
        for turn in 0..16 {
            app.set(&format!("{today}T00:00:00Z"));
            let service = app.service();
            // What comes first after the turn has to bring it about, whatever it is.
            let what = [
                "read", "score", "remove", "import", "check-in", "batch", "keeper", "worsen",
            ];
            let mut actions: Vec<&str> = vec![what[turn % what.len()]];
            actions.extend((0..10).map(|_| what[dice.below(8) as usize]));
            let mut checked_in = false;
            for (i, action) in actions.into_iter().enumerate() {
                app.clock
                    .set(app.clock.now() + TimeDelta::minutes(dice.below(60) as i64));
                let user = format!("user-{}", dice.below(9));
                let which = dice.below(2) as usize;
                let points = dice.below(12) as i64 - 3;
                let model = &mut models[which];
                match action {
                    "score" => {
                        service.score(model.id, &user, points).await;
                        model.score(&user, points, None, today);
                    }
                    "worsen" => {
                        let operator = if dice.below(2) == 0 { "SET" } else { "INCREMENT" };
                        let input = json!({ "board": model.id, "userId": user, "points": points, "operator": operator });
                        service.submit(input).await;
                        model.score(&user, points, Some(operator), today);
                    }
                    "batch" => {
                        let inputs: Vec<Value> = (0..3)
                            .map(|n| json!({ "board": model.id, "userId": user, "points": points + n }))
                            .collect();
                        service.submit_all(&inputs).await;
                        (0..3).for_each(|n| model.score(&user, points + n, None, today));
                    }
                    "remove" => {
                        service.remove(model.id, &user).await;
                        model.remove(&user, today);
                    }
                    "import" => {
                        let back = [0, 1, 2, 5, 6, 7, 29, 35][dice.below(8) as usize];
                        let day = today - Days::new(back);
                        let at = match back {
                            0 => app.clock.now().to_rfc3339(),
                            _ => format!("{day}T12:{:02}:00Z", 10 * (turn % 6) + i % 10),
                        };
                        import_scores(&app, model.id, &[(user.clone(), at, points)]).await;
                        model.score(&user, points, None, day);
                    }
                    "check-in" => {
                        let receipt = app.user("amy").check_in().await;
                        if !checked_in {
                            run += 1;
                            assert_eq!(receipt.streak.current, run);
                            models[2].score("amy", receipt.reward.points, None, today);
                        }
                        checked_in = true;
                    }
                    "keeper" => app.look_after().await,
                    _ => model.compare_windows(&service, today, "read first").await,
                }
                if i == 0 {
                    for model in &models {
                        model.compare_windows(&service, today, action).await;
                    }
                }
            }
            for model in &models {
                model.compare_windows(&service, today, "at the day's end").await;
            }
            let days = [today, today - Days::new(1), today - Days::new(8)];
            for day in days {
                models[0].compare_periods(&service, day, &PERIODS).await;
            }
            models[1]
                .compare_periods(&service, today, &[Period::AllTime])
                .await;
            run = if checked_in { run } else { 0 };
            let later = match turn {
                5 => {
                    app = app.restarted(|_| {}).await;
                    4 // days on which nobody is there at all
                }
                9 => 2,
                _ => 1,
            };
            run = if later == 1 { run } else { 0 };
            today = today + Days::new(later);
        }
        assert_eq!(today.year(), 2028, "the year's end lies within");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_periods_are_found_by_their_dates_there_and_back() {
    for partitions in both_partitions() {
        // The last day of a week, a month and a year.
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .at("2028-12-31T23:59:59.999Z")
            .await;
        let service = app.service();
        service.score("points", "amy", 7).await;
        app.set("2029-01-01T00:00:00Z");
        for (of, old, new) in [
            ("DAY", "2028-12-31", "2029-01-01"),
            ("WEEK", "2028-W52", "2029-W01"),
            ("MONTH", "2028-12", "2029-01"),
        ] {
            let open = service.board("points", &period(of), None).await;
            assert_eq!(
                (
                    open.period_key.as_str(),
                    open.closed,
                    open.participants,
                    open.next_on
                ),
                (new, false, 0, None)
            );
            let before: NaiveDate = open.previous_on.unwrap().parse().unwrap();
            assert_eq!(before, date("2028-12-31"));
            let closed = service.board("points", &period(of), Some(before)).await;
            assert_eq!((closed.period_key.as_str(), closed.closed), (old, true));
            assert_eq!(closed.order(), [("amy".to_owned(), 7)]);
            let back: NaiveDate = closed.next_on.unwrap().parse().unwrap();
            assert_eq!(
                service.board("points", &period(of), Some(back)).await.period_key,
                new
            );
        }
        let all = service.board("points", &period("ALL_TIME"), None).await;
        assert_eq!(
            (&all.previous_on, &all.next_on, all.closed),
            (&None, &None, false)
        );
        assert_eq!(all.order(), [("amy".to_owned(), 7)]);

        // The oldest day that is kept leads nowhere before it.
        let days = app.settings.retention.day_boards_days;
        let oldest = date("2029-01-01") - Days::new(days.into());
        let shown = service.board("points", &period("DAY"), Some(oldest)).await;
        assert_eq!((shown.previous_on, shown.participants), (None, 0));
        let gone = oldest - Days::new(1);
        let query = "query ($on: Date) { leaderboard(board: \"points\", on: $on) { id } }";
        assert_eq!(service.refusal(query, json!({ "on": gone })).await.0, "NOT_FOUND");
        let ahead = json!({ "on": "2029-01-02" });
        assert_eq!(service.refusal(query, ahead).await.0, "BAD_USER_INPUT");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_that_are_configured_later_hold_the_days_that_were_there() {
    for partitions in both_partitions() {
        let mut app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .at("2027-02-20T08:00:00Z")
            .await;
        let mut model = Model::new("points", "INCREMENT", false, &[]);
        let mut today = date("2027-02-20");
        for day in 0..8 {
            app.set(&format!("{today}T08:00:00Z"));
            for user in 0..70 {
                let points = (user * 7 + day) % 11;
                if points > 4 {
                    let user = format!("user-{user}");
                    app.service().score("points", &user, points).await;
                    model.score(&user, points, None, today);
                }
            }
            today = today + Days::new(1);
        }
        today = today - Days::new(1);
        // Each time the server starts with other windows; between them points come, and somebody goes.
        for (turn, windows) in [&[7][..], &[7, 3], &[3], &[7, 3], &[], &[3, 7], &[2], &[7]]
            .into_iter()
            .enumerate()
        {
            app = app.restarted(|s| s.board[0].windows = windows.to_vec()).await;
            model.windows = windows.to_vec();
            let service = app.service();
            model.compare_windows(&service, today, "newly configured").await;
            let (leaves, scores) = (format!("user-{}", turn * 5), format!("user-{}", turn + 20));
            if !windows.is_empty() {
                service.remove("points", &leaves).await;
                model.remove(&leaves, today);
            }
            service.score("points", &scores, 9).await;
            model.score(&scores, 9, None, today);
            model.compare_windows(&service, today, "kept up").await;
            if turn % 3 == 1 {
                app.look_after().await;
                today = today + Days::new(1);
                app.set(&format!("{today}T08:00:00Z"));
                model.compare_windows(&service, today, "the day after").await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_builder_killed_in_the_middle_leaves_nothing_wrong() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.board[0].windows = vec![3])
            .await;
        let keeper = app.only_keeper().await;
        let (service, mut dice) = (app.service(), Dice(77));
        let mut model = Model::new("points", "INCREMENT", false, &[3]);
        let mut today = date("2027-03-01");
        for _ in 0..4 {
            app.set(&format!("{today}T08:00:00Z"));
            let scores: Vec<(String, i64)> = (0..400)
                .map(|_| (format!("user-{}", dice.below(450)), 1 + dice.below(50) as i64))
                .collect();
            let inputs: Vec<Value> = scores
                .iter()
                .map(|(user, points)| json!({ "board": "points", "userId": user, "points": points }))
                .collect();
            service.apply_all(&inputs).await;
            for (user, points) in &scores {
                model.score(user, *points, None, today);
            }
            // Tomorrow's set is built in pieces; between them it goes on as ever. The last builder never ends.
            for _ in 0..4 {
                let build = app.running().app.look_after(&keeper);
                let killed = tokio::time::timeout(Duration::from_millis(8), build).await;
                if let Ok(done) = killed {
                    done.unwrap();
                }
                let user = format!("user-{}", dice.below(450));
                service.score("points", &user, 3).await;
                model.score(&user, 3, None, today);
                let user = format!("user-{}", dice.below(450));
                service.remove("points", &user).await;
                model.remove(&user, today);
            }
            model
                .compare_windows(&service, today, "while tomorrow is built")
                .await;
            today = today + Days::new(1);
            app.set(&format!("{today}T00:00:00Z"));
            model.compare_windows(&service, today, "after the turn").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_late_at_the_turn_counts_for_its_own_day() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(three_boards)
            .at("2027-03-31T23:59:59Z")
            .await;
        let service = app.service();
        let mut model = Model::new("sum", "INCREMENT", false, &[7, 30, 1]);
        let (yesterday, today) = (date("2027-03-31"), date("2027-04-01"));
        for user in ["amy", "bob", "cid"] {
            service.score("sum", user, 5).await;
            model.score(user, 5, None, yesterday);
        }
        app.look_after().await;
        app.set("2027-04-01T00:00:00Z");
        service.score("sum", "amy", 1).await;
        model.score("amy", 1, None, today);
        app.user("bob").check_in().await;

        // Another node's clock is a little behind.
        app.set("2027-03-31T23:59:59.999Z");
        let late = service.score("sum", "amy", 10).await;
        assert_eq!(late.outcome, "APPLIED");
        assert_eq!(late.standings[0].period_key, "2027-03-31");
        model.score("amy", 10, None, yesterday);
        let batch = [json!({ "board": "sum", "userId": "dee", "points": 2 })];
        assert_eq!(service.submit_all(&batch).await[0].outcome, "APPLIED");
        model.score("dee", 2, None, yesterday);
        assert!(service.remove("sum", "cid").await);
        model.remove("cid", today);
        assert_eq!(app.user("amy").check_in().await.date, "2027-03-31");
        // It reads the windows of the day in force.
        model.compare_windows(&service, today, "late").await;

        app.set("2027-04-01T00:00:01Z");
        model.compare_windows(&service, today, "after").await;
        for day in [yesterday, today] {
            model
                .compare_periods(&service, day, &[Period::Day, Period::Month])
                .await;
        }
        let fed = service.board("fed", &last_days(2), None).await;
        assert_eq!(fed.order(), [("amy".to_owned(), 10), ("bob".to_owned(), 10)]);
        assert_eq!(app.user("amy").check_in().await.streak.current, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn window_sets_of_days_that_are_over_go_and_have_a_ttl_meanwhile() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .with(off_disk)
            .partitions(partitions)
            .with(|s| s.board[0].windows = vec![7, 2])
            .at("2027-03-01T08:00:00Z")
            .await;
        let _keeper = app.only_keeper().await;
        let service = app.service();
        for day in 1..=4 {
            app.set(&format!("2027-03-0{day}T08:00:00Z"));
            for user in 0..20 {
                service.score("points", &format!("user-{user}"), user).await;
            }
            let sets = app.ttls("*:points:last-*").await;
            assert!(sets.len() >= 4, "{sets:?}");
            for (key, ttl) in sets {
                assert!(ttl > 0, "{key} stays for ever");
            }
        }
        let days_left = |sets: Vec<(String, i64)>| -> BTreeSet<String> {
            sets.into_iter()
                .map(|(key, _)| key.rsplit('@').next().unwrap().to_owned())
                .collect()
        };
        assert!(days_left(app.ttls("*:points:last-*").await).contains("2027-03-01"));
        app.look_after().await;
        let left = days_left(app.ttls("*:points:last-*").await);
        assert_eq!(Vec::from_iter(left), ["2027-03-04", "2027-03-05"]);
    }
}
