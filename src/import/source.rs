//! The bytes of a file, as they are read.
//!
//! Owns the digest of what went by, the line ends, and the refusal of a row that would not fit into memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The longest row, in bytes. Far more than any; without a bound an open quote would take in the rest of the file.
const LONGEST_ROW: usize = 1 << 20;

/// Reads a file with every line, also the last, ended by a bare `\n`, whatever ends it there.
pub struct Source {
    file: File,
    length: u64,
    taken: u64,
    sha: Sha256,
    /// Whether the last byte of the file so far was a carriage return.
    returned: bool,
    /// Whether the last byte handed out ended a line.
    line_ended: bool,
    row: usize,
}

impl Source {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> io::Result<Source> {
        let file = File::open(path)?;
        Ok(Source {
            length: file.metadata()?.len(),
            file,
            taken: 0,
            sha: Sha256::new(),
            returned: false,
            line_ended: true,
            row: 0,
        })
    }

    /// The file's length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// How many bytes have been read.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// A row begins: what is read from now on counts as its own.
    pub fn begin_row(&mut self) {
        self.row = 0;
    }

    /// The SHA-256 of what was read, in hexadecimal.
    pub fn digest(self) -> String {
        let digest = self.sha.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Turns the line ends in `buffer` into `\n`; answers how many bytes are left.
    fn unify_line_ends(&mut self, buffer: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..buffer.len() {
            let byte = buffer[at];
            let ended_before = byte == b'\n' && self.returned;
            self.returned = byte == b'\r';
            if !ended_before {
                buffer[kept] = if self.returned { b'\n' } else { byte };
                kept += 1;
            }
        }
        kept
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.file.read(buffer)?;
            if read == 0 {
                if self.line_ended || buffer.is_empty() {
                    return Ok(0);
                }
                self.line_ended = true;
                buffer[0] = b'\n';
                return Ok(1);
            }
            self.taken += read as u64;
            self.sha.update(&buffer[..read]);
            let kept = self.unify_line_ends(&mut buffer[..read]);
            if kept == 0 {
                continue;
            }
            self.line_ended = buffer[kept - 1] == b'\n';
            self.row += kept;
            if self.row > LONGEST_ROW {
                return Err(io::Error::other(
                    "the row that begins here is longer than 1 MiB; is a quote left open?",
                ));
            }
            return Ok(kept);
        }
    }
}
