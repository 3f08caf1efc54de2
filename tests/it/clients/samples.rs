//! What docs/subscriptions.md shows.

use std::path::Path;

use serde_json::{Value, json};

use super::{Client, Script};
use crate::harness::*;

const MOVES: &str = "subscription { leaderboardChanged(board: \"points\", first: 3) {
    cause leaderboard { epoch version } top { user { id } } sinceVersion moves { user { id } from to } } }";

#[test]
fn the_samples_of_the_documentation_are_those_that_are_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documentation = std::fs::read_to_string(root.join("docs/subscriptions.md")).unwrap();
    let mut samples = 0;
    for entry in std::fs::read_dir(root.join("tests/clients")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "mjs") {
            continue;
        }
        let script = std::fs::read_to_string(&path).unwrap();
        let Some((_, sample)) = script.split_once("// sample: begins\n") else {
            continue;
        };
        let (sample, _) = sample.split_once("// sample: ends\n").unwrap();
        assert!(
            documentation.contains(&format!("```js\n{sample}```\n")),
            "docs/subscriptions.md shows something else than the sample of {}",
            path.display()
        );
        samples += 1;
    }
    assert!(samples > 0, "no script has a sample");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_moves_of_an_update_lead_to_its_order() {
    let app = spawn_app().await;
    let service = app.service();
    let mut script = Script::start(Client::Moves, &app.anonymous()).await;
    script.subscribe("board", MOVES, json!({})).await;
    assert_eq!(script.update("board").await["order"], json!([]));

    // Newcomers, a climb from last to first, a newcomer who pushes somebody out, an order turned around.
    for (user, points, order) in [
        ("amy", 10, vec!["amy"]),
        ("bob", 20, vec!["bob", "amy"]),
        ("cat", 5, vec!["bob", "amy", "cat"]),
        ("cat", 20, vec!["cat", "bob", "amy"]),
        ("dan", 22, vec!["cat", "dan", "bob"]),
        ("amy", 20, vec!["amy", "cat", "dan"]),
        ("dan", 4, vec!["amy", "dan", "cat"]),
    ] {
        service.score("points", user, points).await;
        let update = script.update("board").await;
        let top: Vec<&Value> = update["top"]
            .as_array()
            .unwrap()
            .iter()
            .map(|standing| &standing["user"]["id"])
            .collect();
        assert_eq!(top, order, "{update}");
        assert_eq!(update["moved"], true, "told by its moves: {update}");
        assert_eq!(update["order"], json!(order), "{update}");
    }

    let gone = "mutation { removeFromBoard(board: \"points\", userId: \"amy\") { removed } }";
    service.data(gone, json!({})).await;
    let update = script.update("board").await;
    assert_eq!(update["moved"], true, "{update}");
    assert_eq!(
        update["order"],
        json!(["dan", "cat", "bob"]),
        "who moves up into the top is told too: {update}"
    );
}
