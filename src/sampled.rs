//! What operators watch of the data: how many are where, and what it weighs.
//!
//! Owns the metrics' names and the rhythm. Looked up by the node whose keeper looks after a partition, so that the sum over
//! all nodes is right; in small steps with pauses, so that nobody waits for it. Sorted sets are weighed by a few of their
//! members (`MEMORY USAGE … SAMPLES`).

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::sleep;

use crate::app::App;
use crate::keyspace::keeper::{PAUSE, TURN};
use crate::keyspace::{Partition, Request, Unavailable, reply};

/// The pause between two rounds.
const ROUND: Duration = Duration::from_secs(30);

/// Keys that are looked at in one step.
const KEYS_A_STEP: usize = 50;

/// A board, and what it is kept over: `DAY`, `last-7`, `heat`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Set {
    board: String,
    span: String,
}

/// What bitmaps are for: `day`, `active`, `year`, `makeup`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Bitmaps {
    kind: &'static str,
}

/// What was found last; clones share it.
#[derive(Clone, Default)]
pub struct Sampled {
    online: Gauge,
    check_ins: Gauge,
    active: Gauge,
    known: Gauge,
    members: Family<Set, Gauge>,
    board_bytes: Family<Set, Gauge>,
    bitmap_bytes: Family<Bitmaps, Gauge>,
}

impl Sampled {
    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let all = registry.sub_registry_with_prefix("tallyboard");
        all.register(
            "online",
            "Users who are online on the whole site",
            self.online.clone(),
        );
        all.register(
            "check_ins_today",
            "Check-ins of the business day in force",
            self.check_ins.clone(),
        );
        all.register(
            "active_today",
            "Users active on the business day in force",
            self.active.clone(),
        );
        all.register("known_users", "Users with a row", self.known.clone());
        let boards = all.sub_registry_with_prefix("board");
        boards.register("members", "Users on a board's open spans", self.members.clone());
        let help = "What a board's open spans weigh in Redis, roughly";
        boards.register_with_unit("size", help, Unit::Bytes, self.board_bytes.clone());
        let help = "What bitmaps weigh in Redis: of check-ins and activity by day, of check-ins and make-ups by year";
        all.register_with_unit("bitmap_size", help, Unit::Bytes, self.bitmap_bytes.clone());
    }

    async fn look(&self, app: &App) -> Result<(), Unavailable> {
        let (tended, now) = (app.tended(), app.clock.now());
        let (mut members, mut boards, mut bitmaps) = (HashMap::new(), HashMap::new(), HashMap::new());
        for &p in &tended {
            for (board, span, keys) in app.boards.sets_at(p, now) {
                let set = Set {
                    board: board.to_string(),
                    span,
                };
                let [counted, weight] = weigh_set(app, &keys).await?;
                *members.entry(set.clone()).or_insert(0) += counted;
                *boards.entry(set).or_insert(0) += weight;
            }
            for (kind, keys) in app.checkins.bitmaps(p, now).await? {
                *bitmaps.entry(Bitmaps { kind }).or_insert(0) += weigh(app, &keys).await?;
            }
        }
        show(&self.members, members);
        show(&self.board_bytes, boards);
        show(&self.bitmap_bytes, bitmaps);
        self.look_at_the_site(app, &tended).await
    }

    /// What is of the whole site, one node tells: the one that looks after the first partition.
    async fn look_at_the_site(&self, app: &App, tended: &[Partition]) -> Result<(), Unavailable> {
        let now = app.clock.now();
        if !tended.iter().any(|p| p.index() == 0) {
            for figure in [&self.online, &self.check_ins, &self.active, &self.known] {
                figure.set(0);
            }
            return Ok(());
        }
        self.online
            .set(app.presence.count_online(None, now).await? as i64);
        for day in app.figures.days(&[app.zone.date_of(now)]).await? {
            self.check_ins.set(day.check_ins as i64);
            self.active.set(day.active as i64);
            self.known.set(day.known_users as i64);
        }
        Ok(())
    }
}

/// Puts figures in the place of those before.
fn show<L>(family: &Family<L, Gauge>, figures: HashMap<L, i64>)
where
    L: Clone + std::hash::Hash + Eq,
{
    family.clear();
    for (label, figure) in figures {
        family.get_or_create(&label).set(figure);
    }
}

/// How many are in the first of these sorted sets, and what all of them weigh.
async fn weigh_set(app: &App, keys: &[String]) -> Result<[i64; 2], Unavailable> {
    let mut request = Request::new();
    let mut count = redis::cmd("ZCARD");
    count.arg(keys.first());
    request.command(count);
    let counted = match app.keyspace.run(&request).await?.pop() {
        Some(value) => reply(value)?,
        None => 0,
    };
    Ok([counted, weigh(app, keys).await?])
}

/// What these keys weigh together, in bytes.
async fn weigh(app: &App, keys: &[String]) -> Result<i64, Unavailable> {
    let mut sum = 0;
    for step in keys.chunks(KEYS_A_STEP) {
        let mut request = Request::new();
        for key in step {
            let mut usage = redis::cmd("MEMORY");
            usage.arg("USAGE").arg(key).arg("SAMPLES").arg(5);
            request.command(usage);
        }
        for value in app.keyspace.run(&request).await? {
            sum += reply::<Option<i64>>(value)?.unwrap_or(0);
        }
        sleep(PAUSE).await;
    }
    Ok(sum)
}

/// Looks again and again, as long as the app is in use.
pub async fn keep(app: Weak<App>, sampled: Sampled) {
    sleep(TURN).await; // by then the keeper knows what is this node's
    while let Some(app) = app.upgrade() {
        if let Err(error) = sampled.look(&app).await {
            tracing::debug!(%error, "what the data weighs will be looked up again");
        }
        // Whose node has just come waits for the leases of the one before.
        let pause = if app.tended().is_empty() { TURN } else { ROUND };
        drop(app);
        sleep(pause).await;
    }
}
