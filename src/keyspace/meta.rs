//! How the data in Redis is laid out, and the refusal to misread it.
//!
//! Owns `prefix:meta` and the generation of each partition: what is written when the data is created, what is compared
//! at every start, and the audit that notices another Redis behind the same address while running. Plans of boards come
//! from [`crate::leaderboard`]; here they are only compared.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::rows::{NextRows, row_cache};
use super::{Connection, Keys, Keyspace, Partition, Request, Unavailable, reply};
use crate::ids::BoardId;
use crate::random::unique_name;

/// The version of everything that keys and values look like.
const FORMAT: &str = "1";

/// How often the data is looked at without a reason.
const AUDIT: Duration = Duration::from_secs(30);

/// What the configuration says about the data's layout.
#[derive(Debug, Clone)]
pub struct Layout {
    /// P.
    pub partitions: u32,
    /// The zone and the time of day at which its day starts, such as `Europe/Berlin 04:00`.
    pub day: String,
    /// Whether a server already runs on this data: then nothing that it goes by is replaced.
    pub beside: bool,
    /// How each board's scores are encoded: parts such as `max_points=100` or `DAY=29 bits of 1 ms`, separated by
    /// spaces. Each part has to stay as it is.
    pub boards: BTreeMap<BoardId, String>,
}

/// Why the data cannot be served under this configuration.
#[derive(Debug, thiserror::Error)]
pub enum MetaError {
    /// The data was written under other settings, and would be misread.
    #[error(
        "the data in Redis was written with {what} = {found}, but the configuration says {wanted}: it would be misread. \
         Set it back, or start with an empty data directory (or another redis.prefix) and import your history there"
    )]
    Misread {
        /// The setting.
        what: String,
        /// What the data says.
        found: String,
        /// What the configuration says.
        wanted: String,
    },
    /// Part of the data is gone.
    #[error(
        "the data in Redis is damaged: {0}. Restore it from a backup, or start with an empty data directory (or another \
         redis.prefix) and import your history there"
    )]
    Damaged(String),
    /// Redis gave no answer.
    #[error("cannot read how the data in Redis is laid out: {0}")]
    Unavailable(#[from] Unavailable),
}

/// Opens the data behind `connection`, creating it if Redis holds none.
pub async fn open(connection: Connection, keys: Keys, layout: &Layout) -> Result<Arc<Keyspace>, MetaError> {
    let mut found = read(&connection, &keys).await?;
    if found.get("state").map(String::as_str) != Some("open") {
        create(&connection, &keys, layout).await?;
        found = read(&connection, &keys).await?;
    }
    compare(&found, "the data format", "format", FORMAT)?;
    compare(
        &found,
        "redis.partitions",
        "partitions",
        &layout.partitions.to_string(),
    )?;
    let found = adopt(&connection, &keys, layout, found).await?;
    let generation = found.get("generation").cloned().unwrap_or_default();
    let partitions = partitions(&connection, &keys, layout.partitions).await?;
    for (number, partition) in partitions.iter().enumerate() {
        if partition.generation.as_ref() != Some(&generation) {
            return Err(MetaError::Damaged(format!(
                "partition {number} is missing or of another generation"
            )));
        }
    }
    let keyspace = Arc::new(Keyspace {
        connection,
        keys,
        epoch: found.get("epoch").cloned().unwrap_or_default(),
        generation,
        events: partitions.iter().map(|p| p.events.into()).collect(),
        stale: false.into(),
        rows: row_cache(),
        next_rows: NextRows::new(partitions.iter().map(|p| p.rows).collect()),
        audit: OnceLock::new(),
    });
    keyspace
        .audit
        .get_or_init(|| tokio::spawn(audit(Arc::downgrade(&keyspace))).abort_handle());
    Ok(keyspace)
}

async fn read(connection: &Connection, keys: &Keys) -> Result<HashMap<String, String>, Unavailable> {
    let mut get = redis::cmd("HGETALL");
    get.arg(keys.meta());
    one(connection, get).await
}

async fn one<T: redis::FromRedisValue>(
    connection: &Connection,
    command: redis::Cmd,
) -> Result<T, Unavailable> {
    let mut request = Request::new();
    request.command(command);
    match connection.run(&request).await?.pop() {
        Some(value) => reply(value),
        None => Err(Unavailable::Fault("no reply".into())),
    }
}

/// Creates the data's frame. Two nodes may do so at once and one may die on the way: whoever is first names the
/// generation, everybody brings the rest to the same end, and nobody writes before `state` says open.
async fn create(connection: &Connection, keys: &Keys, layout: &Layout) -> Result<(), MetaError> {
    let partitions = layout.partitions.to_string();
    let mut request = Request::new();
    for (field, value) in [
        ("format", FORMAT),
        ("partitions", &partitions),
        ("day", &layout.day),
        ("generation", &unique_name()),
        ("epoch", &unique_name()),
    ] {
        let mut set = redis::cmd("HSETNX");
        set.arg(keys.meta()).arg(field).arg(value);
        request.command(set);
    }
    for value in connection.run(&request).await? {
        reply::<i64>(value)?;
    }
    let found = read(connection, keys).await?;
    compare(&found, "redis.partitions", "partitions", &partitions)?;
    begin(connection, keys, layout.partitions, &found).await?;
    tracing::info!(partitions, day = layout.day, "Redis was empty; created the data");
    Ok(())
}

/// Puts the generation that `meta` names in force in every partition. Whoever writes under another one is refused.
async fn begin(
    connection: &Connection,
    keys: &Keys,
    partitions: u32,
    meta: &HashMap<String, String>,
) -> Result<(), MetaError> {
    let mut request = Request::new();
    for p in (0..partitions).map(Partition::number) {
        let (mut name, mut count) = (redis::cmd("HSET"), redis::cmd("HSETNX"));
        name.arg(keys.generation(p)).arg("id").arg(meta.get("generation"));
        count.arg(keys.generation(p)).arg("events").arg(0);
        request.command(name).command(count);
    }
    for value in connection.run(&request).await? {
        reply::<i64>(value)?;
    }
    let mut opened = redis::cmd("HSET");
    opened.arg(keys.meta()).arg("state").arg("open");
    one::<i64>(connection, opened).await?;
    Ok(())
}

fn compare(found: &HashMap<String, String>, what: &str, field: &str, wanted: &str) -> Result<(), MetaError> {
    match found.get(field) {
        Some(found) if found == wanted => Ok(()),
        found => Err(MetaError::Misread {
            what: what.into(),
            found: found.map_or("nothing", String::as_str).into(),
            wanted: wanted.into(),
        }),
    }
}

/// Settles what may still change: the day while nobody has written at all, a board's plan while nobody has scored on
/// it, and always which periods a board keeps. Answers with what is in force then.
///
/// Replacing the day or a plan begins a new generation, so that another node which still goes by the old one is refused
/// instead of writing what nobody could read.
async fn adopt(
    connection: &Connection,
    keys: &Keys,
    layout: &Layout,
    found: HashMap<String, String>,
) -> Result<HashMap<String, String>, MetaError> {
    let (mut settled, mut replaced) = (Vec::new(), false);
    let day = "the day (day.time_zone and day.starts_at)";
    if let Err(differs) = compare(&found, day, "day", &layout.day) {
        let written = partitions(connection, keys, layout.partitions)
            .await?
            .iter()
            .any(|p| p.rows > 0);
        if written || layout.beside {
            return Err(differs);
        }
        settled.push(("day".to_owned(), layout.day.clone()));
        replaced = true;
    }
    for (board, plan) in &layout.boards {
        let field = format!("board:{board}");
        let known = found.get(&field).filter(|known| *known != plan);
        let extended = known.map(|known| extended(board, known, plan)).transpose();
        match (found.get(&field), extended) {
            (Some(_), Ok(None)) => {}
            (_, Ok(extended)) => settled.push((field, extended.unwrap_or_else(|| plan.clone()))),
            (_, Err(differs)) => {
                if layout.beside || was_written(connection, keys, layout.partitions, board).await? {
                    return Err(differs);
                }
                settled.push((field, plan.clone()));
                replaced = true;
            }
        }
    }
    if replaced {
        settled.push(("generation".into(), unique_name()));
        settled.push(("state".into(), "opening".into()));
    }
    if settled.is_empty() {
        return Ok(found);
    }
    let mut set = redis::cmd("HSET");
    set.arg(keys.meta());
    settled.iter().for_each(|(field, value)| {
        set.arg(field).arg(value);
    });
    one::<i64>(connection, set).await?;
    let found = read(connection, keys).await?;
    if replaced {
        begin(connection, keys, layout.partitions, &found).await?;
        tracing::info!(
            day = layout.day,
            "nobody had written yet: the new settings are in force"
        );
    }
    Ok(found)
}

/// What is `known` of a board that has been written, with the parts that are new in `wanted`. A period that is no
/// longer wanted is kept in mind: its data may still be there when it comes back.
fn extended(board: &BoardId, known: &str, wanted: &str) -> Result<String, MetaError> {
    let mut all = parts(known);
    for (name, wanted) in parts(wanted) {
        match all.iter().find(|(known, _)| *known == name) {
            Some((_, found)) if *found == wanted => {}
            Some((_, found)) => {
                return Err(MetaError::Misread {
                    what: format!("board {board}, {name}"),
                    found: found.clone(),
                    wanted,
                });
            }
            None => all.push((name, wanted)),
        }
    }
    let words: Vec<_> = all
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Ok(words.join(" "))
}

/// `a=1 b=2 bits of 3 ms` has the parts `a` with `1` and `b` with `2 bits of 3 ms`.
fn parts(encoding: &str) -> Vec<(&str, String)> {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for word in encoding.split(' ') {
        match (word.split_once('='), parts.last_mut()) {
            (Some((name, value)), _) => parts.push((name, value.into())),
            (None, Some((_, value))) => *value += &format!(" {word}"),
            (None, None) => parts.push((word, String::new())),
        }
    }
    parts
}

async fn was_written(
    connection: &Connection,
    keys: &Keys,
    partitions: u32,
    board: &BoardId,
) -> Result<bool, Unavailable> {
    let mut request = Request::new();
    for p in (0..partitions).map(Partition::number) {
        let mut exists = redis::cmd("EXISTS");
        exists.arg(keys.board_version(p, board));
        request.command(exists);
    }
    let replies = connection.run(&request).await?;
    Ok(replies
        .into_iter()
        .map(reply::<u32>)
        .collect::<Result<Vec<_>, _>>()?
        .contains(&1))
}

struct PartitionState {
    generation: Option<String>,
    events: u64,
    rows: u32,
}

async fn partitions(
    connection: &Connection,
    keys: &Keys,
    count: u32,
) -> Result<Vec<PartitionState>, Unavailable> {
    let mut request = Request::new();
    for p in (0..count).map(Partition::number) {
        let mut get = redis::cmd("HMGET");
        get.arg(keys.generation(p)).arg(&["id", "events", "rows"]);
        request.command(get);
    }
    let replies = connection.run(&request).await?;
    replies
        .into_iter()
        .map(|value| {
            let (generation, events, rows): (Option<String>, Option<u64>, Option<u32>) = reply(value)?;
            Ok(PartitionState {
                generation,
                events: events.unwrap_or(0),
                rows: rows.unwrap_or(0),
            })
        })
        .collect()
}

/// Looks at the data after every reconnect and every 30 s, as long as the keyspace is in use.
async fn audit(keyspace: Weak<Keyspace>) {
    let mut seen = 0;
    loop {
        let Some(connection) = keyspace.upgrade().map(|keyspace| keyspace.connection.clone()) else {
            return;
        };
        tokio::select! {
            newer = connection.reconnected(seen) => seen = newer.unwrap_or(seen),
            () = tokio::time::sleep(AUDIT) => {}
        }
        let Some(keyspace) = keyspace.upgrade() else {
            return;
        };
        if let Err(error) = keyspace.audit_once().await {
            tracing::debug!(%error, "the audit got no answer");
        }
    }
}

impl Keyspace {
    async fn audit_once(&self) -> Result<(), Unavailable> {
        let seen: Vec<u64> = self.partitions().map(|p| self.events_seen(p)).collect();
        let found = partitions(&self.connection, &self.keys, self.partition_count() as u32).await?;
        let wrong = found
            .iter()
            .zip(seen)
            .position(|(p, seen)| p.generation.as_ref() != Some(&self.generation) || p.events < seen);
        match wrong {
            Some(number) => self.found_stale(&format!("partition {number} at an audit")),
            None if self.stale.swap(false, Ordering::Relaxed) => {
                tracing::info!("Redis holds the data again that this server has seen");
            }
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_may_gain_and_lose_periods_but_no_part_may_change_ever_after() {
        let board = BoardId::parse("points").unwrap();
        let merge = |known: &str, wanted: &str| extended(&board, known, wanted);
        let day = "max_points=100 DAY=29 bits of 1 ms";
        let both = "max_points=100 DAY=29 bits of 1 ms WEEK=29 bits of 2 ms";
        assert_eq!(merge(day, both).unwrap(), both);
        assert_eq!(
            merge(both, day).unwrap(),
            both,
            "what was left out is kept in mind"
        );
        let refused = merge(both, "max_points=100 WEEK=28 bits of 4 ms")
            .unwrap_err()
            .to_string();
        assert!(
            refused
                .contains("board points, WEEK = 29 bits of 2 ms, but the configuration says 28 bits of 4 ms"),
            "{refused}"
        );
        assert!(merge(day, "max_points=101").is_err());
    }
}
