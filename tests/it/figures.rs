//! Who was active on which days, and who came back: against plain sets of users.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use chrono::{Days, NaiveDate};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tallyboard::config::Settings;
use tallyboard::figures::roster::{self, Wanted};
use tallyboard::figures::{Activity, DayMatch};
use tallyboard::ids::UserId;
use tallyboard::presence;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::harness::*;
use crate::imports::{check_ins, purchase_app, purchases_in, real_data, toml};

/// Users by the days on which they were active.
type Model = BTreeMap<NaiveDate, BTreeSet<String>>;

fn users_of(model: &Model, from: NaiveDate, to: NaiveDate, every: bool) -> BTreeSet<String> {
    let days = from.iter_days().take_while(|day| *day <= to);
    let mut days = days.map(|day| model.get(&day).cloned().unwrap_or_default());
    let first = days.next().unwrap();
    days.fold(first, |all, day| match every {
        true => &all & &day,
        false => &all | &day,
    })
}

impl Caller<'_> {
    pub async fn active(
        &self,
        from: &str,
        to: &str,
        activity: &str,
        every: bool,
        among: Option<&[&str]>,
    ) -> u64 {
        let query =
            "query ($from: Date!, $to: Date!, $activity: Activity!, $match: DayMatch!, $among: [ID!]) {
            activeUsers(from: $from, to: $to, activity: $activity, match: $match, among: $among) }";
        let every = if every { "EVERY" } else { "ANY" };
        let variables =
            json!({ "from": from, "to": to, "activity": activity, "match": every, "among": among });
        self.field(query, variables).await
    }

    async fn retention(&self, cohort: &str, days: &[i32], activity: &str) -> Value {
        let query = "query ($cohort: Date!, $days: [Int!]!, $activity: Activity!) {
            retention(cohort: $cohort, days: $days, activity: $activity) { cohort size days { day returned rate } } }";
        let variables = json!({ "cohort": cohort, "days": days, "activity": activity });
        self.field(query, variables).await
    }

    async fn day_stats(&self, from: &str, to: &str) -> Vec<Value> {
        let query = "query ($from: Date!, $to: Date!) { dayStatsRange(from: $from, to: $to) {
            date checkIns active knownUsers checkInRate } }";
        self.field(query, json!({ "from": from, "to": to })).await
    }
}

pub async fn roster(
    app: &TestApp,
    from: NaiveDate,
    to: NaiveDate,
    days: DayMatch,
    activity: Activity,
) -> BTreeSet<String> {
    let wanted = Wanted {
        from,
        to,
        days,
        activity,
    };
    let mut text = Vec::new();
    let count = roster::write(&app.running().app, &wanted, &mut text)
        .await
        .unwrap();
    let text = String::from_utf8(text).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let users: BTreeSet<String> = rows.lines().map(str::to_owned).collect();
    assert_eq!((header, count), ("user", users.len() as u64), "each once");
    users
}

#[tokio::test(flavor = "multi_thread")]
async fn the_known_figures_of_the_purchases_come_out() {
    let Some(text) = real_data("purchases.csv") else {
        return;
    };
    let mut model = Model::new();
    for purchase in purchases_in(&text) {
        model.entry(purchase.date).or_default().insert(purchase.user);
    }
    for partitions in both_partitions() {
        let app = purchase_app(partitions).await;
        let file = app.file("purchases.csv", &text);
        assert_eq!(check_ins(&app, &file).await.applied, 67_591);
        let analyst = app.analyst();

        let mut days = analyst.day_stats("1997-01-01", "1997-12-31").await;
        days.extend(analyst.day_stats("1998-01-01", "1998-07-01").await);
        assert_eq!(days.len(), 365 + 182);
        for day in &days {
            let users = model
                .get(&date(day["date"].as_str().unwrap()))
                .map_or(0, BTreeSet::len);
            assert_eq!(
                (&day["checkIns"], &day["active"]),
                (&json!(users), &json!(users)),
                "{day}"
            );
            let rate = if users > 0 { json!(1.0) } else { Value::Null };
            assert_eq!((&day["knownUsers"], &day["checkInRate"]), (&json!(23_570), &rate));
        }
        let busiest = days.iter().max_by_key(|day| day["checkIns"].as_u64()).unwrap();
        assert_eq!(
            (&busiest["date"], &busiest["checkIns"]),
            (&json!("1997-02-24"), &json!(490))
        );

        for (from, to, every, wanted) in [
            ("1997-03-01", "1997-03-07", false, 2_899),
            ("1997-03-01", "1997-03-02", true, 3),
            ("1997-03-01", "1997-03-01", true, 392),
        ] {
            for activity in ["CHECK_IN", "ONLINE"] {
                let count = analyst.active(from, to, activity, every, None).await;
                assert_eq!(count, wanted, "{from} to {to}");
            }
            let days = if every { DayMatch::Every } else { DayMatch::Any };
            let users = roster(&app, date(from), date(to), days, Activity::CheckIn).await;
            assert_eq!(users, users_of(&model, date(from), date(to), every));
            assert_eq!(users.len() as u64, wanted);
        }
        let back = analyst.retention("1997-03-01", &[1, 7, 30], "CHECK_IN").await;
        let days: Vec<&Value> = (0..3).map(|i| &back["days"][i]["returned"]).collect();
        assert_eq!(
            (&back["size"], days),
            (&json!(392), vec![&json!(3), &json!(9), &json!(5)])
        );
        assert_eq!(back["days"][1]["rate"], json!(9.0 / 392.0));

        if partitions == 8 {
            let whole = roster(
                &app,
                date("1997-07-01"),
                date("1998-06-30"),
                DayMatch::Any,
                Activity::Online,
            )
            .await;
            let (from, to) = ("1997-07-01", "1998-06-30");
            let beside = exported(app.dir.path(), &app.settings, from, to).await;
            assert_eq!(beside.unwrap(), whole, "beside the server");
            let (dir, settings) = app.stopped().await;
            let alone = exported(dir.path(), &settings, from, to).await;
            assert_eq!(alone.unwrap(), whole, "without one");
            let refused = exported(dir.path(), &settings, to, from).await.unwrap_err();
            assert!(refused.contains("lies after to"), "{refused}");
        }
    }
}

/// `tallyboard export users` of those seen on any day.
fn export(dir: &Path, settings: &Settings, from: &str, to: &str) -> Command {
    let config = dir.join("tallyboard.toml");
    std::fs::write(&config, toml(settings)).unwrap();
    let mut command = Command::from(tallyboard(&["export", "users", "--from", from, "--to", to]));
    command.args(["--activity", "online", "--match", "any"]);
    command.arg("--config").arg(config);
    command.arg("--data-dir").arg(dir.join("data"));
    command.args(["--dev", "--now", "1998-07-01T00:00:00Z"]);
    command.env(
        "TALLYBOARD_ANALYTICS__KEEP_DAYS",
        settings.analytics.keep_days.to_string(),
    );
    command
}

/// What `tallyboard export users` writes of those seen on any day; or what it says if it fails.
async fn exported(dir: &Path, settings: &Settings, from: &str, to: &str) -> Result<BTreeSet<String>, String> {
    let output = export(dir, settings, from, to).output().await.unwrap();
    if !output.status.success() {
        assert_eq!(output.stdout, b"", "nothing that looks like a roster");
        return Err(String::from_utf8(output.stderr).unwrap());
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().next(), Some("user"));
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_nobody_reads_ends_when_it_is_told_to() {
    let app = spawn_app().at("1998-07-01T00:00:00Z").await;
    let name = |i: u32| UserId::parse(&format!("{i:0>128}")).unwrap();
    let users: Vec<_> = (0..2_000)
        .map(|i| (name(i), presence::Place::default()))
        .collect();
    let beats = app.running().app.presence.heartbeat_all(&users, app.clock.now());
    assert_eq!(beats.await.unwrap(), []);
    for name in ["INT", "TERM"] {
        let mut command = export(app.dir.path(), &app.settings, "1998-07-01", "1998-07-01");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // More than a pipe holds: once the first bytes have come, the rest of it is stuck.
        let mut first = [0; 5];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut first)
            .await
            .unwrap();
        assert_eq!(&first, b"user\n");
        signal(name, child.id().unwrap());
        let ended = timeout(Duration::from_secs(20), child.wait()).await;
        let code = ended.expect("it does not end").unwrap().code();
        let mut said = String::new();
        child.stderr.unwrap().read_to_string(&mut said).await.unwrap();
        assert_eq!((code, said.contains("not complete")), (Some(1), true), "{said}");
    }
}

/// How often Redis has read from its clients.
pub async fn reads(app: &TestApp) -> u64 {
    let mut info = redis::cmd("INFO");
    let said: String = info
        .arg("stats")
        .query_async(&mut app.redis().await)
        .await
        .unwrap();
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("total_reads_processed:"));
    line.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_table_fills_its_round_trips_and_takes_no_more_than_its_time() {
    let days: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let table = format!(
        "{{ retentionTable(from: \"2026-11-01\", to: \"2026-11-20\", days: [{}]) {{ size }} }}",
        days.join(",")
    );
    let app = spawn_app()
        .with(|settings| {
            settings.analytics.keep_days = 366;
            settings.redis.timeout_ms = 5_000;
        })
        .await;
    app.user("amy").check_in().await;
    let before = reads(&app).await;
    let rows: Vec<Value> = app.analyst().field(&table, json!({})).await;
    assert_eq!(rows.len(), 20);
    let trips = reads(&app).await - before;
    assert!(trips < 500, "{trips} reads for 2,020 counts");

    // Sixty million rows are too many for so large a table within so short a time.
    let app = app.restarted(|settings| settings.redis.timeout_ms = 200).await;
    let mut set = redis::cmd("HSET");
    set.arg("tb:{0}:generation").arg("rows").arg(60_000_000);
    set.exec_async(&mut app.redis().await).await.unwrap();
    let started = std::time::Instant::now();
    assert_eq!(app.analyst().refusal(&table, json!({})).await.0, "UNAVAILABLE");
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// Fifteen random days, lived through: some check in, some are only seen.
async fn live_through(app: &TestApp, random: &mut StdRng) -> (Model, Model) {
    let (mut checked_in, mut seen) = (Model::new(), Model::new());
    for day in 0..15_u64 {
        let today = date("2027-03-01") + Days::new(day);
        app.set(&format!("{today}T12:00:00Z"));
        let mut document = String::from("mutation {");
        for user in 0..40 {
            let name = format!("user,{user}\\\"");
            let chance = random.random_range(0..10 + user / 4);
            if chance < 6 {
                document += &format!(" c{user}: checkIn(userId: \"{name}\") {{ outcome }}");
                checked_in
                    .entry(today)
                    .or_default()
                    .insert(name.replace('\\', ""));
            }
            if (4..8).contains(&chance) {
                document += &format!(" h{user}: heartbeat(userId: \"{name}\") {{ onlineCount }}");
            }
            if chance < 8 {
                seen.entry(today).or_default().insert(name.replace('\\', ""));
            }
        }
        app.service().data(&(document + " }"), json!({})).await;
    }
    (checked_in, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn random_days_are_counted_as_plain_sets_count_them() {
    let seed = Seed::draw();
    let mut random = StdRng::seed_from_u64(seed.0);
    for partitions in both_partitions() {
        let app = spawn_app().partitions(partitions).await;
        let (checked_in, seen) = live_through(&app, &mut random).await;
        let analyst = app.analyst();
        for day in analyst.day_stats("2027-02-25", "2027-03-15").await {
            let on = date(day["date"].as_str().unwrap());
            let of = |model: &Model| json!(model.get(&on).map_or(0, BTreeSet::len));
            assert_eq!(
                (&day["checkIns"], &day["active"]),
                (&of(&checked_in), &of(&seen)),
                "{day}"
            );
        }
        for _ in 0..40 {
            let from = date("2027-02-27") + Days::new(random.random_range(0..17));
            let to = date("2027-03-15").min(from + Days::new(random.random_range(0..6)));
            let every = random.random_bool(0.5);
            let (name, model, activity) = match random.random_bool(0.5) {
                true => ("CHECK_IN", &checked_in, Activity::CheckIn),
                false => ("ONLINE", &seen, Activity::Online),
            };
            let wanted = users_of(model, from, to, every);
            let (first, last) = (from.to_string(), to.to_string());
            let count = analyst.active(&first, &last, name, every, None).await;
            assert_eq!(
                count,
                wanted.len() as u64,
                "{from} to {to}, {name}, every {every}"
            );
            let days = if every { DayMatch::Every } else { DayMatch::Any };
            assert_eq!(roster(&app, from, to, days, activity).await.len(), wanted.len());
            let among = [
                "user,0\"",
                "user,3\"",
                "user,3\"",
                "user,17\"",
                "user,39\"",
                "nobody",
            ];
            let both = among.iter().copied().collect::<BTreeSet<_>>();
            let both = both.into_iter().filter(|user| wanted.contains(*user)).count();
            let count = analyst.active(&first, &last, name, every, Some(&among)).await;
            assert_eq!(count, both as u64, "among: {from} to {to}, {name}, every {every}");

            let back = analyst.retention(&first, &[0, 1, 5, 20], name).await;
            for (i, after) in [0, 1, 5, 20].into_iter().enumerate() {
                let on = from + Days::new(after);
                let of = |on: NaiveDate| model.get(&on).cloned().unwrap_or_default();
                let returned = (on <= date("2027-03-15")).then(|| (&of(from) & &of(on)).len());
                assert_eq!(
                    back["days"][i]["returned"],
                    json!(returned),
                    "{name}: {from} and {after} days"
                );
            }
        }
        let rows: Vec<Value> = analyst
            .field(
                "{ retentionTable(from: \"2027-03-12\", to: \"2027-03-15\", days: [1, 2]) { cohort size
                    days { day returned rate } } }",
                json!({}),
            )
            .await;
        for (i, row) in rows.iter().enumerate() {
            let cohort = format!("2027-03-{}", 12 + i);
            assert_eq!(*row, analyst.retention(&cohort, &[1, 2], "CHECK_IN").await);
        }
        assert_eq!(rows.len(), 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_that_cannot_be_are_refused_in_plain_words_and_days_to_come_are_null() {
    let app = spawn_app()
        .at("2027-03-01T08:00:00Z")
        .with(|settings| settings.analytics.keep_days = 500)
        .await;
    app.user("amy").check_in().await;
    let many = format!("[{}]", vec!["\"amy\""; 1_001].join(","));
    let days = vec!["1"; 101].join(",");
    let hundred_and_one = format!("retention(cohort: \"2027-03-01\", days: [{days}]) {{ size }}");
    let among = format!("activeUsers(from: \"2027-03-01\", to: \"2027-03-01\", among: {many})");
    for (field, said) in [
        (
            "activeUsers(from: \"2027-02-02\", to: \"2027-02-01\")",
            "lies after to",
        ),
        (
            "activeUsers(from: \"2027-02-02\", to: \"2027-03-02\")",
            "today is 2027-03-01",
        ),
        (
            "activeUsers(from: \"2025-10-16\", to: \"2025-10-20\")",
            "which begin 2025-10-17",
        ),
        (
            "activeUsers(from: \"2026-02-28\", to: \"2027-02-30\")",
            "February 2027 has 28 days",
        ),
        (
            "activeUsers(from: \"2026-02-01\", to: \"2027-02-02\")",
            "at most 366 days",
        ),
        (&among, "at most 1000 users"),
        (
            "dayStatsRange(from: \"2027-02-02\", to: \"2027-02-01\") { date }",
            "lies after to",
        ),
        ("dayStats(on: \"2027-03-02\") { date }", "lies in the future"),
        ("dayStats(on: \"2024-03-02\") { date }", "which begin 2025-10-17"),
        (
            "retention(cohort: \"2027-03-02\", days: [1]) { size }",
            "lies in the future",
        ),
        (
            "retention(cohort: \"2025-10-16\", days: [1]) { size }",
            "which begin 2025-10-17",
        ),
        (
            "retention(cohort: \"2027-03-01\", days: [-1]) { size }",
            "0 to 366 days",
        ),
        (
            "retentionTable(from: \"2026-03-01\", to: \"2027-02-01\", days: [1,2,3,4,5,6,7]) { size }",
            "at most 2000 cells",
        ),
        (
            "retentionTable(from: \"2027-02-02\", to: \"2027-02-01\", days: [1]) { size }",
            "lies after to",
        ),
        (
            "retentionTable(from: \"2025-10-16\", to: \"2025-10-20\", days: [1]) { size }",
            "which begin 2025-10-17",
        ),
        (
            "retentionTable(from: \"2027-03-01\", to: \"2027-03-02\", days: [1]) { size }",
            "lies in the future",
        ),
        (
            "dayStatsRange(from: \"2026-02-01\", to: \"2027-02-02\") { date }",
            "at most 366 days",
        ),
        (
            "dayStatsRange(from: \"2025-10-16\", to: \"2025-10-20\") { date }",
            "which begin 2025-10-17",
        ),
        (&hundred_and_one, "at most 100 entries"),
        (
            "retention(cohort: \"2026-01-01\", days: [367]) { size }",
            "0 to 366 days",
        ),
    ] {
        let (code, message) = app.analyst().refusal(&format!("{{ {field} }}"), json!({})).await;
        assert_eq!(code, "BAD_USER_INPUT", "{field}");
        assert!(message.contains(said), "{field}: {message}");
    }
    let back = app
        .analyst()
        .retention("2027-03-01", &[0, 1, 30], "CHECK_IN")
        .await;
    let day = |day: i32, returned: Option<u32>, rate: Option<f64>| json!({ "day": day, "returned": returned, "rate": rate });
    assert_eq!(
        back["days"],
        json!([
            day(0, Some(1), Some(1.0)),
            day(1, None, None),
            day(30, None, None)
        ])
    );
    app.set("2027-03-02T00:00:00Z");
    let back = app.analyst().retention("2027-03-01", &[1], "CHECK_IN").await;
    assert_eq!(
        back["days"],
        json!([day(1, Some(0), Some(0.0))]),
        "an open day has come"
    );
    let hundred = [1; 100];
    let longest = app.analyst().retention("2026-03-01", &hundred, "CHECK_IN").await;
    assert_eq!(
        longest["days"].as_array().unwrap().len(),
        100,
        "as many as may be"
    );
    let last = app.analyst().retention("2026-03-01", &[366], "CHECK_IN").await;
    assert_eq!(last["days"][0]["returned"], 0, "as far as may be");
    let year = app.analyst().day_stats("2026-02-28", "2027-02-28").await;
    assert_eq!(year.len(), 366, "as long as may be");
    let empty = app.analyst().retention("2027-02-01", &[1], "CHECK_IN").await;
    assert_eq!(
        empty["days"],
        json!([day(1, Some(0), None)]),
        "of nobody there is no share"
    );

    for query in [
        "{ dayStats { date } }",
        "{ activeUsers(from: \"2027-03-01\", to: \"2027-03-01\") }",
    ] {
        assert_eq!(
            app.anonymous().refusal(query, json!({})).await.0,
            "UNAUTHENTICATED"
        );
        assert_eq!(app.user("amy").refusal(query, json!({})).await.0, "FORBIDDEN");
        app.service().data(query, json!({})).await;
    }
}
