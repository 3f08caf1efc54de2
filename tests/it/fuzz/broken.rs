//! Breaking requests.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use super::corpus::{DOCUMENTS, NAMES, SUBSCRIPTIONS, WORDS, values};

fn chance(random: &mut StdRng, of: u32) -> bool {
    random.random_ratio(1, of)
}

/// Random bytes, up to so many.
pub fn bytes(random: &mut StdRng, most: usize) -> Vec<u8> {
    let length = random.random_range(0..=most);
    (0..length).map(|_| random.random()).collect()
}

/// Changes some bytes: lost, doubled, turned, or others put between.
pub fn bytewise(random: &mut StdRng, mut text: Vec<u8>) -> Vec<u8> {
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=text.len());
        let end = (at + random.random_range(0..16)).min(text.len());
        match random.random_range(0..5) {
            0 => drop(text.drain(at..end)),
            1 => {
                let doubled = text[at..end].to_vec();
                drop(text.splice(at..at, doubled));
            }
            2 => text[at..end]
                .iter_mut()
                .for_each(|byte| *byte ^= 1 << random.random_range(0..8)),
            3 => drop(text.splice(at..at, bytes(random, 8))),
            _ => text.truncate(at.max(1)),
        }
    }
    text
}

/// A document, most often broken somewhere.
pub fn document(random: &mut StdRng) -> String {
    let of = if chance(random, 4) {
        SUBSCRIPTIONS
    } else {
        DOCUMENTS
    };
    let text = *of.choose(random).unwrap();
    match random.random_range(0..6) {
        0 | 1 => text.to_owned(),
        2 => String::from_utf8_lossy(&bytewise(random, text.into())).into_owned(),
        3 => {
            // Two documents from somewhere to somewhere.
            let other = *DOCUMENTS.choose(random).unwrap();
            let cut = |random: &mut StdRng, text: &str| random.random_range(0..=text.len());
            let (from, to) = (cut(random, text), cut(random, other));
            format!("{}{}", &text[..from], &other[to..])
        }
        4 => {
            let (open, close) = [("{ viewer ", "}"), ("[", "]"), ("... { ", "}"), ("(a: ", ")")]
                .choose(random)
                .copied()
                .unwrap();
            let deep = random.random_range(1..2_000);
            format!("{{ {}{} }} {text}", open.repeat(deep), close.repeat(deep))
        }
        _ => {
            let mut words: Vec<&str> = text.split(' ').collect();
            for _ in 0..random.random_range(1..=4) {
                let at = random.random_range(0..words.len());
                match random.random_range(0..3) {
                    0 => words[at] = WORDS.choose(random).unwrap(),
                    1 => words.insert(at, WORDS.choose(random).unwrap()),
                    _ => words.insert(at, words[random.random_range(0..words.len())]),
                }
            }
            words.join(" ")
        }
    }
}

/// A request as clients send it, with whatever in its variables.
pub fn request(random: &mut StdRng) -> Value {
    let values = values();
    let mut variables = Map::new();
    for name in NAMES {
        if !chance(random, 8) {
            variables.insert((*name).to_owned(), values.choose(random).unwrap().clone());
        }
    }
    let mut request = json!({ "query": document(random), "variables": variables });
    if chance(random, 6) {
        let keys = ["query", "variables", "operationName", "extensions", "id", "type"];
        request[*keys.choose(random).unwrap()] = values.choose(random).unwrap().clone();
    }
    if chance(random, 12) {
        let hash = String::from_utf8_lossy(&bytes(random, 64)).into_owned();
        request["extensions"] =
            json!({ "persistedQuery": { "version": random.random_range(0..3), "sha256Hash": hash } });
    }
    request
}

/// The body of a POST.
pub fn body(random: &mut StdRng) -> Vec<u8> {
    let text = match random.random_range(0..10) {
        0 => return bytes(random, 2_000),
        1 => {
            let many = random.random_range(0..12);
            Value::from((0..many).map(|_| request(random)).collect::<Vec<_>>()).to_string()
        }
        _ => request(random).to_string(),
    };
    match chance(random, 4) {
        true => bytewise(random, text.into()),
        false => text.into(),
    }
}

/// A message to a socket.
pub fn message(random: &mut StdRng) -> Vec<u8> {
    let id = *["1", "2", "3", "", "x"].choose(random).unwrap();
    let kind = *[
        "subscribe",
        "start",
        "complete",
        "stop",
        "ping",
        "pong",
        "connection_init",
        "connection_terminate",
        "next",
    ]
    .choose(random)
    .unwrap();
    let text = match random.random_range(0..8) {
        0 => return bytes(random, 300),
        1 => json!({ "id": id, "type": kind }),
        2 => json!({ "type": kind, "payload": values().choose(random).unwrap() }),
        _ => {
            json!({ "id": id, "type": if chance(random, 4) { kind } else { "subscribe" }, "payload": request(random) })
        }
    };
    match chance(random, 6) {
        true => bytewise(random, text.to_string().into()),
        false => text.to_string().into(),
    }
}
