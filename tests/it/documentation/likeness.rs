//! Whether an answer is what a page shows: `"…"` stands for any text, and at the beginning of a list for what is left out.

use serde_json::{Value, json};

use super::page::Block;

/// Whether an answer is what the page shows. Of HTTP it may have more headers.
pub fn is_shown(shown: &Block, answer: &str) -> bool {
    if shown.language != "http" {
        return is_as_shown(&json_of(&shown.text), &json_of(answer));
    }
    let head = |text: &str| text.split("\n\n").next().unwrap().to_ascii_lowercase();
    let (wanted, found) = (head(&shown.text), head(answer));
    wanted
        .lines()
        .all(|line| found.lines().any(|found| found == line))
        && is_as_shown(&json_of(message(&shown.text).1), &json_of(message(answer).1))
}

fn is_as_shown(shown: &Value, answer: &Value) -> bool {
    match (shown, answer) {
        (Value::String(text), Value::String(_)) if text == "…" => true,
        (Value::Object(shown), Value::Object(answer)) => {
            shown.len() == answer.len()
                && shown
                    .iter()
                    .all(|(key, value)| answer.get(key).is_some_and(|found| is_as_shown(value, found)))
        }
        (Value::Array(shown), Value::Array(answer)) => {
            let left_out = shown.first().is_some_and(|first| first == "…");
            let shown = &shown[usize::from(left_out)..];
            let answer = match answer.len().checked_sub(shown.len()) {
                Some(more) if left_out || more == 0 => &answer[more..],
                _ => return false,
            };
            shown
                .iter()
                .zip(answer)
                .all(|(shown, answer)| is_as_shown(shown, answer))
        }
        _ => shown == answer,
    }
}

/// Reads `NAME: VALUE` lines up to an empty one, and what follows it.
pub fn message(text: &str) -> (Vec<(&str, &str)>, &str) {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    (headers.collect(), body.trim())
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| json!(format!("no JSON: {error}: {text}")))
}
