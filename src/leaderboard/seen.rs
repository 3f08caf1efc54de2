//! Where many users stand, each with whoever stands right before: what followers of ranks read at every pulse.
//!
//! Owns the reading of many places at once: one pipeline a board and span, two when there are several partitions.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_graphql::dataloader::Loader;
use chrono::{DateTime, Utc};
use redis::{FromRedisValue, Value};

use super::ranking::{Ahead, Member};
use super::standings::{Asked, Place, Standing};
use super::{Board, Leaderboards, Span, Version};
use crate::clock::Clock;
use crate::ids::UserId;
use crate::keyspace::{Unavailable, reply};

/// Whose place is wanted, over which span of which board.
#[derive(Clone)]
pub struct Wanted {
    /// Where.
    pub board: Arc<Board>,
    /// Over which span.
    pub span: Arc<Span>,
    /// Who.
    pub user: UserId,
}

impl Wanted {
    fn place(&self) -> (&str, String) {
        (self.board.id.as_str(), self.span.stored())
    }
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Wanted) -> bool {
        self.user == other.user && self.place() == other.place()
    }
}

impl Eq for Wanted {}

impl Hash for Wanted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
        self.user.hash(state);
    }
}

/// A user's place as of one reading.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The board's version; what the partitions counted when each was asked.
    pub version: Version,
    /// Members of the board in this span.
    pub participants: u64,
    /// `None`: not there.
    pub standing: Option<Standing>,
    /// Who stands right before.
    pub above: Option<Member>,
}

/// Reads the places that are wanted together.
pub struct PlaceLoader(pub Leaderboards, pub Clock);

impl Loader<Wanted> for PlaceLoader {
    type Value = Seen;
    type Error = Unavailable;

    async fn load(&self, wanted: &[Wanted]) -> Result<HashMap<Wanted, Seen>, Unavailable> {
        let PlaceLoader(boards, clock) = self;
        let mut groups: HashMap<(&str, String), Vec<&Wanted>> = HashMap::new();
        for one in wanted {
            groups.entry(one.place()).or_default().push(one);
        }
        let groups = groups.into_values();
        let read = groups.map(|group| async move { boards.seen(&group, clock.now()).await });
        let read = futures::future::try_join_all(read).await?;
        Ok(read.into_iter().flatten().collect())
    }
}

impl Leaderboards {
    /// The places of users on one board over one span.
    async fn seen(&self, group: &[&Wanted], now: DateTime<Utc>) -> Result<Vec<(Wanted, Seen)>, Unavailable> {
        let Some(first) = group.first() else {
            return Ok(Vec::new());
        };
        let (board, span) = (&first.board, &first.span);
        let (replies, day) = self
            .on_its_day(board, span, |request, span| {
                for wanted in group {
                    let (home, user) = (self.keyspace.partition_of(&wanted.user), &wanted.user);
                    self.ask_place(
                        request,
                        home,
                        board,
                        span,
                        &Asked {
                            user,
                            key: None,
                            above: true,
                        },
                    );
                }
            })
            .await?;
        let mut all = Vec::with_capacity(group.len());
        for (wanted, value) in group.iter().zip(replies) {
            all.push(((*wanted).clone(), self.at_home(wanted, &day, reply(value)?, now)?));
        }
        if self.keyspace.partition_count() > 1 {
            self.see_elsewhere(board, span, &mut all).await?;
        }
        Ok(all)
    }

    /// A place as counted in the user's own partition.
    fn at_home(
        &self,
        wanted: &Wanted,
        span: &Span,
        place: Place,
        now: DateTime<Utc>,
    ) -> Result<Seen, Unavailable> {
        let (key, members, better, distinct, participants, version, above) = place;
        let ahead = Ahead { members, better };
        let mut counts = vec![0; self.keyspace.partition_count()];
        counts[self.keyspace.partition_of(&wanted.user).index()] = version;
        Ok(Seen {
            version: Version::new(counts),
            participants,
            standing: key.map(|key| {
                let user = wanted.user.clone();
                self.shown(&wanted.board, span, user, key, ahead, distinct, participants, now)
            }),
            above: member(above)?,
        })
    }

    /// Adds what the other partitions hold.
    async fn see_elsewhere(
        &self,
        board: &Board,
        span: &Span,
        all: &mut [(Wanted, Seen)],
    ) -> Result<(), Unavailable> {
        let mut asked = Vec::new();
        let (replies, _) = self
            .on_its_day(board, span, |request, span| {
                asked.clear();
                for (place, (wanted, seen)) in all.iter().enumerate() {
                    let home = self.keyspace.partition_of(&wanted.user);
                    for p in self.keyspace.partitions().filter(|&p| p != home) {
                        let key = seen.standing.as_ref().map(|standing| standing.key);
                        let question = Asked {
                            user: &wanted.user,
                            key,
                            above: true,
                        };
                        self.ask_place(request, p, board, span, &question);
                        asked.push((place, p));
                    }
                }
            })
            .await?;
        for ((place, p), value) in asked.into_iter().zip(replies) {
            let (_, members, better, _, participants, version, above): Place = reply(value)?;
            let seen = &mut all[place].1;
            seen.version.set(p.index(), version);
            seen.participants += participants;
            if let Some(standing) = &mut seen.standing {
                standing.ahead.members += members;
                standing.ahead.better += better;
            }
            seen.above = seen.above.take().max(member(above)?); // the last of those who stand before
        }
        for (_, seen) in all {
            if let Some(standing) = &mut seen.standing {
                standing.participants = seen.participants;
            }
        }
        Ok(())
    }
}

/// The member of a reply, if there is one.
fn member(pair: Vec<Value>) -> Result<Option<Member>, Unavailable> {
    let fault = |what: String| Unavailable::Fault(format!("a board's member is none: {what}"));
    let mut pair = pair.into_iter();
    let (Some(user), Some(key)) = (pair.next(), pair.next()) else {
        return Ok(None);
    };
    let user: String = String::from_redis_value(user).map_err(|error| fault(error.to_string()))?;
    Ok(Some(Member {
        key: f64::from_redis_value(key).map_err(|error| fault(error.to_string()))?,
        user: UserId::parse(&user).map_err(|bad| fault(bad.to_string()))?,
    }))
}
