//! What an operator sees of an import: a bar, the lines that were refused, a summary.

use std::fmt;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on standard error (none where that is no terminal), with room for refused lines above it.
pub struct Progress {
    bar: ProgressBar,
    rejected: u64,
}

impl Progress {
    /// A bar over `length` of `unit`.
    pub fn new(what: &'static str, length: u64, unit: &'static str) -> Progress {
        let template = format!("{what} {{wide_bar}} {{pos}}/{{len}} {unit}, {{eta}} left");
        let bar = ProgressBar::new(length);
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Progress { bar, rejected: 0 }
    }

    /// How far it is.
    pub fn at(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Says why a line is left out. Each is said at once, so that a long list costs no memory.
    #[allow(clippy::print_stderr)] // where there is no terminal, the bar would swallow it
    pub fn reject(&mut self, line: u64, reason: impl fmt::Display) {
        self.rejected += 1;
        self.bar.suspend(|| eprintln!("line {line}: {reason}"));
    }

    /// Ends the bar; answers how many lines were refused.
    pub fn finish(self) -> u64 {
        self.bar.finish_and_clear();
        self.rejected
    }
}

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Rows read, without the header.
    pub rows: u64,
    /// What was new.
    pub applied: u64,
    /// What was there before.
    pub known: u64,
    /// Lines that were refused.
    pub rejected: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary {
            rows,
            applied,
            known,
            rejected,
        } = self;
        write!(
            f,
            "{rows} rows: {applied} applied, {known} known before, {rejected} rejected"
        )
    }
}
