//! How long a document is, before it is parsed.
//!
//! Owns the counting of tokens (GraphQL specification, section 2.1), so that a text which would make a tree of a million
//! nodes is refused for the price of reading it once. Where async-graphql's parser makes more of a text than the
//! specification does (`0000` is four numbers to it, `truetrue` two values, an unclosed block string an empty one and what
//! follows), this counts as the parser does: never less than what it makes.

/// A name as long as this counts once more: what is not known is looked for among all that are, letter by letter.
const LONG: usize = 64;

const WORDS: [&str; 7] = [
    "true",
    "false",
    "null",
    "query",
    "mutation",
    "subscription",
    "fragment",
];

/// Whether a text has at most `most` tokens. Reads no further than that.
pub fn are_at_most(most: usize, text: &str) -> bool {
    let mut rest = text.as_bytes();
    let mut blocks_end = true;
    let mut count = 0;
    while let Some((&first, after)) = rest.split_first() {
        let tokens;
        (tokens, rest) = match first {
            b' ' | b'\t' | b'\n' | b'\r' | b',' | 0xef | 0xbb | 0xbf => (0, after),
            b'#' => {
                let end = after.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                (0, &after[end.unwrap_or(after.len())..])
            }
            b'"' => (1, after_string(rest, &mut blocks_end)),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => after_name(rest),
            b'0'..=b'9' | b'-' => (1, after_number(rest)),
            b'.' => (1, after.strip_prefix(b"..").unwrap_or(after)),
            _ => (1, after),
        };
        count += tokens;
        if count > most {
            return false;
        }
    }
    true
}

/// How many tokens the name makes that `text` begins with, and what follows it.
fn after_name(text: &[u8]) -> (usize, &[u8]) {
    let is_part = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
    let length = text.iter().take_while(|byte| is_part(byte)).count();
    let (mut name, rest) = text.split_at(length);
    let mut tokens = length / LONG;
    // Where one of these can stand, the parser takes it off the front of a longer name.
    while let Some(after) = WORDS.iter().find_map(|word| name.strip_prefix(word.as_bytes())) {
        tokens += 1;
        name = after;
    }
    (tokens + usize::from(!name.is_empty()), rest)
}

/// What follows the number that `text` begins with.
fn after_number(text: &[u8]) -> &[u8] {
    fn digits(text: &[u8]) -> Option<&[u8]> {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (length > 0).then(|| &text[length..])
    }
    let whole = text.strip_prefix(b"-").unwrap_or(text);
    let mut rest = match whole.strip_prefix(b"0") {
        Some(after) => after,
        None => digits(whole).unwrap_or(whole),
    };
    if let Some(after) = rest.strip_prefix(b".").and_then(digits) {
        rest = after;
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let unsigned = after.strip_prefix(b"+").or_else(|| after.strip_prefix(b"-"));
        rest = digits(unsigned.unwrap_or(after)).unwrap_or(rest);
    }
    rest
}

/// What follows the string that `text` begins with; nothing, if it does not end. Once no block string ends any more, none
/// does further on either, and they are not looked through again.
fn after_string<'t>(text: &'t [u8], blocks_end: &mut bool) -> &'t [u8] {
    if let Some(block) = text.strip_prefix(br#"""""#).filter(|_| *blocks_end) {
        match after_block(block) {
            Some(after) => return after,
            None => *blocks_end = false,
        }
    }
    let mut rest = &text[1..];
    loop {
        rest = match rest {
            [] => return rest,
            [b'"', after @ ..] => return after,
            [b'\\', _, after @ ..] | [_, after @ ..] => after,
        };
    }
}

fn after_block(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', b'"', b'"', after @ ..] => return Some(after),
            [b'\\', b'"', b'"', b'"', after @ ..] | [_, after @ ..] => after,
        };
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use async_graphql::parser::types::{Directive, ExecutableDocument, Selection, SelectionSet};
    use async_graphql::{Positioned, Value};
    use proptest::prelude::*;

    use super::*;

    fn count(text: &str) -> usize {
        (0..).find(|&most| are_at_most(most, text)).unwrap()
    }

    #[test]
    fn tokens_are_those_of_the_specification() {
        for (text, tokens) in [
            ("", 0),
            ("\u{feff} ,\n\t# only { this }", 0),
            ("{ a }", 3),
            (
                "query A($b: [Int!]! = -1.5e+3) { a(b: $b) ...F @skip(if: true) }",
                32,
            ),
            (r#"{ a(b: "c \" } \\") }"#, 8),
            (r#"{ a(b: """c " \""" d""", e: "") }"#, 11),
            (r#"{ a(b: "never ends }"#, 6),
            (r#"{ a(b: """never ends" }"#, 8),
            (r#"{ a(b: """x"] ...F }"#, 11),
            (r##"{ """ """ """ """ "##, 3),
            ("{...F...G}", 6),
            ("[1-1-0.5e-3.0.0e]", 8),
            ("[0000]", 6),
            ("[truetruenullfalse nullable]", 8),
            ("ünï", 5),
        ] {
            assert_eq!(count(text), tokens, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_not_read_to_its_end() {
        let text = "{".repeat(1 << 20);
        assert!(!are_at_most(1000, &text));
    }

    /// What a document is made of, as the parser has it: never more than was written.
    fn leaves(document: &ExecutableDocument) -> usize {
        fn of_value(value: &Value) -> usize {
            1 + match value {
                Value::List(values) => values.iter().map(of_value).sum(),
                Value::Object(fields) => fields.values().map(|value| 1 + of_value(value)).sum(),
                _ => 0,
            }
        }
        // A macro, since the type of a value with variables has no public name.
        macro_rules! of_arguments {
            ($arguments:expr) => {{
                let each = $arguments.iter().map(|(_, value)| {
                    let known = value
                        .node
                        .clone()
                        .into_const_with(|_| Ok::<_, ()>(Value::Null));
                    1 + of_value(&known.unwrap())
                });
                each.sum::<usize>()
            }};
        }
        fn of_directives(directives: &[Positioned<Directive>]) -> usize {
            let each = directives.iter().map(|one| 1 + of_arguments!(one.node.arguments));
            each.sum()
        }
        fn of_set(set: &SelectionSet) -> usize {
            let each = set.items.iter().map(|item| match &item.node {
                Selection::Field(field) => {
                    let field = &field.node;
                    1 + usize::from(field.alias.is_some())
                        + of_arguments!(field.arguments)
                        + of_directives(&field.directives)
                        + of_set(&field.selection_set.node)
                }
                Selection::FragmentSpread(spread) => 1 + of_directives(&spread.node.directives),
                Selection::InlineFragment(inline) => {
                    1 + of_directives(&inline.node.directives) + of_set(&inline.node.selection_set.node)
                }
            });
            each.sum()
        }
        let operations = document.operations.iter().map(|(_, operation)| {
            let operation = &operation.node;
            let variables = operation.variable_definitions.len();
            1 + variables + of_directives(&operation.directives) + of_set(&operation.selection_set.node)
        });
        let fragments = document.fragments.values().map(|fragment| {
            1 + of_directives(&fragment.node.directives) + of_set(&fragment.node.selection_set.node)
        });
        operations.sum::<usize>() + fragments.sum::<usize>()
    }

    /// Pieces that parsers and counters may see differently, glued together with nothing between them.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "\"\"\"", "\"", "\\", "\\\"\"\"", "...", ".", "-", "0", "00", "1", "1.5", "e", "e3", "E-",
            "true", "null", "false", "a", "on", "F", "_", "[", "]", "{", "}", "(", ")", ":", "$", "@", "#",
            "\n", " ", ",", "ü", "\u{feff}",
        ]);
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn no_more_is_parsed_than_was_counted(value in pieces(), rest in pieces()) {
            for text in [
                format!("{{a(b:[{value}])}}"),
                format!("{{a(b:[{value}]){rest}}}"),
                format!("{{a {value}}}fragment F on Q{{a {rest}}}"),
                format!("query A($v:[I]={value}){{a(b:{{c:{rest}}})}}"),
                format!("{{a(b:[{value}"),
            ] {
                if let Ok(document) = parse_query(&text) {
                    prop_assert!(!are_at_most(leaves(&document) - 1, &text), "{text}");
                }
            }
        }
    }
}
