//! docs/errors.md, against the codes that there are.

use super::page;

/// What a source spells between `before` and `after`.
fn spelled<'s>(source: &'s str, before: &str, after: char) -> Vec<&'s str> {
    let mut found: Vec<&str> = source
        .split(before)
        .skip(1)
        .filter_map(|rest| rest.split(after).next())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn assert_rows<'c>(what: &str, codes: impl IntoIterator<Item = &'c str>) {
    let page = page::read("errors.md");
    let mut many = 0;
    for code in codes {
        many += 1;
        assert!(
            page.lines()
                .any(|line| line.starts_with(&format!("| `{code}` |"))),
            "docs/errors.md has no row for the {what} {code}"
        );
    }
    assert!(many > 0, "no {what} was found");
}

#[test]
fn the_page_has_a_row_for_every_code_of_an_error() {
    let source = include_str!("../../../src/error.rs");
    let codes = spelled(source, "=> \"", '"').into_iter();
    let is_code = |code: &&str| code.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    assert_rows("code", codes.filter(is_code));
}

#[test]
fn the_page_has_a_row_for_every_reason_of_a_rejected_score() {
    let schema = tallyboard::graphql::sdl();
    let (_, values) = schema.split_once("enum RejectionCode {").unwrap();
    let (values, _) = values.split_once('}').unwrap();
    let values = values.lines().map(str::trim);
    assert_rows(
        "rejection",
        values.filter(|line| !line.is_empty() && !line.starts_with('"')),
    );
}

#[test]
fn both_pages_have_a_row_for_every_code_with_which_a_socket_is_closed() {
    let source = include_str!("../../../src/live/protocol.rs");
    let codes = spelled(source, "Close::new(", ',');
    let codes = codes.into_iter().filter(|code| code.parse::<u16>().is_ok());
    let codes: Vec<&str> = codes.collect();
    assert_rows("close code", codes.iter().copied());
    let subscriptions = page::read("subscriptions.md");
    for code in codes {
        assert!(
            subscriptions.contains(&format!("| {code} |")),
            "docs/subscriptions.md has no row for {code}"
        );
    }
}
