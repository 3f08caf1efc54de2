//! docs/configuration.md and docs/tallyboard.example.toml, against the settings as the code has them.

use serde_json::Value;

use super::page;
use super::settings::{REQUIRED, Sections, Shown, bounds, defaults, gather, load, shown, toml};

#[test]
fn the_page_has_every_setting_with_its_default_and_no_other() {
    let (defaults, shown) = (defaults(), shown());
    for (section, keys) in &defaults {
        for (key, default) in keys {
            let path = format!("{section}.{key}");
            let shown = shown.get(section).and_then(|keys| keys.get(key));
            let shown =
                shown.unwrap_or_else(|| panic!("{path} is not in docs/configuration.md: it is {default}"));
            let wanted = (!REQUIRED.contains(&path.as_str())).then_some(default);
            assert_eq!(
                shown.default.as_ref(),
                wanted,
                "the default of {path} in docs/configuration.md"
            );
        }
    }
    for (section, keys) in &shown {
        for key in keys.keys() {
            let known = defaults.get(section).is_some_and(|keys| keys.contains_key(key));
            assert!(
                known,
                "docs/configuration.md has {section}.{key}, which there is not"
            );
        }
    }
}

#[test]
fn every_setting_on_the_page_says_what_it_means_with_an_example_that_loads() {
    for (section, keys) in shown() {
        for (key, Shown { default, said }) in keys {
            let path = format!("{section}.{key}");
            assert!(
                said.starts_with([':', ';']) && said.len() > 20,
                "{path} is not explained"
            );
            let is_number = default.as_ref().is_none_or(Value::is_number) && path != "board.id";
            assert!(
                !is_number || said.contains("Bounds: "),
                "{path} does not say its bounds"
            );
            if said.contains("*Not yet: ") {
                continue;
            }
            let (_, example) = said
                .split_once("Example: `")
                .unwrap_or_else(|| panic!("{path} has no example"));
            let (example, _) = example.split_once('`').unwrap();
            let value = &toml(example)[&key];
            assert!(
                !value.is_null(),
                "the example of {path} is one of something else: {example}"
            );
            assert_ne!(
                Some(value),
                default.as_ref(),
                "the example of {path} is its default"
            );
            if let Err(reason) = load(&section, &key, example) {
                panic!("the example of {path}: {reason}");
            }
        }
    }
}

#[test]
fn the_bounds_on_the_page_are_those_that_are_kept() {
    let mut checked = 0;
    for (section, keys) in shown() {
        for (key, Shown { said, .. }) in keys {
            let Some((low, high)) = bounds(&said) else {
                continue;
            };
            for (value, good) in [(low, true), (high, true), (low - 1, false), (high + 1, false)] {
                let loaded = load(&section, &key, &format!("{key} = {value}"));
                assert_eq!(
                    loaded.is_ok(),
                    good,
                    "{section}.{key} = {value} with bounds of {low} to {high}: {loaded:?}"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 25, "only {checked} bounds were read");
}

#[test]
fn the_example_file_has_every_setting_in_its_section_with_its_default() {
    let mut example = toml(&page::read("tallyboard.example.toml"));
    for list in ["/board", "/checkin/milestone"] {
        let list = example.pointer_mut(list).unwrap();
        *list = list[0].take();
    }
    let mut found = Sections::new();
    gather("", &example, &mut found);
    // What these are by default would show nothing.
    let shows_more = [
        "board.id",
        "board.title",
        "checkin.milestone.streak",
        "checkin.milestone.points",
        "checkin.milestone.make_up_cards",
    ];
    for (section, keys) in defaults() {
        for (key, default) in keys {
            let path = format!("{section}.{key}");
            let value = found.get(&section).and_then(|keys| keys.get(&key));
            let value = value.unwrap_or_else(|| panic!("{path} is not in docs/tallyboard.example.toml"));
            if !shows_more.contains(&path.as_str()) {
                assert_eq!(value, &default, "{path} in docs/tallyboard.example.toml");
            }
        }
    }
}
