//! Reading boards: who stands where, over all partitions.
//!
//! Owns the questions that boards are asked and how partitions' answers become one. Each is one pipeline, two for the
//! place of a user when there are several partitions.

use chrono::{DateTime, Utc};

use super::ranking::{self, Ahead, DistinctKeys, Member};
use super::{Board, Leaderboards, OpenPeriod, score};
use crate::ids::UserId;
use crate::keyspace::{Partition, Request, Script, Unavailable, reply};

static PLACE: Script = Script::new("place", &[include_str!("place.lua")]);
static PAGE: Script = Script::new("page", &[include_str!("page.lua")]);

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
    /// Members of the board in this period.
    pub participants: u64,
    key: i64,
}

impl Standing {
    pub(super) fn new(
        board: &Board,
        period: &OpenPeriod,
        user: UserId,
        key: i64,
        ahead: Ahead,
        participants: u64,
        now: DateTime<Utc>,
    ) -> Standing {
        let (points, tie) = score::decode(board.order, &period.plan, key);
        Standing {
            user,
            points,
            reached_at: period.reached_at(tie, now),
            ahead,
            participants,
            key,
        }
    }
}

/// The beginning of a board as of one moment.
#[derive(Debug, Clone)]
pub struct Top {
    /// Grows with every change, over all partitions.
    pub version: u64,
    /// Members of the board in this period.
    pub participants: u64,
    /// The best, as many as were asked for.
    pub standings: Vec<Standing>,
}

/// One partition's part in a place: key, members before, members with better points, distinct better points,
/// participants.
type Place = (Option<i64>, u64, u64, u64, u64);

/// One partition's part in a top: version, participants, its best with their keys.
type Page = (u64, u64, Vec<(String, i64)>);

impl Leaderboards {
    /// The best `many` of a board in one period, with version and participants of the same moment.
    pub async fn top(
        &self,
        board: &Board,
        period: &OpenPeriod,
        many: usize,
        now: DateTime<Utc>,
    ) -> Result<Top, Unavailable> {
        let keys = self.keyspace.keys();
        let pages: Vec<Page> = self
            .keyspace
            .gather(|request, p| {
                let names = [
                    keys.board_version(p, &board.id),
                    keys.board(p, &board.id, &period.key),
                ];
                request.script(&PAGE, &names, &[many]);
            })
            .await?;
        let version = pages.iter().map(|page| page.0).sum();
        let participants = pages.iter().map(|page| page.1).sum();
        let partitions = pages
            .into_iter()
            .map(|page| members(page.2))
            .collect::<Result<_, _>>()?;
        let best = ranking::merge(partitions, many);
        let points = best
            .iter()
            .map(|member| score::decode(board.order, &period.plan, member.key).0);
        let places = ranking::along_the_top(points);
        let standings = best
            .into_iter()
            .zip(places)
            .map(|(member, ahead)| {
                Standing::new(board, period, member.user, member.key, ahead, participants, now)
            })
            .collect();
        Ok(Top {
            version,
            participants,
            standings,
        })
    }

    /// Where `user` stands; `None` if not there.
    pub async fn standing(
        &self,
        board: &Board,
        period: &OpenPeriod,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<Option<Standing>, Unavailable> {
        let home = self.keyspace.partition_of(user);
        let mut request = Request::new();
        self.ask_place(&mut request, home, board, period, user, None);
        let place: Place = match self.keyspace.run(&request).await?.pop() {
            Some(value) => reply(value)?,
            None => return Ok(None),
        };
        let (Some(key), members, better, distinct, participants) = place else {
            return Ok(None);
        };
        let distinct = Some(distinct).filter(|_| self.keyspace.partition_count() == 1);
        let ahead = Ahead {
            members,
            better,
            distinct,
        };
        let standing = Standing::new(board, period, user.clone(), key, ahead, participants, now);
        self.complete(board, period, standing).await.map(Some)
    }

    /// Adds what the other partitions hold to a place that was counted in the user's own.
    pub async fn complete(
        &self,
        board: &Board,
        period: &OpenPeriod,
        mut standing: Standing,
    ) -> Result<Standing, Unavailable> {
        let home = self.keyspace.partition_of(&standing.user);
        let mut request = Request::new();
        for p in self.keyspace.partitions().filter(|&p| p != home) {
            self.ask_place(&mut request, p, board, period, &standing.user, Some(standing.key));
        }
        if request.is_empty() {
            return Ok(standing);
        }
        for value in self.keyspace.run(&request).await? {
            let (_, members, better, _, participants): Place = reply(value)?;
            standing.ahead.members += members;
            standing.ahead.better += better;
            standing.participants += participants;
        }
        Ok(standing)
    }

    /// How many distinct points of the board are better than `points`: merged over the partitions in chunks.
    pub async fn distinct_better(
        &self,
        board: &Board,
        period: &OpenPeriod,
        points: i64,
    ) -> Result<u64, Unavailable> {
        let end = score::sign(board.order) * points;
        let mut keys = DistinctKeys::new(self.keyspace.partition_count());
        let mut read = vec![0; self.keyspace.partition_count()];
        while let Some(list) = keys.wants() {
            let p = Partition::number(list as u32);
            let mut range = redis::cmd("ZRANGE");
            range
                .arg(self.keyspace.keys().board_points(p, &board.id, &period.key))
                .arg(&["-inf", &format!("({end}"), "BYSCORE"])
                .arg(&["LIMIT", &read[list].to_string(), &DISTINCT_CHUNK.to_string()]);
            let mut request = Request::new();
            request.command(range);
            let chunk: Vec<i64> = match self.keyspace.run(&request).await?.pop() {
                Some(value) => reply(value)?,
                None => Vec::new(),
            };
            read[list] += chunk.len();
            keys.feed(
                list,
                chunk
                    .into_iter()
                    .map(|points| score::sign(board.order) * points)
                    .collect(),
            );
        }
        Ok(keys.count())
    }

    fn ask_place(
        &self,
        request: &mut Request,
        p: Partition,
        board: &Board,
        period: &OpenPeriod,
        user: &UserId,
        key: Option<i64>,
    ) {
        let keys = self.keyspace.keys();
        let names = [
            keys.board(p, &board.id, &period.key),
            keys.board_points(p, &board.id, &period.key),
        ];
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        request.script(
            &PLACE,
            &names,
            &[user.as_str(), &period.plan.tie_range().to_string(), &key],
        );
    }
}

fn members(best: Vec<(String, i64)>) -> Result<Vec<Member>, Unavailable> {
    best.into_iter()
        .map(|(user, key)| match UserId::parse(&user) {
            Ok(user) => Ok(Member { key, user }),
            Err(bad) => Err(Unavailable::Fault(format!("a board's member is no user: {bad}"))),
        })
        .collect()
}
