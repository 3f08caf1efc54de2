//! How often a board has changed.
//!
//! Owns the comparison of versions. Each partition counts for itself; the version that callers see is the sum.

use super::Leaderboards;
use crate::ids::BoardId;
use crate::keyspace::Unavailable;

/// A board's version, partition by partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Version(Vec<u64>);

impl Version {
    /// As the partitions counted, in their order.
    pub fn new(counts: Vec<u64>) -> Version {
        Version(counts)
    }

    /// What one partition counted.
    pub fn set(&mut self, partition: usize, count: u64) {
        if let Some(own) = self.0.get_mut(partition) {
            *own = count;
        }
    }

    /// As callers see it.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Whether any partition counted less than in `seen`: then something of it was read from an older state.
    pub fn is_behind(&self, seen: &Version) -> bool {
        let own = self.0.iter().copied().chain(std::iter::repeat(0));
        own.zip(&seen.0).any(|(own, &seen)| own < seen)
    }

    /// Takes over what `read` counts more; whether it counts more.
    pub fn advance(&mut self, read: &Version) -> bool {
        let before = self.clone();
        self.0.resize(self.0.len().max(read.0.len()), 0);
        self.0
            .iter_mut()
            .zip(&read.0)
            .for_each(|(own, read)| *own = (*own).max(*read));
        *self != before
    }
}

impl Leaderboards {
    /// How often `board` has changed.
    pub async fn version(&self, board: &BoardId) -> Result<Version, Unavailable> {
        let counts: Vec<Option<u64>> = self
            .keyspace
            .gather(|request, p| {
                let mut get = redis::cmd("GET");
                get.arg(self.keyspace.keys().board_version(p, board));
                request.command(get);
            })
            .await?;
        Ok(Version::new(
            counts.into_iter().map(Option::unwrap_or_default).collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_partition_that_went_back_is_enough_to_be_behind() {
        let version = |counts: &[u64]| Version::new(counts.to_vec());
        assert!(!version(&[1, 5]).is_behind(&version(&[1, 4])));
        assert!(
            version(&[9, 3]).is_behind(&version(&[1, 4])),
            "although the sum grew"
        );
        let mut seen = Version::default();
        assert!(seen.advance(&version(&[2, 3])));
        assert!(!seen.advance(&version(&[1, 3])));
        assert_eq!((seen.clone(), seen.sum()), (version(&[2, 3]), 5));
    }
}
