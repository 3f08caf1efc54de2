//! How long a document is, before it is parsed.
//!
//! Owns the counting of tokens (GraphQL specification, section 2.1), so that a text which would make a tree of a million
//! nodes is refused for the price of reading it once.

/// Whether a text has at most `most` tokens. Reads no further than that.
pub fn are_at_most(most: usize, text: &str) -> bool {
    let mut rest = text.as_bytes();
    let mut count = 0;
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b' ' | b'\t' | b'\n' | b'\r' | b',' | 0xef | 0xbb | 0xbf => {
                rest = after;
                continue;
            }
            b'#' => {
                let end = after.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                rest = &after[end.unwrap_or(after.len())..];
                continue;
            }
            b'"' => after_string(rest),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => {
                let end = after.iter().position(|byte| {
                    !matches!(byte, b'_' | b'.' | b'+' | b'-') && !byte.is_ascii_alphanumeric()
                });
                &after[end.unwrap_or(after.len())..]
            }
            b'.' => after.strip_prefix(b"..").unwrap_or(after),
            _ => after,
        };
        count += 1;
        if count > most {
            return false;
        }
    }
    true
}

/// What follows the string that `text` begins with; nothing, if it does not end.
fn after_string(text: &[u8]) -> &[u8] {
    let (quotes, mut rest) = match text.strip_prefix(br#"""""#) {
        Some(rest) => (&br#"""""#[..], rest),
        None => (&br#"""#[..], &text[1..]),
    };
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(quotes) {
            return after;
        }
        rest = match rest {
            [b'\\', b'"', b'"', b'"', after @ ..] if quotes.len() == 3 => after,
            [b'\\', _, after @ ..] if quotes.len() == 1 => after,
            [_, after @ ..] => after,
            [] => rest,
        };
    }
    rest
}

#[cfg(test)]
mod tests {
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
            (r#"{ a(b: """never ends" }"#, 6),
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
}
