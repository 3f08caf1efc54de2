//! What a script says on the channel of changes.
//!
//! Owns the reading of a message: `board points`, and for a score `board points amy 2026-11-30 -5 -7 all - -7`: who, and
//! for each span the key before (`-`: was not there) and after. Without spans, what others see of that user has changed. Pure; `leaderboard/score.lua` writes them.

use crate::ids::{BoardId, UserId};

/// A board has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardChanged {
    /// Which.
    pub board: BoardId,
    /// By whose score, if it was a score.
    pub scored: Option<Scored>,
}

/// Somebody's place before and after a score.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Who.
    pub user: UserId,
    /// In each span that the score changed; in none if only the user's profile changed.
    pub moved: Vec<Moved>,
}

/// A move within one span, in the keys that order its members (the smallest stands first).
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The span, as its set is named.
    pub span: String,
    /// The key before; `None`: was not there.
    pub before: Option<f64>,
    /// The key after.
    pub after: f64,
}

impl BoardChanged {
    /// Reads a message; `None` if it is none that this version knows.
    pub fn read(text: &str) -> Option<BoardChanged> {
        let mut words = text.strip_prefix("board ")?.split(' ');
        let board = BoardId::parse(words.next()?).ok()?;
        let Some(user) = words.next() else {
            return Some(BoardChanged { board, scored: None });
        };
        Some(BoardChanged {
            board,
            scored: scored(user, words),
        })
    }
}

/// Who scored; `None` if that cannot be read: then the board has changed all the same.
fn scored<'m>(user: &str, mut words: impl Iterator<Item = &'m str>) -> Option<Scored> {
    let user = UserId::parse(user).ok()?;
    let mut moved = Vec::new();
    while let Some(span) = words.next() {
        let before = match words.next()? {
            "-" => None,
            key => Some(key.parse().ok()?),
        };
        moved.push(Moved {
            span: span.to_owned(),
            before,
            after: words.next()?.parse().ok()?,
        });
    }
    Some(Scored { user, moved })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_which_board_and_if_it_can_who_moved_from_where_to_where() {
        let plain = BoardChanged::read("board points").unwrap();
        assert_eq!((plain.board.as_str(), plain.scored), ("points", None));
        let scored = BoardChanged::read("board points amy 2026-11-30 -5 -7 all - -7")
            .unwrap()
            .scored
            .unwrap();
        assert_eq!(scored.user.as_str(), "amy");
        let moved = |span: &str, before, after| Moved {
            span: span.into(),
            before,
            after,
        };
        assert_eq!(
            scored.moved,
            [moved("2026-11-30", Some(-5.0), -7.0), moved("all", None, -7.0)]
        );
        for foreign in ["", "board", "board ", "room lobby"] {
            assert_eq!(BoardChanged::read(foreign), None, "{foreign:?}");
        }
        for odd in ["board points amy all -5", "board points amy all x 1"] {
            let changed = BoardChanged::read(odd).unwrap();
            assert_eq!(
                (changed.board.as_str(), changed.scored),
                ("points", None),
                "{odd:?}"
            );
        }
    }
}
