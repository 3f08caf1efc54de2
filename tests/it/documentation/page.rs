//! Pages of docs/, read line by line.

use std::path::Path;

/// The text of a page.
pub fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A fenced block: the language it names, the rest of that line, and its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub language: String,
    pub note: String,
    pub text: String,
    /// The number of its first line.
    pub line: usize,
}

/// The fenced blocks of a page, in their order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (line, text) in page.lines().enumerate() {
        match text.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(named) => {
                let (language, note) = named.split_once(' ').unwrap_or((named, ""));
                blocks.push(Block {
                    language: language.into(),
                    note: note.into(),
                    text: String::new(),
                    line: line + 1,
                });
                open = true;
            }
            None if open => {
                let block = blocks.last_mut().unwrap();
                block.text += text;
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "a block is not closed");
    blocks
}
