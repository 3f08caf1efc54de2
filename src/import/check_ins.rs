//! `import check-ins`: past check-ins without rewards. In any order, as often as one likes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::NaiveDate;

use super::lines::Lines;
use super::{ImportError, Progress, Summary, persistently};
use crate::app::App;
use crate::checkin::write_history::History;
use crate::ids::UserId;

/// Lines that go into one pipeline: enough to spare round trips, few enough to be answered in time by a busy Redis and not
/// to hold up a server beside us.
const BATCH: usize = 250;

/// Writes the check-ins of the file at `path`.
pub async fn import(app: &App, path: &Path) -> Result<Summary, ImportError> {
    let now = app.clock.now();
    let since = app.checkins.kept_since(app.zone.date_of(now));
    let mut lines = Lines::open(path, false, &app.zone, now)?;
    let mut progress = Progress::new("check-ins", lines.length(), "bytes");
    let mut batch = Batch::default();
    let mut summary = Summary {
        rows: 0,
        applied: 0,
        known: 0,
        rejected: 0,
    };
    while let Some(line) = lines.next_line()? {
        summary.rows += 1;
        match line.row {
            Ok(row) if row.date < since => {
                progress.reject(
                    line.number,
                    format!("{} lies before the kept years, which begin {since}", row.date),
                );
            }
            Ok(row) => batch.add(row.user, row.date),
            Err(reason) => progress.reject(line.number, reason),
        }
        if batch.lines >= BATCH {
            batch.write(app, &mut summary).await?;
            progress.at(line.position);
        }
    }
    batch.write(app, &mut summary).await?;
    summary.rejected = progress.finish();
    Ok(summary)
}

#[derive(Default)]
struct Batch {
    users: BTreeMap<UserId, BTreeSet<NaiveDate>>,
    lines: usize,
}

impl Batch {
    fn add(&mut self, user: UserId, date: NaiveDate) {
        self.users.entry(user).or_default().insert(date);
        self.lines += 1;
    }

    async fn write(&mut self, app: &App, summary: &mut Summary) -> Result<(), ImportError> {
        let Batch { users, lines } = std::mem::take(self);
        let mut history = History::of(users);
        let now = app.clock.now();
        persistently(async || app.checkins.write_history(&mut history, now).await).await?;
        summary.applied += history.new_dates();
        summary.known += lines as u64 - history.new_dates();
        Ok(())
    }
}
