//! Places: ranks by the three methods, percentiles, and the merging of partitions.
//!
//! Owns the rules by which places are numbered. Pure: the counts come from [`super::standings`].

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::RankMethod;
use crate::ids::UserId;

/// One member as a partition stores it: its key and its name. Ordered as boards are: by key, then by user id.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The encoded score; the smallest stands first.
    pub key: f64,
    /// Who.
    pub user: UserId,
}

impl Eq for Member {}

impl Ord for Member {
    fn cmp(&self, other: &Member) -> Ordering {
        self.key
            .total_cmp(&other.key)
            .then_with(|| self.user.cmp(&other.user))
    }
}

impl PartialOrd for Member {
    fn partial_cmp(&self, other: &Member) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How many stand before someone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Members that stand before.
    pub members: u64,
    /// Members with better points.
    pub better: u64,
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

/// Merges the beginnings of the partitions' lists into the first `many` of all.
pub fn merge_first(partitions: Vec<Vec<Member>>, many: usize) -> Vec<Member> {
    let mut all: Vec<Member> = partitions.into_iter().flatten().collect();
    all.sort_unstable();
    all.truncate(many);
    all
}

/// Merges the ends of the partitions' lists into the last `many` of all.
pub fn merge_last(partitions: Vec<Vec<Member>>, many: usize) -> Vec<Member> {
    let mut all: Vec<Member> = partitions.into_iter().flatten().collect();
    all.sort_unstable();
    all.split_off(all.len().saturating_sub(many))
}

/// What stands before each row of a page, and how many more distinct points are better than its own than are better
/// than the first row's. `first_place` members stand before the first row, `better` of them with better points; `groups`
/// are what equal points have in common.
pub fn along_a_page(
    first_place: u64,
    better: u64,
    groups: impl IntoIterator<Item = f64>,
) -> Vec<(Ahead, u64)> {
    let mut places: Vec<(Ahead, u64)> = Vec::new();
    let mut before: Option<f64> = None;
    for (members, group) in (first_place..).zip(groups) {
        let place = match places.last() {
            None => (Ahead { members, better }, 0),
            Some((last, more)) if before == Some(group) => (
                Ahead {
                    members,
                    better: last.better,
                },
                *more,
            ),
            Some((_, more)) => (
                Ahead {
                    members,
                    better: members,
                },
                more + 1,
            ),
        };
        before = Some(group);
        places.push(place);
    }
    places
}

/// Counts the distinct keys of several ascending lists that are read in chunks: feed it what it wants until it wants
/// nothing more.
pub struct DistinctKeys {
    heads: Vec<VecDeque<f64>>,
    ended: Vec<bool>,
    last: Option<f64>,
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

    /// The lists whose next chunks are needed; none when all are counted.
    pub fn wants(&mut self) -> Vec<usize> {
        loop {
            let hungry = |&list: &usize| self.heads[list].is_empty() && !self.ended[list];
            let wanted: Vec<usize> = (0..self.heads.len()).filter(hungry).collect();
            if !wanted.is_empty() {
                return wanted;
            }
            let left = self.heads.iter_mut().filter(|head| !head.is_empty());
            let Some(smallest) = left.min_by(|a, b| a[0].total_cmp(&b[0])) else {
                return Vec::new();
            };
            let key = smallest.pop_front();
            if key != self.last {
                self.count += 1;
                self.last = key;
            }
        }
    }

    /// The next chunk of a list; an empty one ends it.
    pub fn feed(&mut self, list: usize, chunk: Vec<f64>) {
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
        let places = along_a_page(0, 0, [-101.0, -100.0, -100.0, -99.0]);
        let ranks = |rank: fn(&(Ahead, u64)) -> u64| places.iter().map(rank).collect::<Vec<_>>();
        assert_eq!(ranks(|(ahead, _)| ahead.members + 1), [1, 2, 3, 4]);
        assert_eq!(ranks(|(ahead, _)| ahead.better + 1), [1, 2, 2, 4]);
        assert_eq!(ranks(|(_, more)| more + 1), [1, 2, 2, 3]);
    }

    #[test]
    fn a_page_in_the_middle_goes_on_where_the_one_before_ended() {
        let all = [-9.0, -7.0, -7.0, -7.0, -4.0, -4.0, 1.0];
        let whole = along_a_page(0, 0, all);
        for cut in 0..all.len() {
            let (ahead, more) = whole[cut];
            let rest = along_a_page(cut as u64, ahead.better, all[cut..].iter().copied());
            let rest: Vec<_> = rest
                .into_iter()
                .map(|(ahead, after)| (ahead, more + after))
                .collect();
            assert_eq!(rest, whole[cut..]);
        }
    }

    #[test]
    fn the_best_is_at_100_percent_and_equals_share_it_where_they_share_a_place() {
        let places = along_a_page(0, 0, [-5.0, -5.0, -4.0, -3.0]);
        let shown = |method| {
            places
                .iter()
                .map(|(ahead, _)| percentile(ahead, method, 4))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(RankMethod::Ordinal), [100.0, 75.0, 50.0, 25.0]);
        assert_eq!(shown(RankMethod::Dense), [100.0, 100.0, 50.0, 25.0]);
        assert_eq!(percentile(&Ahead::default(), RankMethod::Ordinal, 0), 0.0);
    }

    #[test]
    fn distinct_keys_are_counted_once_across_lists_and_chunks() {
        let lists = [
            vec![vec![-9.0, -5.0], vec![-2.0]],
            vec![vec![-9.0], vec![-4.0, -2.0]],
            vec![],
        ];
        let mut keys = DistinctKeys::new(3);
        let mut read = [0; 3];
        loop {
            let wanted = keys.wants();
            if wanted.is_empty() {
                break;
            }
            for list in wanted {
                keys.feed(list, lists[list].get(read[list]).cloned().unwrap_or_default());
                read[list] += 1;
            }
        }
        assert_eq!(keys.count(), 4);
    }
}
