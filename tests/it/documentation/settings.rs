//! Settings as the code has them, and as docs/configuration.md shows them.

use std::collections::BTreeMap;

use figment::Figment;
use figment::providers::{Format, Toml};
use serde_json::{Value, json};
use tallyboard::config::{Board, Milestone, Overrides, Settings};
use tallyboard::leaderboard::Boards;

use super::page;

/// What must be given where its section is written, so that it has no default to show.
pub const REQUIRED: [&str; 2] = ["board.id", "checkin.milestone.streak"];

/// For each section, by its name, its keys with their defaults.
pub type Sections = BTreeMap<String, BTreeMap<String, Value>>;

/// A key as the page has it: `` - `key = default`: what it means. Bounds: … Example: `key = value` ``.
pub struct Shown {
    pub default: Option<Value>,
    pub said: String,
}

/// What the settings are when nobody says anything; of a list of sections, those of one.
pub fn defaults() -> Sections {
    let mut sections = Sections::new();
    let mut settings = serde_json::to_value(Settings::default()).unwrap();
    settings["board"] = serde_json::to_value(Board::default()).unwrap();
    let milestone: Milestone = serde_json::from_value(json!({ "streak": 1 })).unwrap();
    settings["checkin"]["milestone"] = serde_json::to_value(milestone).unwrap();
    gather("", &settings, &mut sections);
    sections
}

pub fn gather(section: &str, keys: &Value, sections: &mut Sections) {
    for (key, value) in keys.as_object().unwrap() {
        let path = if section.is_empty() {
            key.clone()
        } else {
            format!("{section}.{key}")
        };
        if value.is_object() {
            gather(&path, value, sections);
        } else {
            let keys = sections.entry(section.to_owned()).or_default();
            keys.insert(key.clone(), value.clone());
        }
    }
}

pub fn toml(text: &str) -> Value {
    let read = Figment::from(Toml::string(text)).extract();
    read.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The keys of the page, by their sections.
pub fn shown() -> BTreeMap<String, BTreeMap<String, Shown>> {
    let page = page::read("configuration.md");
    let mut sections: BTreeMap<String, BTreeMap<String, Shown>> = BTreeMap::new();
    let (mut section, mut key) = (String::new(), None);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.trim_matches(['`', '[', ']']).to_owned();
            key = None;
        } else if let Some(rest) = line.strip_prefix("- `") {
            let (code, said) = rest.split_once('`').unwrap();
            let (name, default) = match code.split_once(" = ") {
                Some((name, _)) => (name, Some(toml(code)[name].clone())),
                None => (code, None),
            };
            let said = said.to_owned();
            let keys = sections.entry(section.clone()).or_default();
            let twice = keys.insert(name.to_owned(), Shown { default, said });
            assert!(twice.is_none(), "{section}.{name} stands there twice");
            key = Some(name.to_owned());
        } else if let (Some(more), Some(key)) = (line.strip_prefix("  "), &key) {
            let said = &mut sections.get_mut(&section).unwrap().get_mut(key).unwrap().said;
            *said += " ";
            *said += more;
        }
    }
    sections
}

/// Loads a file with this one setting, and what has to stand beside it.
pub fn load(section: &str, key: &str, setting: &str) -> Result<(), String> {
    let text = match (section, key) {
        ("board", "id") => format!("[[board]]\n{setting}\n"),
        // Heat and windows are for some boards only, and ticks are coarse only where points are many.
        ("board", _) => format!("[[board]]\nid = \"a\"\n{setting}\n"),
        ("checkin.milestone", "streak") => format!("[[checkin.milestone]]\n{setting}\n"),
        ("checkin.milestone", _) => format!("[[checkin.milestone]]\nstreak = 1\n{setting}\n"),
        ("checkin", "points_board" | "count_board") => {
            format!("[checkin]\n{setting}\n[[board]]\nid = \"points\"\n[[board]]\nid = \"check_ins\"\n")
        }
        _ => format!("[{section}]\n{setting}\n"),
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let settings =
        Settings::load(Some(file.path()), &Overrides::default()).map_err(|error| error.to_string())?;
    Boards::plan(&settings).map_err(|error| error.to_string())?;
    Ok(())
}

/// What stands behind `Bounds:`, if it is two numbers.
pub fn bounds(said: &str) -> Option<(i64, i64)> {
    let (_, bounds) = said.split_once("Bounds: ")?;
    let (low, rest) = bounds.split_once(" to ")?;
    let high = rest.split(|c: char| c != ',' && !c.is_ascii_digit()).next()?;
    let number = |text: &str| text.trim_end_matches(',').replace(',', "").parse().ok();
    Some((number(low)?, number(high)?))
}
