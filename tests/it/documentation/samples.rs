//! The requests on docs/api.md and docs/errors.md, sent to a real server, and the answers that stand below them.

use std::collections::BTreeMap;

use tallyboard::config::{Overrides, Settings};

use super::{page, story};
use crate::harness::*;

/// When all requests are sent: a Monday.
const NOW: &str = "2026-11-30T08:00:00Z";

/// The demo's server, where amy has checked in on Friday and on Saturday, bob on Friday, and zed on Saturday.
async fn seeded() -> TestApp {
    let demo = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/tallyboard.toml");
    let demo = Settings::load(Some(&demo), &Overrides::default()).unwrap();
    let app = spawn_app().at("2026-11-27T08:00:00Z").with(|settings| {
        settings.board = demo.board;
        settings.checkin = demo.checkin;
        settings.redis.timeout_ms = 1_000;
    });
    let app = app.await;
    for (instant, users) in [
        ("2026-11-27T08:00:00Z", ["amy", "bob"]),
        ("2026-11-28T09:00:00Z", ["amy", "zed"]),
    ] {
        app.set(instant);
        for user in users {
            app.user(user).check_in().await;
        }
    }
    app.set(NOW);
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_the_guide_is_answered_as_it_shows() {
    let app = seeded().await;
    let found = story::differences(&app, "api.md").await;
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_the_page_on_errors_is_answered_as_it_shows() {
    let app = seeded().await;
    let found = story::differences(&app, "errors.md").await;
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_field_of_the_roots_has_its_place_in_the_guide() {
    let guide = page::read("api.md");
    let sections: BTreeMap<&str, &str> = guide
        .split("\n### `")
        .skip(1)
        .filter_map(|section| section.split_once("`\n"))
        .collect();
    for field in crate::access::declared().into_keys() {
        let section = sections
            .get(field.as_str())
            .unwrap_or_else(|| panic!("docs/api.md has no section ### `{field}`"));
        let (said, sample) = section
            .split_once("```graphql\n")
            .unwrap_or_else(|| panic!("docs/api.md shows no request for {field}"));
        assert!(
            said.split_whitespace().count() >= 5,
            "docs/api.md does not say when to ask {field}"
        );
        let (sample, _) = sample.split_once("```").unwrap();
        assert!(
            sample.contains(&field),
            "docs/api.md asks something else below {field}"
        );
    }
}
