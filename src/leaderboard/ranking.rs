//! Places: ranks by the three methods, percentiles, and the merging of partitions.
//!
//! Owns the rules by which places are numbered. Pure: the counts come from [`super::standings`].

use std::collections::VecDeque;

use super::RankMethod;
use crate::ids::UserId;

/// One member as a partition stores it: its key and its name. Ordered as boards are: by key, then by user id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The encoded score; the smallest stands first.
    pub key: i64,
    /// Who.
    pub user: UserId,
}

/// How many stand before someone, counted three ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Members that stand before.
    pub members: u64,
    /// Members with better points.
    pub better: u64,
    /// Distinct better points; `None` where partitions would have to be merged for it.
    pub distinct: Option<u64>,
}

impl Ahead {
    /// The rank by `method`, from 1; `None` for DENSE where it has not been counted.
    pub fn rank(&self, method: RankMethod) -> Option<u64> {
        let ahead = match method {
            RankMethod::Ordinal => Some(self.members),
            RankMethod::Competition => Some(self.better),
            RankMethod::Dense => self.distinct,
        };
        ahead.map(|ahead| ahead + 1)
    }
}

/// `100 * share of participants ranked at or below`, by the rank that counts members (competition where equals share a
/// place): the best is 100, and so is everybody who shares the first place.
pub fn percentile(ahead: &Ahead, method: RankMethod, participants: u64) -> f64 {
    let before = match method {
        RankMethod::Ordinal => ahead.members,
        RankMethod::Competition | RankMethod::Dense => ahead.better,
    };
    match participants {
        0 => 0.0,
        all => 100.0 * all.saturating_sub(before) as f64 / all as f64,
    }
}

/// Merges the best of each partition into the best `many` of all.
pub fn merge(partitions: Vec<Vec<Member>>, many: usize) -> Vec<Member> {
    let mut all: Vec<Member> = partitions.into_iter().flatten().collect();
    all.sort_unstable();
    all.truncate(many);
    all
}

/// What stands before each of a page's points, the page being the board's very beginning.
pub fn along_the_top(points: impl IntoIterator<Item = i64>) -> Vec<Ahead> {
    let mut places: Vec<Ahead> = Vec::new();
    let mut before: Option<i64> = None;
    for (members, points) in points.into_iter().enumerate() {
        let last = places.last().copied();
        let place = match (last, before) {
            (Some(last), Some(before)) if before == points => Ahead {
                members: members as u64,
                ..last
            },
            (Some(last), _) => Ahead {
                members: members as u64,
                better: members as u64,
                distinct: last.distinct.map(|distinct| distinct + 1),
            },
            (None, _) => Ahead {
                members: 0,
                better: 0,
                distinct: Some(0),
            },
        };
        before = Some(points);
        places.push(place);
    }
    places
}

/// Counts the distinct keys of several ascending lists that are read in chunks: feed it what it wants until it wants
/// nothing more.
pub struct DistinctKeys {
    heads: Vec<VecDeque<i64>>,
    ended: Vec<bool>,
    last: Option<i64>,
    count: u64,
}

impl DistinctKeys {
    /// Over so many lists.
    pub fn new(lists: usize) -> DistinctKeys {
        DistinctKeys {
            heads: vec![VecDeque::new(); lists],
            ended: vec![false; lists],
            last: None,
            count: 0,
        }
    }

    /// The list whose next chunk is needed; `None` when all are counted.
    pub fn wants(&mut self) -> Option<usize> {
        loop {
            if let Some(list) = (0..self.heads.len()).find(|&l| self.heads[l].is_empty() && !self.ended[l]) {
                return Some(list);
            }
            let smallest = self
                .heads
                .iter_mut()
                .filter(|head| !head.is_empty())
                .min_by_key(|head| head[0]);
            let key = smallest?.pop_front();
            if key != self.last {
                self.count += 1;
                self.last = key;
            }
        }
    }

    /// The next chunk of a list; an empty one ends it.
    pub fn feed(&mut self, list: usize, chunk: Vec<i64>) {
        self.ended[list] = chunk.is_empty();
        self.heads[list] = chunk.into();
    }

    /// How many were distinct.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_points_are_numbered_by_each_method() {
        let places = along_the_top([101, 100, 100, 99]);
        let ranks = |method| {
            places
                .iter()
                .map(|place| place.rank(method).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(ranks(RankMethod::Ordinal), [1, 2, 3, 4]);
        assert_eq!(ranks(RankMethod::Competition), [1, 2, 2, 4]);
        assert_eq!(ranks(RankMethod::Dense), [1, 2, 2, 3]);
    }

    #[test]
    fn the_best_is_at_100_percent_and_equals_share_it_where_they_share_a_place() {
        let places = along_the_top([5, 5, 4, 3]);
        let shown = |method| {
            places
                .iter()
                .map(|place| percentile(place, method, 4))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(RankMethod::Ordinal), [100.0, 75.0, 50.0, 25.0]);
        assert_eq!(shown(RankMethod::Dense), [100.0, 100.0, 50.0, 25.0]);
        assert_eq!(percentile(&Ahead::default(), RankMethod::Ordinal, 0), 0.0);
    }

    #[test]
    fn distinct_keys_are_counted_once_across_lists_and_chunks() {
        let lists = [vec![vec![-9, -5], vec![-2]], vec![vec![-9], vec![-4, -2]], vec![]];
        let mut keys = DistinctKeys::new(3);
        let mut read = [0; 3];
        while let Some(list) = keys.wants() {
            keys.feed(list, lists[list].get(read[list]).cloned().unwrap_or_default());
            read[list] += 1;
        }
        assert_eq!(keys.count(), 4);
    }
}
