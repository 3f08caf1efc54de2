//! What figment could not read, in one line: where it stands and what would be right there.

use figment::Error;
use figment::error::{Actual, Kind};

use super::PREFIX;

pub(super) fn in_words(error: &Error) -> String {
    // A file's source is its path; variables have none.
    let file = error
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.source.as_ref());
    let variable = error
        .metadata
        .as_ref()
        .filter(|metadata| metadata.name.contains(PREFIX))
        .map(|_| format!("{PREFIX}{}", error.path.join("__").to_ascii_uppercase()));
    let key = match &variable {
        Some(variable) => variable.clone(),
        None => {
            let path = error.path.iter().map(String::as_str);
            path.filter(|part| *part != "default")
                .collect::<Vec<_>>()
                .join(".")
        }
    };
    let place = match (file, key.as_str()) {
        (None, "") => String::new(),
        (None, key) => format!("{key}: "),
        (Some(file), "") => format!("{file}: "),
        (Some(file), key) => format!("{file}: {key}: "),
    };
    // Whatever stands there instead of text may be a part of the secret.
    if error.path.last().is_some_and(|key| key == "jwt_secret") {
        return place + "is no text; quote it";
    }
    place + &reason(&error.kind, variable.as_deref())
}

fn reason(kind: &Kind, variable: Option<&str>) -> String {
    match kind {
        Kind::UnknownField(_, known) => format!("there is no such setting; there are {}", known.join(", ")),
        Kind::UnknownVariant(found, known) => format!("{found:?} is none of {}", known.join(", ")),
        Kind::InvalidType(Actual::Unsigned(number), expected) if variable.is_some() && is_text(expected) => {
            format!("is text; write it as '\"{number}\"', or it is taken for a number")
        }
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            format!(
                "found {} where {} belongs",
                found_in_words(found),
                expected_in_words(expected)
            )
        }
        other => one_line(&other.to_string()),
    }
}

fn is_text(expected: &str) -> bool {
    expected_in_words(expected) == "text"
}

fn found_in_words(found: &Actual) -> String {
    match found {
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Bool(truth) => truth.to_string(),
        Actual::Str(text) => format!("{text:?}"),
        Actual::Seq => "a list".into(),
        Actual::Map => "a section".into(),
        other => other.to_string(),
    }
}

fn expected_in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "path string" => "text",
        "a sequence" => "a list",
        other if other.starts_with("struct ") => "a section",
        other => other,
    }
}

/// Without the drawing of the line that a TOML error shows.
fn one_line(text: &str) -> String {
    let drawn = |line: &&str| {
        line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit())
            .starts_with('|')
    };
    let said = text.lines().filter(|line| !line.is_empty() && !drawn(line));
    said.collect::<Vec<_>>().join("; ")
}
