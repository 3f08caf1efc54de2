//! Pages of a board: its top, a walk by cursors, a range of points, a user's neighbours.
//!
//! Owns how partitions' pages become one. A page costs one script a partition, whatever its size and depth, and with
//! several partitions a second round for the place of its first row.

use chrono::{DateTime, Utc};

use super::ranking::{self, Ahead, Member};
use super::standings::{Dense, Standing};
use super::{BOARD, Board, Leaderboards, POSITION, Span, Version};
use crate::ids::UserId;
use crate::keyspace::scripts::NUMBERS;
use crate::keyspace::{Partition, Request, Script, Unavailable, reply};

static PAGE: Script = Script::new("page", &[NUMBERS, BOARD, POSITION, include_str!("page.lua")]);

/// Which members a page shows.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The first so many, or the last.
    pub many: Many,
    /// Where the page begins.
    pub begin: Begin,
    /// Only before this position.
    pub before: Option<Member>,
    /// Only from so many points.
    pub least: Option<i64>,
    /// Only up to so many points.
    pub most: Option<i64>,
}

/// Where a page begins.
#[derive(Debug, Clone, Default)]
pub enum Begin {
    /// With the best.
    #[default]
    Start,
    /// With whoever is at this position or behind it.
    At(Member),
    /// Behind this position.
    After(Member),
}

/// How many members, and from which end.
#[derive(Debug, Clone, Copy)]
pub enum Many {
    /// From the best.
    First(usize),
    /// From the worst.
    Last(usize),
}

impl Default for Many {
    fn default() -> Many {
        Many::First(0)
    }
}

/// A page as of one moment.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Grows with every change of the board, over all partitions.
    pub version: Version,
    /// Members of the board in this span.
    pub participants: u64,
    /// Members within the wanted points.
    pub total: u64,
    /// Whether there are members before the page, within the wanted points.
    pub has_previous: bool,
    /// Whether there are members after the page, within the wanted points.
    pub has_next: bool,
    /// Its rows, best first.
    pub standings: Vec<Standing>,
}

/// One partition's part in a page, as `page.lua` answers.
type Part = ((u64, u64, u64, u64, u64, u64), Vec<(String, f64)>, u64, u64);

impl Leaderboards {
    /// The best `many` of a board.
    pub async fn top(
        &self,
        board: &Board,
        span: &Span,
        many: usize,
        now: DateTime<Utc>,
    ) -> Result<Page, Unavailable> {
        self.page(
            board,
            span,
            &Wanted {
                many: Many::First(many),
                ..Wanted::default()
            },
            now,
        )
        .await
    }

    /// Up to `radius` members above and below `user`, and the user; empty if the user is not there.
    pub async fn around(
        &self,
        board: &Board,
        span: &Span,
        user: &UserId,
        radius: usize,
        now: DateTime<Utc>,
    ) -> Result<Vec<Standing>, Unavailable> {
        // What moves between the reads is noticed by the user's absence from the last one; then they are made anew.
        for _ in 0..4 {
            let Some(own) = self.standing(board, span, user, now).await? else {
                return Ok(Vec::new());
            };
            let here = Member {
                key: own.key,
                user: user.clone(),
            };
            let above = Wanted {
                many: Many::Last(radius),
                before: Some(here.clone()),
                ..Wanted::default()
            };
            let above = self.page(board, span, &above, now).await?.standings;
            let first = above.first().map(|first| Member {
                key: first.key,
                user: first.user.clone(),
            });
            let from = Wanted {
                many: Many::First(2 * radius + 1),
                begin: Begin::At(first.unwrap_or(here)),
                ..Wanted::default()
            };
            let mut all = self.page(board, span, &from, now).await?.standings;
            if let Some(place) = all.iter().position(|standing| standing.user == *user) {
                all.truncate(place + radius + 1);
                all.drain(..place.saturating_sub(radius));
                return Ok(all);
            }
        }
        Err(Unavailable::Refused(
            "the user's place changes faster than it can be read".into(),
        ))
    }

    /// The members of `wanted`.
    pub async fn page(
        &self,
        board: &Board,
        span: &Span,
        wanted: &Wanted,
        now: DateTime<Utc>,
    ) -> Result<Page, Unavailable> {
        let (replies, span) = self
            .on_its_day(board, span, |request, span| {
                for p in self.keyspace.partitions() {
                    self.ask_page(request, p, board, span, wanted, now);
                }
            })
            .await?;
        let parts: Vec<Part> = replies.into_iter().map(read_part).collect::<Result<_, _>>()?;
        let sum = |get: fn(&Part) -> u64| parts.iter().map(get).sum::<u64>();
        let version = Version::new(parts.iter().map(|part| part.0.0).collect());
        let (participants, total) = (sum(|part| part.0.1), sum(|part| part.0.2));
        let (skipped, within, before) = (sum(|part| part.0.3), sum(|part| part.0.4), sum(|part| part.0.5));
        let heads = (sum(|part| part.2), parts.first().map_or(0, |part| part.3));
        let lists = parts
            .into_iter()
            .map(|part| members(part.1))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = match wanted.many {
            Many::First(many) => ranking::merge_first(lists, many),
            Many::Last(many) => ranking::merge_last(lists, many),
        };
        let left_out = within - rows.len() as u64;
        let (cut_before, cut_after) = match wanted.many {
            Many::First(_) => (0, left_out),
            Many::Last(_) => (left_out, 0),
        };
        let first_place = before + cut_before;
        let (better, dense) = self.head(board, &span, rows.first(), first_place, heads).await?;
        let groups = rows.iter().map(|row| span.group(row.key));
        let places = ranking::along_a_page(first_place, better, groups);
        let shown = |(row, (ahead, more)): (Member, (Ahead, u64))| Standing {
            points: span.points(board.order, row.key, now),
            reached_at: span.reached_at(row.key, now),
            dense: dense.after(more),
            user: row.user,
            key: row.key,
            ahead,
            participants,
        };
        Ok(Page {
            version,
            participants,
            total,
            has_previous: skipped + cut_before > 0,
            has_next: total > skipped + within || cut_after > 0,
            standings: rows.into_iter().zip(places).map(shown).collect(),
        })
    }

    /// What is better than a page's first row: members, and distinct points.
    async fn head(
        &self,
        board: &Board,
        span: &Span,
        first: Option<&Member>,
        first_place: u64,
        counted: (u64, u64),
    ) -> Result<(u64, Dense), Unavailable> {
        let Some(first) = first else {
            return Ok((0, Dense::Known(0)));
        };
        if first_place == 0 {
            return Ok((0, Dense::Known(0)));
        }
        if self.keyspace.partition_count() == 1 {
            return Ok((counted.0, Dense::Known(counted.1)));
        }
        let keys = self.keyspace.keys();
        let end = match span.range() {
            0 => first.key,
            range => span.group(first.key) * range as f64,
        };
        let better: Vec<u64> = self
            .keyspace
            .gather(|request, p| {
                let mut count = redis::cmd("ZCOUNT");
                count
                    .arg(keys.board(p, &board.id, &span.stored()))
                    .arg("-inf")
                    .arg(format!("({end}"));
                request.command(count);
            })
            .await?;
        Ok((better.into_iter().sum(), Dense::later(span, first.key)))
    }

    fn ask_page(
        &self,
        request: &mut Request,
        p: Partition,
        board: &Board,
        span: &Span,
        wanted: &Wanted,
        now: DateTime<Utc>,
    ) {
        let (keys, stored) = (self.keyspace.keys(), span.stored());
        let mut names = vec![
            keys.board_version(p, &board.id),
            keys.board(p, &board.id, &stored),
            keys.board_distinct(p, &board.id, &stored),
        ];
        let day = span.day_in_force(board);
        if day.is_some() {
            names.push(keys.window_day(p, &board.id));
        }
        let (end, many) = match wanted.many {
            Many::First(many) => ("first", many),
            Many::Last(many) => ("last", many),
        };
        let [low, high] = span.key_bounds(board.order, wanted.least, wanted.most, now);
        let position = |member: Option<&Member>| match member {
            Some(member) => [member.key.to_string(), member.user.as_str().to_owned()],
            None => [String::new(), String::new()],
        };
        let (how, begin) = match &wanted.begin {
            Begin::Start => ("after", None),
            Begin::At(member) => ("at", Some(member)),
            Begin::After(member) => ("after", Some(member)),
        };
        let ([begin, begin_user], [before, before_user]) =
            (position(begin), position(wanted.before.as_ref()));
        let (range, many, day) = (
            span.range().to_string(),
            many.to_string(),
            day.unwrap_or_default(),
        );
        let args = [
            range.as_str(),
            end,
            &many,
            &low,
            &high,
            &begin,
            &begin_user,
            &before,
            &before_user,
            &day,
            how,
        ];
        request.script(&PAGE, &names, &args);
    }
}

fn read_part(value: redis::Value) -> Result<Part, Unavailable> {
    let (version, participants, total, skipped, within, before, rows, better, distinct) = reply(value)?;
    Ok((
        (version, participants, total, skipped, within, before),
        rows,
        better,
        distinct,
    ))
}

fn members(rows: Vec<(String, f64)>) -> Result<Vec<Member>, Unavailable> {
    rows.into_iter()
        .map(|(user, key)| match UserId::parse(&user) {
            Ok(user) => Ok(Member { key, user }),
            Err(bad) => Err(Unavailable::Fault(format!("a board's member is no user: {bad}"))),
        })
        .collect()
}
