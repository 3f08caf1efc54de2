//! What is noted beside the data of how long it is kept, and the renewal of TTLs when that becomes longer.
//!
//! Owns the two notes. All servers of one Redis are meant to go by the same settings; each notes its own when it starts,
//! and the shortest that was in force since decides what has left.

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::keep::{Keep, Noted, days_since, years_since};
use super::upkeep::{day_names, year_names};
use crate::config::Settings;
use crate::day::Zone;
use crate::keyspace::{Keyspace, Unavailable};

/// Under which names it is noted for how long years and days are kept.
const YEARS: &str = "kept check-in years";
const DAYS: &str = "kept days";

impl Keep {
    /// By the settings, and by what is noted beside the data. Notes the settings as in force from `now` on, unless a server
    /// that runs already has done so for its own (`beside`).
    pub async fn open(
        keyspace: &Keyspace,
        zone: &Zone,
        settings: &Settings,
        now: DateTime<Utc>,
        beside: bool,
    ) -> Result<Keep, Unavailable> {
        let today = zone.date_of(now);
        let written = keyspace.anybody_wrote().await?;
        let old = [noted(keyspace, YEARS).await?, noted(keyspace, DAYS).await?];
        let [years, days] = [
            after(old[0], settings.checkin.keep_years, written, |years| {
                years_since(today, years)
            }),
            after(old[1], settings.analytics.keep_days, written, |days| {
                days_since(today, days)
            }),
        ];
        let keep = Keep::of(&years, &days);
        if beside || old == [Some(years), Some(days)] {
            return Ok(keep);
        }
        let raised = |old: Option<Noted>, new: Noted| old.is_none_or(|old| old.keep < new.keep);
        if written && (raised(old[0], years) || raised(old[1], days)) {
            keep.renew(keyspace, zone, now).await?;
        }
        // Only now, so that a start that is cut short renews again.
        keyspace.note(YEARS, &years.to_string()).await?;
        keyspace.note(DAYS, &days.to_string()).await?;
        Ok(keep)
    }

    /// Gives everything that is kept the TTL of the settings in force: it was written under shorter ones.
    async fn renew(&self, keyspace: &Keyspace, zone: &Zone, now: DateTime<Utc>) -> Result<(), Unavailable> {
        let today = zone.date_of(now);
        // Another node's clock may be in the next day, or year, already.
        let tomorrow = zone.day_after(today);
        for p in keyspace.partitions() {
            let (keys, last_row) = (keyspace.keys(), keyspace.last_row(p).await?);
            let years = (self.since(today).year()..=tomorrow.year()).flat_map(|year| {
                let ttl = self.year_ttl(zone, year, now);
                year_names(keys, p, year, last_row).map(move |key| (key, ttl))
            });
            keyspace.expire(years.collect()).await?;
            let days = self.days_since(today).iter_days();
            let days = days.take_while(|date| *date <= tomorrow).flat_map(|date| {
                let ttl = self.day_ttl(zone, date, now);
                day_names(keys, p, date, last_row).map(move |key| (key, ttl))
            });
            keyspace.expire(days.collect()).await?;
        }
        Ok(())
    }
}

/// What was noted; what cannot be read is as if it were not there.
async fn noted(keyspace: &Keyspace, what: &str) -> Result<Option<Noted>, Unavailable> {
    let text = keyspace.noted(what).await?;
    Ok(text.and_then(|text| Noted::read(&text)))
}

/// What is to be noted from now on.
fn after(old: Option<Noted>, keep: u32, written: bool, since: impl Fn(u32) -> NaiveDate) -> Noted {
    match old {
        Some(old) if written => old.then(keep, since),
        _ => Noted::first(keep, since(keep), written),
    }
}
