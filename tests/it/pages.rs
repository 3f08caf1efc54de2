//! Pages of a board: ranks that go on, cursors that lose nobody, neighbours, and what cannot be asked.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tallyboard::config;
use tallyboard::leaderboard::{BoardOrder, ScoreOperator, TieBreak};

use crate::harness::*;

/// A board on which scores replace each other, so that tests can move users to and fro.
fn set_board(tie_break: TieBreak) -> config::Board {
    config::Board {
        id: "points".into(),
        operator: ScoreOperator::Set,
        tie_break,
        ..Default::default()
    }
}

fn all_time() -> Value {
    json!({ "period": "ALL_TIME" })
}

/// Everything that a walk shows, in the board's order.
async fn walk(service: &Caller<'_>, span: &Value, way: Way, size: usize) -> Vec<Standing> {
    let (mut seen, mut cursor): (Vec<Standing>, Option<String>) = (Vec::new(), None);
    loop {
        let page = service
            .entries("points", span, &way.arguments(size, cursor.as_deref()))
            .await;
        cursor = way.next(&page.page_info).map(str::to_owned);
        assert!(
            page.edges.len() == size || cursor.is_none(),
            "only the last page is shorter"
        );
        match way {
            Way::Forwards => seen.extend(page.rows()),
            Way::Backwards => drop(seen.splice(0..0, page.rows())),
        }
        if cursor.is_none() {
            return seen;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equals_share_ranks_by_each_method_on_every_page_size_both_ways() {
    for partitions in both_partitions() {
        for order in [BoardOrder::HighestFirst, BoardOrder::LowestFirst] {
            let app = spawn_app()
                .partitions(partitions)
                .with(|settings| {
                    settings.board[0].order = order;
                    settings.board[0].windows = vec![7];
                })
                .await;
            let service = app.service();
            let sign = if order == BoardOrder::HighestFirst { 1 } else { -1 };
            for (user, points) in [("d", 99), ("b", 100), ("a", 101), ("c", 100)] {
                service.score("points", user, sign * points).await;
            }
            for span in [json!({ "period": "DAY" }), json!({ "lastDays": 7 })] {
                for way in Way::BOTH {
                    for size in 1..=4 {
                        let rows = walk(&service, &span, way, size).await;
                        let ranks = |get: fn(&Standing) -> u64| rows.iter().map(get).collect::<Vec<_>>();
                        let said = format!("{span}, {way:?} by {size}, P = {partitions}, {order:?}");
                        assert_eq!(ranks(|s| s.competition), [1, 2, 2, 4], "{said}");
                        assert_eq!(ranks(|s| s.dense), [1, 2, 2, 3], "{said}");
                        assert_eq!(ranks(|s| s.rank), [1, 2, 3, 4], "{said}");
                    }
                }
            }
        }
    }
}

/// 250 users who share a dozen points.
fn a_crowd() -> Vec<(String, i64)> {
    (0..250).map(|i| (format!("user-{i}"), i * i % 12)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_of_any_page_size_visits_everybody_once_both_ways() {
    for (partitions, tie_break) in [
        (1, TieBreak::FirstToReach),
        (8, TieBreak::FirstToReach),
        (8, TieBreak::None),
    ] {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.board = vec![set_board(tie_break)])
            .await;
        let service = app.service();
        service.score_all("points", &a_crowd()).await;
        let span = all_time();
        let all = service.entries("points", &span, "(first: 500)").await;
        assert_eq!((all.total_count, all.edges.len()), (250, 250));
        let whole = all.clone().rows();
        let (mut ids, mut wanted): (Vec<_>, Vec<_>) = (
            whole.iter().map(|s| s.user.id.clone()).collect(),
            a_crowd().into_iter().map(|(user, _)| user).collect(),
        );
        ids.sort();
        wanted.sort();
        assert_eq!(ids, wanted, "each once");
        assert!(
            whole
                .iter()
                .zip(1..)
                .all(|(standing, rank)| standing.rank == rank),
            "ranks go on"
        );
        for way in Way::BOTH {
            for size in [7, 50, 249, 250, 251] {
                assert_eq!(walk(&service, &span, way, size).await, whole, "{way:?} by {size}");
            }
        }

        let last = &all.edges[249].cursor;
        let past = service
            .entries("points", &span, &format!("(first: 5, after: {last:?})"))
            .await;
        assert_eq!((past.order(), past.page_info.has_next_page), (vec![], false));
        assert_eq!(
            (past.page_info.start_cursor, past.page_info.end_cursor),
            (None, None)
        );
        let first = &all.edges[0].cursor;
        let past = service
            .entries("points", &span, &format!("(last: 5, before: {first:?})"))
            .await;
        assert_eq!((past.order(), past.page_info.has_previous_page), (vec![], false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_keeps_its_score_is_shown_once_while_others_move_between_the_pages() {
    for (partitions, tie_break) in [
        (1, TieBreak::FirstToReach),
        (8, TieBreak::FirstToReach),
        (8, TieBreak::None),
    ] {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.board = vec![set_board(tie_break)])
            .await;
        let service = app.service();
        service.score_all("points", &a_crowd()).await;
        for way in Way::BOTH {
            let mut shown: BTreeMap<String, usize> = BTreeMap::new();
            let mut cursor: Option<String> = None;
            for turn in 0_i64.. {
                let page = service
                    .entries("points", &all_time(), &way.arguments(20, cursor.as_deref()))
                    .await;
                for edge in &page.edges {
                    *shown.entry(edge.node.user.id.clone()).or_default() += 1;
                }
                cursor = way.next(&page.page_info).map(str::to_owned);
                if cursor.is_none() {
                    break;
                }
                // Every third user goes somewhere else, among them whoever the cursor names; one leaves altogether.
                let points = |i: i64| (i * 7 + turn * 5) % 13 + 20 * ((i + turn) % 2);
                let moved = (0..250).step_by(3).map(|i| (format!("user-{i}"), points(i)));
                let named = page.edges.iter().map(|edge| &edge.node.user.id);
                let named = named
                    .filter(|user| number(user) % 3 == 0)
                    .map(|user| (user.clone(), turn + 40));
                move_to(&service, moved.chain(named)).await;
                let query =
                    "mutation ($user: ID!) { removeFromBoard(board: \"points\", userId: $user) { removed } }";
                service
                    .data(query, json!({ "user": format!("user-{}", 3 * turn) }))
                    .await;
            }
            for i in (0..250).filter(|i| i % 3 != 0) {
                let times = shown.get(&format!("user-{i}"));
                assert_eq!(
                    times,
                    Some(&1),
                    "user-{i}, {way:?}, P = {partitions}, {tie_break:?}"
                );
            }
        }
    }
}

fn number(user: &str) -> i64 {
    user.trim_start_matches("user-").parse().unwrap()
}

/// Scores that may also change nothing.
async fn move_to(service: &Caller<'_>, scores: impl Iterator<Item = (String, i64)>) {
    let inputs: Vec<Value> = scores
        .map(|(user, points)| json!({ "board": "points", "userId": user, "points": points }))
        .collect();
    let query =
        "mutation ($inputs: [SubmitScoreInput!]!) { submitScores(inputs: $inputs) { rejection { code } } }";
    let shown: Vec<Value> = service.field(query, json!({ "inputs": inputs })).await;
    assert!(
        shown.iter().all(|scored| scored["rejection"].is_null()),
        "{shown:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_are_what_entries_show_at_the_same_place() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.board[0].windows = vec![7])
            .await;
        let service = app.service();
        let crowd: Vec<_> = a_crowd().into_iter().take(60).collect();
        service.score_all("points", &crowd).await;
        for span in [all_time(), json!({ "lastDays": 7 })] {
            let all = service.entries("points", &span, "(first: 500)").await.rows();
            for place in [0, 1, 2, 30, 57, 58, 59_usize] {
                for radius in [0, 1, 2, 5, 100] {
                    let around = service.around("points", &span, &all[place].user.id, radius).await;
                    let wanted = &all[place.saturating_sub(radius)..(place + radius + 1).min(60)];
                    assert_eq!(
                        around, wanted,
                        "{radius} around place {place} of {span}, P = {partitions}"
                    );
                }
            }
            assert_eq!(service.around("points", &span, "nobody", 5).await, []);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_board_and_a_single_member_are_boards_too() {
    for partitions in both_partitions() {
        let app = spawn_app()
            .partitions(partitions)
            .with(|s| s.board[0].windows = vec![7])
            .await;
        let service = app.service();
        for span in [all_time(), json!({ "lastDays": 7 })] {
            for arguments in [
                "",
                "(first: 0)",
                "(first: 5)",
                "(last: 5)",
                "(minPoints: 1, maxPoints: 2)",
            ] {
                let page = service.entries("points", &span, arguments).await;
                assert_eq!(
                    (page.order(), page.total_count),
                    (vec![], 0),
                    "{span} {arguments}"
                );
                let info = page.page_info;
                assert!(!info.has_next_page && !info.has_previous_page && info.end_cursor.is_none());
            }
            assert_eq!(service.around("points", &span, "amy", 5).await, []);
        }
        service.score("points", "amy", -3).await;
        for span in [all_time(), json!({ "lastDays": 7 })] {
            for (arguments, shown, more) in [
                ("", 1, (false, false)),
                ("(first: 0)", 0, (false, true)),
                ("(last: 0)", 0, (true, false)),
                ("(first: 1)", 1, (false, false)),
                ("(last: 1)", 1, (false, false)),
                ("(minPoints: -3, maxPoints: -3)", 1, (false, false)),
                ("(minPoints: -2)", 0, (false, false)),
                ("(minPoints: 2, maxPoints: -9)", 0, (false, false)),
                (
                    "(minPoints: -9007199254740991, maxPoints: 9007199254740991)",
                    1,
                    (false, false),
                ),
            ] {
                let page = service.entries("points", &span, arguments).await;
                let info = (page.page_info.has_previous_page, page.page_info.has_next_page);
                assert_eq!((page.edges.len(), info), (shown, more), "{span} {arguments}");
            }
            let around = service.around("points", &span, "amy", 5).await;
            assert_eq!(
                (around.len(), around[0].rank, around[0].percentile),
                (1, 1, 100.0)
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_refused_and_says_why() {
    let app = spawn_app().await;
    let service = app.service();
    service.score("points", "amy", 5).await;
    let cursor = |text: &str| format!("{:?}", URL_SAFE_NO_PAD.encode(text));
    for (arguments, said) in [
        ("first: 1, last: 1".to_owned(), "either first or last"),
        ("first: -1".to_owned(), "0 to 500"),
        ("last: -1".to_owned(), "0 to 500"),
        ("first: 501".to_owned(), "0 to 500"),
        ("last: 501".to_owned(), "0 to 500"),
        ("after: \"\"".to_owned(), "no cursor"),
        ("after: \"amy\"".to_owned(), "no cursor"),
        ("before: \"5 amy\"".to_owned(), "no cursor"),
        (format!("after: {}", cursor("5")), "no cursor"),
        (format!("after: {}", cursor("five amy")), "no cursor"),
        (format!("before: {}", cursor("inf amy")), "no cursor"),
        (format!("before: {}", cursor("5 a b")), "no cursor"),
        (format!("before: {}", cursor("5 ")), "no cursor"),
    ] {
        let query =
            format!("{{ leaderboard(board: \"points\") {{ entries({arguments}) {{ totalCount }} }} }}");
        let (code, message) = service.refusal(&query, json!({})).await;
        assert_eq!(code, "BAD_USER_INPUT", "{arguments}");
        assert!(message.contains(said), "{arguments}: {message}");
    }
    for field in [
        "top(first: -1) { points }",
        "top(first: 501) { points }",
        "around(userId: \"amy\", radius: -1) { points }",
        "around(userId: \"amy\", radius: 101) { points }",
        "around(userId: \"a b\") { points }",
        "standing(userId: \"\") { points }",
    ] {
        let query = format!("{{ leaderboard(board: \"points\") {{ {field} }} }}");
        assert_eq!(
            service.refusal(&query, json!({})).await.0,
            "BAD_USER_INPUT",
            "{field}"
        );
    }
}
