//! Where one user stands on a board, over all partitions.
//!
//! Owns the place of a user: one round trip, two when there are several partitions. Pages are [`super::pages`]'s.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::OnceCell;

use super::ranking::{Ahead, DistinctKeys};
use super::{BOARD, Board, Leaderboards, POSITION, RankMethod, Span};
use crate::ids::UserId;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Partition, Request, Script, Unavailable, reply};

static PLACE: Script = Script::new("place", &[NUMBERS, BOARD, POSITION, include_str!("place.lua")]);

/// How many distinct points are read at once where DENSE ranks need partitions merged.
const DISTINCT_CHUNK: usize = 1_000;

/// Someone's place on a board.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Who.
    pub user: UserId,
    /// How many.
    pub points: i64,
    /// When they were reached, approximately.
    pub reached_at: Option<DateTime<Utc>>,
    /// What stands before.
    pub ahead: Ahead,
    /// Distinct better points; where partitions have to be merged for it, counted when asked.
    pub dense: Dense,
    /// Members of the board in this span.
    pub participants: u64,
    /// The encoded score.
    pub key: f64,
}

/// Distinct points better than a standing's.
#[derive(Debug, Clone)]
pub enum Dense {
    /// Counted.
    Known(u64),
    /// So many more than are better than the page's first, which is counted when somebody asks, once a page.
    AfterFirst(u64, Arc<FirstOfPage>),
}

/// The first of a page, whose distinct better points are counted when somebody asks.
#[derive(Debug)]
pub struct FirstOfPage {
    /// Its points, and in which set they stand.
    group: f64,
    stored: String,
    better: OnceCell<u64>,
}

impl Dense {
    /// Of someone whose own points are to be counted.
    pub(super) fn later(span: &Span, key: f64) -> Dense {
        Dense::AfterFirst(
            0,
            Arc::new(FirstOfPage {
                group: span.group(key),
                stored: span.stored(),
                better: OnceCell::new(),
            }),
        )
    }

    /// So many distinct points further on.
    pub(super) fn after(&self, more: u64) -> Dense {
        match self {
            Dense::Known(better) => Dense::Known(better + more),
            Dense::AfterFirst(better, first) => Dense::AfterFirst(better + more, first.clone()),
        }
    }
}

/// One partition's part in a place, as `place.lua` answers.
pub(super) type Place = (Option<f64>, u64, u64, u64, u64, u64, Vec<redis::Value>);

/// Whose place a partition is asked for.
pub(super) struct Asked<'u> {
    pub(super) user: &'u UserId,
    /// Where the user stands in another partition.
    pub(super) key: Option<f64>,
    /// Whether the member right before is wanted too.
    pub(super) above: bool,
}

impl Asked<'_> {
    fn own(user: &UserId) -> Asked<'_> {
        Asked {
            user,
            key: None,
            above: false,
        }
    }

    fn at(user: &UserId, key: f64) -> Asked<'_> {
        Asked {
            user,
            key: Some(key),
            above: false,
        }
    }
}

impl Leaderboards {
    /// Where `user` stands; `None` if not there.
    pub async fn standing(
        &self,
        board: &Board,
        span: &Span,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Option<Standing>, Unavailable> {
        let home = self.keyspace.partition_of(user);
        let (mut replies, span) = self
            .on_its_day(board, span, |request, span| {
                self.ask_place(request, home, board, span, &Asked::own(user))
            })
            .await?;
        let place: Place = match replies.pop() {
            Some(value) => reply(value)?,
            None => return Ok(None),
        };
        let (Some(key), members, better, distinct, participants, ..) = place else {
            return Ok(None);
        };
        let standing = self.shown(
            board,
            &span,
            user.clone(),
            key,
            Ahead { members, better },
            distinct,
            participants,
            now,
        );
        self.complete(board, &span, standing).await.map(Some)
    }

    /// A standing as counted in the user's own partition.
    #[allow(clippy::too_many_arguments)] // they are what scripts count
    pub(super) fn shown(
        &self,
        board: &Board,
        span: &Span,
        user: UserId,
        key: f64,
        ahead: Ahead,
        distinct: u64,
        participants: u64,
        now: DateTime<Utc>,
    ) -> Standing {
        let dense = match self.keyspace.partition_count() {
            1 => Dense::Known(distinct),
            _ => Dense::later(span, key),
        };
        let (points, reached_at) = (span.points(board.order, key, now), span.reached_at(key, now));
        Standing {
            user,
            points,
            reached_at,
            ahead,
            dense,
            participants,
            key,
        }
    }

    /// Adds what the other partitions hold to a place that was counted in the user's own.
    pub async fn complete(
        &self,
        board: &Board,
        span: &Span,
        mut standing: Standing,
    ) -> Result<Standing, Unavailable> {
        let home = self.keyspace.partition_of(&standing.user);
        if self.keyspace.partition_count() == 1 {
            return Ok(standing);
        }
        let (replies, _) = self
            .on_its_day(board, span, |request, span| {
                for p in self.keyspace.partitions().filter(|&p| p != home) {
                    self.ask_place(request, p, board, span, &Asked::at(&standing.user, standing.key));
                }
            })
            .await?;
        for value in replies {
            let (_, members, better, _, participants, ..): Place = reply(value)?;
            standing.ahead.members += members;
            standing.ahead.better += better;
            standing.participants += participants;
        }
        Ok(standing)
    }

    /// The rank of a standing by `method`, from 1.
    pub async fn rank(
        &self,
        board: &Board,
        standing: &Standing,
        method: RankMethod,
    ) -> Result<u64, Unavailable> {
        let ahead = match method {
            RankMethod::Ordinal => standing.ahead.members,
            RankMethod::Competition => standing.ahead.better,
            RankMethod::Dense => match &standing.dense {
                Dense::Known(better) => *better,
                Dense::AfterFirst(more, first) => {
                    let count = || self.distinct_better(board, first);
                    first.better.get_or_try_init(count).await? + more
                }
            },
        };
        Ok(ahead + 1)
    }

    /// Counts what DENSE ranks of these standings need, where partitions have to be merged for it: one count, since
    /// they are of one page.
    pub async fn count_dense(&self, board: &Board, standings: &[Standing]) -> Result<(), Unavailable> {
        match standings.first() {
            Some(first) => self.rank(board, first, RankMethod::Dense).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// How many distinct points are better than those of `group`: merged over the partitions in chunks.
    async fn distinct_better(&self, board: &Board, first: &FirstOfPage) -> Result<u64, Unavailable> {
        let mut keys = DistinctKeys::new(self.keyspace.partition_count());
        // Each chunk begins behind the last one's end, not at an offset: that costs the same at any depth, and what comes
        // and goes meanwhile shifts nothing.
        let mut from = vec!["-inf".to_owned(); self.keyspace.partition_count()];
        loop {
            let wanted = keys.wants();
            if wanted.is_empty() {
                return Ok(keys.count());
            }
            let mut request = Request::new();
            for &list in &wanted {
                let p = Partition::number(list as u32);
                let mut range = redis::cmd("ZRANGE");
                range
                    .arg(self.keyspace.keys().board_distinct(p, &board.id, &first.stored))
                    .arg(&[&from[list], &format!("({}", first.group), "BYSCORE"])
                    .arg(&["LIMIT", "0", &DISTINCT_CHUNK.to_string()]);
                request.command(range);
            }
            for (&list, value) in wanted.iter().zip(self.keyspace.run(&request).await?) {
                let chunk: Vec<f64> = reply(value)?;
                if let Some(last) = chunk.last() {
                    from[list] = format!("({last}");
                }
                keys.feed(list, chunk);
            }
        }
    }

    pub(super) fn ask_place(
        &self,
        request: &mut Request,
        p: Partition,
        board: &Board,
        span: &Span,
        asked: &Asked<'_>,
    ) {
        let (keys, stored) = (self.keyspace.keys(), span.stored());
        let mut names = vec![
            keys.board(p, &board.id, &stored),
            keys.board_distinct(p, &board.id, &stored),
            keys.board_version(p, &board.id),
        ];
        let day = span.day_in_force(board);
        if day.is_some() {
            names.push(keys.window_day(p, &board.id));
        }
        let key = asked.key.map(|key| key.to_string()).unwrap_or_default();
        let args = [
            asked.user.as_str(),
            &span.range().to_string(),
            &key,
            &day.unwrap_or_default(),
            if asked.above { "above" } else { "" },
        ];
        request.script(&PLACE, &names, &args);
    }
}
