//! Boards at their edges: the largest points, the first and the last tick, crowds on equal points, two servers at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::stream;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::{Value, json};
use tallyboard::app::App;
use tallyboard::config;
use tallyboard::day::Period;
use tallyboard::ids::UserId;
use tallyboard::keyspace::{Operation, Partition};
use tallyboard::leaderboard::pages::{Begin, Many, Wanted};
use tallyboard::leaderboard::ranking::Member;
use tallyboard::leaderboard::standings;
use tallyboard::leaderboard::submit::{Score, Submitted};
use tallyboard::leaderboard::{Board, BoardOrder, ScoreOperator, Span, TieBreak};
use tempfile::TempDir;

use crate::harness::*;

/// The most points that a DAY board can tell arrivals apart with: 15 bits are left for time.
const MOST_FOR_A_DAY: i64 = (1 << 38) - 1;

const PERIODS: [&str; 4] = ["DAY", "WEEK", "MONTH", "ALL_TIME"];

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_points_in_the_first_and_last_tick_decode_to_themselves_in_order() {
    let all = vec![Period::Day, Period::Week, Period::Month, Period::AllTime];
    let kinds = [
        ("least", 1, TieBreak::FirstToReach, all.clone()),
        ("usual", 10_000_000, TieBreak::FirstToReach, all.clone()),
        ("most", 16_777_215, TieBreak::FirstToReach, all.clone()), // that ALL_TIME allows
        ("day", MOST_FOR_A_DAY, TieBreak::FirstToReach, vec![Period::Day]),
        ("untied", 9_007_199_254_740_991, TieBreak::None, all),
    ];
    let mut boards = Vec::new();
    for (id, max_points, tie_break, periods) in kinds {
        for (end, order) in [
            ("high", BoardOrder::HighestFirst),
            ("low", BoardOrder::LowestFirst),
        ] {
            boards.push(config::Board {
                id: format!("{id}-{end}"),
                operator: ScoreOperator::Set,
                order,
                max_points,
                tie_break,
                periods: periods.clone(),
                ..Default::default()
            });
        }
    }
    let app = spawn_app()
        .at("2020-01-01T00:00:00Z")
        .with(|s| s.board = boards.clone())
        .await;
    let service = app.service();
    let instants = [
        "2020-01-01T00:00:00Z",     // ALL_TIME, MONTH and DAY begin
        "2027-03-01T00:00:00Z",     // MONTH, WEEK and DAY begin
        "2027-03-01T23:59:59.999Z", // DAY ends
        "2027-03-07T23:59:59.999Z", // WEEK ends
        "2027-03-31T23:59:59.999Z", // MONTH ends
        "2083-12-31T23:59:59.999Z", // ALL_TIME ends
    ];
    // By board and period: points, the instant at which they were reached, who.
    type Members = Vec<(i64, usize, String)>;
    let mut held: BTreeMap<(String, String), Members> = BTreeMap::new();
    for (turn, instant) in instants.into_iter().enumerate() {
        app.set(instant);
        for board in &boards {
            let most = board.max_points;
            let sign = if board.order == BoardOrder::HighestFirst {
                -1
            } else {
                1
            };
            let mut points = vec![most, most - 1, 1, 0, -1, 1 - most, -most];
            points.sort();
            points.dedup();
            for points in points {
                let user = format!("{points}@{turn}");
                let scored = service.score(&board.id, &user, points).await;
                assert_eq!(scored.outcome, "APPLIED", "{}: {user}", board.id);
                for shown in &scored.standings {
                    let key = (board.id.clone(), format!("{} {}", shown.period, shown.period_key));
                    let members = held.entry(key).or_default();
                    members.retain(|(_, _, other)| *other != user);
                    members.push((points, turn, user.clone()));
                    assert_eq!(
                        shown.standing.as_ref().unwrap().points,
                        points,
                        "{}: {user}",
                        board.id
                    );
                }
            }
            for beyond in [most + 1, -most - 1]
                .into_iter()
                .filter(|beyond| beyond.abs() < 1 << 53)
            {
                let scored = service.score(&board.id, "beyond", beyond).await;
                assert_eq!(
                    scored.rejection.unwrap().code,
                    "POINTS_OUT_OF_RANGE",
                    "{}: {beyond}",
                    board.id
                );
            }
            for period in PERIODS.iter().take(board.periods.len()) {
                let page = service.top(&board.id, period, 500).await;
                let key = page.id.split_once('/').unwrap().1.to_owned();
                let mut wanted = held[&(board.id.clone(), format!("{period} {key}"))].clone();
                match board.tie_break {
                    TieBreak::FirstToReach => wanted.sort_by_key(|(points, turn, _)| (sign * points, *turn)),
                    TieBreak::None => wanted.sort_by_key(|(points, _, user)| (sign * points, user.clone())),
                }
                let wanted: Vec<_> = wanted
                    .iter()
                    .map(|(points, _, user)| (user.as_str(), *points))
                    .collect();
                assert_eq!(page.order(), wanted, "{} {period} at {instant}", board.id);
                for standing in &page.top {
                    let reached = standing.reached_at.as_deref().map(at);
                    assert_eq!(reached.is_some(), board.tie_break == TieBreak::FirstToReach);
                    let then = at(instants[number_after_at(&standing.user.id)]);
                    let off = reached.map_or(0, |reached| (then - reached).num_milliseconds());
                    assert!(
                        (0..5_000).contains(&off),
                        "{} {period}: {standing:?} at {then}",
                        board.id
                    );
                }
            }
        }
    }
}

fn number_after_at(user: &str) -> usize {
    user.split_once('@').unwrap().1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_step_may_lead_from_one_end_of_the_points_to_the_other() {
    let app = spawn_app().await;
    let service = app.service();
    let most = 10_000_000;
    assert_eq!(service.score("points", "amy", -most).await.outcome, "APPLIED");
    assert_eq!(
        service.score("points", "amy", 2 * most + 1).await.outcome,
        "REJECTED"
    );
    assert_eq!(service.score("points", "amy", 2 * most).await.outcome, "APPLIED");
    assert_eq!(
        service.top("points", "ALL_TIME", 5).await.order(),
        [("amy", most)]
    );
    for (operator, points) in [
        ("SET", most + 1),
        ("BEST", most + 1),
        ("SET", -most - 1),
        ("BEST", -most - 1),
    ] {
        let input = json!({ "board": "points", "userId": "amy", "points": points, "operator": operator });
        let query = "mutation ($input: SubmitScoreInput!) { submitScore(input: $input) { outcome rejection { code } } }";
        let shown = service.data(query, json!({ "input": input })).await;
        assert_eq!(
            shown["submitScore"]["rejection"]["code"], "POINTS_OUT_OF_RANGE",
            "{operator} {points}"
        );
    }
}

/// A DAY board with these largest points.
fn day_board(id: &str, max_points: i64) -> config::Board {
    config::Board {
        id: id.into(),
        periods: vec![Period::Day],
        max_points,
        ..Default::default()
    }
}

/// A board of a running app, and its span of a period now.
fn at_hand(app: &App, id: &str, period: Period) -> (Arc<Board>, Span) {
    let now = app.clock.now();
    let board = app.boards.boards().get(id).unwrap().clone();
    let span = app
        .boards
        .period(&board, period, app.zone.date_of(now), now)
        .unwrap();
    (board, span)
}

/// Adds points for each of these users, in pipelines.
async fn fill(app: &App, board: &Board, users: &[String], points: i64) {
    let now = app.clock.now();
    for users in users.chunks(200) {
        let score = |user: &String| Score {
            board,
            user: UserId::parse(user).unwrap(),
            operator: ScoreOperator::Increment,
            points,
        };
        let scores: Vec<_> = users
            .iter()
            .map(|user| (score(user), Operation::unique(now)))
            .collect();
        for submitted in app.boards.submit_many(&scores, now).await {
            assert!(
                matches!(submitted, Ok(Submitted::Counted { changed: true, .. })),
                "{submitted:?}"
            );
        }
    }
}

/// Everybody on a board, page by page.
async fn everybody(app: &App, board: &Board, span: &Span, now: DateTime<Utc>) -> Vec<standings::Standing> {
    let mut all: Vec<standings::Standing> = Vec::new();
    loop {
        let begin = all.last().map_or(Begin::Start, |last| {
            Begin::After(Member {
                key: last.key,
                user: last.user.clone(),
            })
        });
        let wanted = Wanted {
            many: Many::First(5_000),
            begin,
            ..Wanted::default()
        };
        let page = app.boards.page(board, span, &wanted, now).await.unwrap();
        all.extend(page.standings);
        if !page.has_next {
            return all;
        }
    }
}

/// `TALLYBOARD_CROWD=500000` brings half a million; that many are too slow for every run.
fn crowd() -> usize {
    std::env::var("TALLYBOARD_CROWD").map_or(50_000, |crowd| crowd.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_on_the_same_points_decodes_right_and_stands_in_order_of_arrival() {
    let app = spawn_app()
        .at("2027-03-01T12:00:00Z")
        .with(|settings| {
            settings.board = vec![day_board("crowd", 10_000_000), day_board("tight", MOST_FOR_A_DAY)]
        })
        .await;
    let inner = &app.running().app;
    let (all, late) = (crowd(), 5_000);
    // Neither by id nor by hash the order in which they come.
    let users: Vec<String> = (0..all).map(|i| format!("user-{}", (i * 7_919) % all)).collect();
    let (board, span) = at_hand(inner, "crowd", Period::Day);
    fill(inner, &board, &users[..all - late], 100).await;
    app.set("2027-03-01T23:59:59.999Z");
    fill(inner, &board, &users[all - late..], 100).await;
    let shown = everybody(inner, &board, &span, app.clock.now()).await;
    assert_eq!(shown.len(), all);
    for (place, (standing, user)) in shown.iter().zip(&users).enumerate() {
        assert_eq!((standing.user.as_str(), standing.points), (user.as_str(), 100));
        assert_eq!((standing.ahead.members, standing.ahead.better), (place as u64, 0));
        assert!(standing.reached_at.unwrap() <= app.clock.now());
    }

    // 15 bits hold fewer ticks than this crowd needs: whoever comes then stands by user id, with the right points still.
    let (board, span) = at_hand(inner, "tight", Period::Day);
    let users = &users[..6_000];
    fill(inner, &board, users, MOST_FOR_A_DAY).await;
    let shown = everybody(inner, &board, &span, app.clock.now()).await;
    let tick_ms = board.plans[0].tick_ms;
    let first_tick = (12 * 3_600_000_i64 * 2 - 1) / tick_ms; // of the day's last millisecond
    let room = (board.plans[0].tie_range() - first_tick) as usize - 1;
    assert!((3_000..5_000).contains(&room), "{room}");
    let mut wanted = users.to_vec();
    wanted[room..].sort();
    let order: Vec<_> = shown.iter().map(|standing| standing.user.as_str()).collect();
    assert_eq!(order, wanted);
    assert!(shown.iter().all(|standing| standing.points == MOST_FOR_A_DAY));
}

/// A Redis of somebody else's, as a server finds it by URL.
struct Foreign {
    process: Child,
    dir: TempDir,
}

impl Foreign {
    /// Starts it in a locale in which ids do not sort by bytes, if this machine can make one.
    fn start() -> Foreign {
        let dir = TempDir::new().unwrap();
        let locale = dir.path().join("en_US.UTF-8");
        let made = Command::new("localedef")
            .args(["--no-archive", "-i", "en_US", "-f", "UTF-8"])
            .arg(&locale)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(dir.path());
        command.arg("--unixsocket").arg(dir.path().join("redis.sock"));
        if made.is_ok_and(|made| made.success()) {
            command.env("LOCPATH", dir.path()).env("LC_ALL", "en_US.UTF-8");
        }
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Foreign { process, dir }
    }

    fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        assert!(ended.is_ok(), "{ended:?}");
        assert!(!Path::new(&format!("/proc/{}", self.process.id())).exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equals_of_one_tick_stand_as_their_writes_were_applied_through_two_servers() {
    let seed = Seed::draw();
    for partitions in both_partitions() {
        let mut rng = StdRng::seed_from_u64(seed.0);
        let redis = Foreign::start();
        let server = || {
            spawn_app()
                .partitions(partitions)
                .at("2027-03-01T12:00:00Z")
                .with(|s| s.redis.url = redis.url())
        };
        let (one, other) = (server().await, server().await);
        let (apps, all) = ([&one.running().app, &other.running().app], 5_000_usize);
        // Monday brings everybody somewhere.
        for points in 1..100 {
            let users: Vec<_> = (points..all).step_by(99).map(|i| format!("user-{i}")).collect();
            fill(
                apps[points % 2],
                apps[0].boards.boards().get("points").unwrap(),
                &users,
                points as i64,
            )
            .await;
        }
        // Tuesday brings them to 100, from everywhere, all in one tick.
        one.set("2027-03-02T12:00:00Z");
        other.set("2027-03-02T12:00:00Z");
        let mut order: Vec<usize> = (1..all).collect();
        order.shuffle(&mut rng);
        let writes = order
            .into_iter()
            .enumerate()
            .map(|(n, i)| bring_to_100(apps[n % 2], i));
        let applied: Vec<Applied> = stream::iter(writes).buffer_unordered(64).collect().await;

        let mut of: BTreeMap<u32, Vec<&Applied>> = BTreeMap::new();
        for applied in &applied {
            let home =
                (0..partitions).find(|&p| Partition::number(p) == Partition::of(&applied.user, partitions));
            of.entry(home.unwrap()).or_default().push(applied);
        }
        for (p, mut applied) in of {
            applied.sort_by_key(|applied| applied.turn);
            let turns: Vec<u64> = applied.iter().map(|applied| applied.turn).collect();
            assert_eq!(
                turns,
                (1..=applied.len() as u64).collect::<Vec<_>>(),
                "each another turn"
            );
            let out_of_hand = applied
                .windows(2)
                .filter(|pair| pair[0].issued_by != pair[1].issued_by)
                .count();
            assert!(out_of_hand > applied.len() / 100, "both servers write at once");
            for (period, by_points) in [
                (Period::AllTime, false),
                (Period::Week, false),
                (Period::Day, true),
            ] {
                let mut wanted: Vec<(i64, &str)> = applied
                    .iter()
                    .map(|applied| (if by_points { applied.added } else { 100 }, applied.user.as_str()))
                    .collect();
                wanted.sort_by_key(|(points, _)| -points); // stable: equals stay in the order of their writes
                let (board, span) = at_hand(apps[0], "points", period);
                let shown = everybody(apps[1], &board, &span, one.clock.now()).await;
                let there = |user: &UserId| Partition::of(user, partitions) == Partition::number(p);
                let shown: Vec<_> = shown
                    .iter()
                    .filter(|standing| there(&standing.user))
                    .map(|standing| (standing.points, standing.user.as_str()))
                    .collect();
                assert_eq!(shown, wanted, "{period:?}, partition {p} of {partitions}");
            }
        }
    }
}

struct Applied {
    user: UserId,
    added: i64,
    /// Which server it went through.
    issued_by: usize,
    /// From 1: as which of its partition's writes it was applied. Everybody is new to the day's board, so the number of
    /// its members tells, whatever ranks and ties say.
    turn: u64,
}

async fn bring_to_100(app: &App, i: usize) -> Applied {
    let (board, now) = (app.boards.boards().get("points").unwrap(), app.clock.now());
    let held = (i - 1) % 99 + 1;
    let score = Score {
        board,
        user: UserId::parse(&format!("user-{i}")).unwrap(),
        operator: ScoreOperator::Increment,
        points: 100 - held as i64,
    };
    let submitted = app
        .boards
        .submit(&score, now, &Operation::unique(now))
        .await
        .unwrap();
    let Submitted::Counted { periods, .. } = submitted else {
        panic!("{submitted:?}")
    };
    assert_eq!(
        (periods[0].previous_points, periods[3].standing.points),
        (None, 100)
    );
    Applied {
        user: score.user,
        added: score.points,
        issued_by: std::ptr::from_ref(app) as usize,
        turn: periods[0].standing.participants,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equals_stand_by_the_bytes_of_their_ids_whatever_the_locale_of_redis() {
    let ids = [
        "!", "-x", "00", "B", "Zed", "Zz", "_x", "a", "amY", "amy", "amy2", "user-10", "user-2", "zz", "~",
    ];
    for partitions in both_partitions() {
        let redis = Foreign::start();
        let app = spawn_app()
            .partitions(partitions)
            .with(|settings| {
                settings.redis.url = redis.url();
                settings.board[0].tie_break = TieBreak::None;
            })
            .await;
        let service = app.service();
        let scores: Vec<_> = ids.iter().rev().map(|id| (id.to_string(), 5)).collect();
        service.score_all("points", &scores).await;
        let mut cursor: Option<String> = None;
        for (place, id) in ids.into_iter().enumerate() {
            let arguments = Way::Forwards.arguments(1, cursor.as_deref());
            let page = service.entries("points", &Value::Null, &arguments).await;
            assert_eq!(page.order(), [(id, 5)], "P = {partitions}");
            let rank = service.rank("points", "DAY", id).await.unwrap();
            assert_eq!(rank.rank, place as u64 + 1, "{id}, P = {partitions}");
            cursor = page.page_info.end_cursor;
        }
    }
}

/// What Redis has done so far.
struct Work {
    /// How often each command on sorted sets was run.
    sorted_sets: BTreeMap<String, u64>,
    /// How often scripts were run.
    scripts: u64,
    /// For how long, in microseconds.
    microseconds: u64,
}

async fn work(app: &TestApp) -> Work {
    let info: String = redis::cmd("INFO")
        .arg("commandstats")
        .query_async(&mut app.redis().await)
        .await
        .unwrap();
    let number = |line: &str, field: &str| -> u64 {
        let from = line.find(field).unwrap() + field.len();
        line[from..].split(',').next().unwrap().trim().parse().unwrap()
    };
    let mut work = Work {
        sorted_sets: BTreeMap::new(),
        scripts: 0,
        microseconds: 0,
    };
    for (name, stat) in info
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'))
    {
        match name {
            "evalsha" => (work.scripts, work.microseconds) = (number(stat, "calls="), number(stat, "usec=")),
            _ if name.starts_with('z') => {
                work.sorted_sets.insert(name.to_owned(), number(stat, "calls="));
            }
            _ => {} // the keeper's and the supervisor's, which come when they come
        }
    }
    work
}

/// What Redis does for a step.
async fn cost<T>(app: &TestApp, step: impl Future<Output = T>) -> Work {
    let before = work(app).await;
    step.await;
    let mut spent = work(app).await;
    for (name, calls) in &mut spent.sorted_sets {
        *calls -= before.sorted_sets.get(name).copied().unwrap_or(0);
    }
    spent.sorted_sets.retain(|_, calls| *calls > 0);
    spent.scripts -= before.scripts;
    spent.microseconds -= before.microseconds;
    spent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_on_a_new_day_turns_the_day_once() {
    let app = spawn_app()
        .partitions(8)
        .with(|settings| settings.board[0].windows = vec![7])
        .await;
    let service = app.service();
    let crowd: Vec<_> = (0..400).map(|i| (format!("user-{i}"), i)).collect();
    service.score_all("points", &crowd).await;
    app.set("2027-03-02T08:00:00Z");
    let scripts = cost(&app, service.score_all("points", &crowd)).await.scripts;
    // Each score is refused and sent again; a partition's turn takes some twenty steps, the keeper may make its own.
    assert!((400..2_000).contains(&scripts), "{scripts} scripts");
    let wanted = service
        .entries("points", &json!({ "lastDays": 7 }), "(first: 2)")
        .await;
    assert_eq!(wanted.order(), [("user-399", 798), ("user-398", 796)]);
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stderr)] // the figures are part of what it shows
async fn twelve_thousand_equals_cost_one_more_no_scan() {
    for tie_break in [TieBreak::FirstToReach, TieBreak::None] {
        let app = spawn_app()
            .with(|settings| {
                settings.board[0].tie_break = tie_break;
                settings.board[0].windows = vec![7];
            })
            .await;
        let (service, inner) = (app.service(), &app.running().app);
        let board = inner.boards.boards().get("points").unwrap();
        let users: Vec<String> = (0..12_000).map(|i| format!("user-{i}")).collect();
        service.score("points", "m", 99).await; // loads the scripts
        service.rank("points", "DAY", "m").await;
        service
            .around("points", &json!({ "period": "DAY" }), "m", 5)
            .await;
        let mut costs = Vec::new();
        for (from, to, late) in [(0, 100, "late"), (100, 12_000, "later")] {
            fill(inner, board, &users[from..to], 100).await;
            let all = inner.keyspace.partitions().collect::<Vec<_>>();
            let built = inner.boards.look_after(&all, app.clock.now()).await;
            built.unwrap(); // the keeper finds nothing to build while commands are counted
            let update = cost(&app, service.score("points", late, 100)).await;
            let rank = cost(&app, service.rank("points", "DAY", late)).await;
            let around = cost(
                &app,
                service.around("points", &json!({ "period": "DAY" }), late, 5),
            )
            .await;
            eprintln!(
                "{tie_break:?}, {to} equals: update {} us, rank {} us, around {} us",
                update.microseconds, rank.microseconds, around.microseconds
            );
            costs.push([update, rank, around].map(|cost| cost.sorted_sets));
        }
        let [few, many] = [&costs[0], &costs[1]];
        assert!(few.iter().all(|counts| !counts.is_empty()));
        assert_eq!(few[..2], many[..2], "{tie_break:?}: update and rank");
        // A position among equals by id is bisected: each of the two pages may take a few looks more, as often as the
        // crowd has doubled.
        let all = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
        assert!(all(&many[2]) <= all(&few[2]) + 2 * 7 + 2, "{few:?}, {many:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_taken_off_moves_everybody_behind_up_in_every_span() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|settings| settings.board[0].windows = vec![1, 7])
            .await;
        let service = app.service();
        let spans = PERIODS.map(|period| json!({ "period": period })).into_iter();
        let spans: Vec<Value> = spans
            .chain([json!({ "lastDays": 1 }), json!({ "lastDays": 7 })])
            .collect();
        let place = async |span: &Value, user: &str| {
            let query = format!(
                "query ($span: BoardSpan, $user: ID) {{ rank(board: \"points\", span: $span, userId: $user) {{ {STANDING} }} }}"
            );
            let shown: Option<Standing> = service.field(&query, json!({ "span": span, "user": user })).await;
            shown.map(|standing| (standing.rank, standing.competition, standing.dense))
        };
        let remove = async |user: &str| {
            let query =
                "mutation ($user: ID!) { removeFromBoard(board: \"points\", userId: $user) { removed } }";
            service.data(query, json!({ "user": user })).await["removeFromBoard"]["removed"]
                .as_bool()
                .unwrap()
        };
        for (rank, user) in ["a", "b", "c", "d", "e", "f"].iter().enumerate() {
            service.score("points", user, 100 - 10 * rank as i64).await;
        }
        assert!(remove("d").await);
        for span in &spans {
            assert_eq!(place(span, "d").await, None, "{span}");
            assert_eq!(place(span, "c").await, Some((3, 3, 3)), "{span}");
            assert_eq!(place(span, "e").await, Some((4, 4, 4)), "{span}");
            assert_eq!(place(span, "f").await, Some((5, 5, 5)), "{span}");
        }
        let version = service.top("points", "DAY", 0).await.version;
        for absent in ["d", "nobody"] {
            assert!(!remove(absent).await, "{absent}");
        }
        assert_eq!(
            service.top("points", "DAY", 0).await.version,
            version,
            "nothing changed"
        );
        for user in ["a", "b", "c", "e", "f"] {
            assert!(remove(user).await, "{user}");
        }
        for span in &spans {
            assert_eq!(service.entries("points", span, "").await.order(), [], "{span}");
        }
        service.score("points", "d", 7).await;
        for span in &spans {
            assert_eq!(place(span, "d").await, Some((1, 1, 1)), "{span}");
            assert_eq!(
                service.entries("points", span, "").await.order(),
                [("d", 7)],
                "{span}"
            );
        }
    }
}

/// Two processes of the program over one Redis, a board whose one tick is longer than the test takes.
#[tokio::test(flavor = "multi_thread")]
async fn equals_of_one_tick_stand_as_they_came_through_two_processes() {
    let seed = Seed::draw();
    let redis = Foreign::start();
    let config = format!(
        "[redis]\nurl = \"{}\"\n[[board]]\nid = \"points\"\nperiods = [\"ALL_TIME\"]\nmax_points = 4_294_967_295\n\
         max_tick_ms = 2_000_000\n",
        redis.url()
    );
    let (one, other) = (Place::new(&config), Place::new(&config));
    let servers = [&one, &other].map(|place| Server::start(place.serve()));
    let urls = servers
        .each_ref()
        .map(|server| format!("http://{}/graphql", server.address()));
    let http = reqwest::Client::new();
    let ask = async |url: &str, query: String| -> Value {
        let request = http
            .post(url)
            .header("X-Dev-Role", "SERVICE")
            .json(&json!({ "query": query }));
        request.send().await.unwrap().json().await.unwrap()
    };
    let mut order: Vec<String> = (0..5_000).map(|i| format!("user-{i}")).collect();
    order.shuffle(&mut StdRng::seed_from_u64(seed.0));
    for (n, user) in order.iter().enumerate() {
        let score = format!("{{ board: \"points\", userId: \"{user}\", points: 100 }}");
        let answer = ask(
            &urls[n % 2],
            format!("mutation {{ submitScore(input: {score}) {{ outcome }} }}"),
        )
        .await;
        assert_eq!(answer["data"]["submitScore"]["outcome"], "APPLIED", "{answer}");
    }
    let (mut shown, mut after) = (Vec::new(), String::new());
    loop {
        let page = ask(
            &urls[shown.len() / 500 % 2],
            format!(
                "{{ leaderboard(board: \"points\") {{ entries(first: 500{after}) {{ nodes {{ user {{ id }} points }}
                    pageInfo {{ hasNextPage endCursor }} }} }} }}"
            ),
        );
        let page = page.await["data"]["leaderboard"]["entries"].take();
        for node in page["nodes"].as_array().unwrap() {
            assert_eq!(node["points"], 100);
            shown.push(node["user"]["id"].as_str().unwrap().to_owned());
        }
        after = format!(", after: {}", page["pageInfo"]["endCursor"]);
        if page["pageInfo"]["hasNextPage"] == false {
            break;
        }
    }
    assert!(
        shown == order,
        "not in the order in which they came; TALLYBOARD_SEED={}",
        seed.0
    );
}
