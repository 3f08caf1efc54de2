//! Which partition a user belongs to.
//!
//! Owns the hash. It is part of the data's format: `partition = XXH64(user id's bytes, seed 0) mod P`, P a power of two.

use std::fmt;

use xxhash_rust::xxh64::xxh64;

use crate::ids::UserId;

/// One of the P parts of the data. Its number is the Redis Cluster hash tag of all its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(u32);

impl Partition {
    /// The partition of `user` among `count`.
    pub fn of(user: &UserId, count: u32) -> Partition {
        Partition((hash(user) % u64::from(count.max(1))) as u32)
    }

    /// The partition with this number.
    pub fn number(number: u32) -> Partition {
        Partition(number)
    }

    /// Its place in a list of all partitions.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The hash behind partitions and buckets of ids.
pub fn hash(user: &UserId) -> u64 {
    xxh64(user.as_str().as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_part_of_the_format_and_never_changes() {
        let id = |text| UserId::parse(text).unwrap();
        assert_eq!(hash(&id("abc")), 0x44bc_2cf5_ad77_0999); // XXH64's published value
        assert_eq!(hash(&id("amy")), 0xfc19_945b_257b_54b4); // as xxhash for Python computes it
        assert_eq!(Partition::of(&id("amy"), 1), Partition::number(0));
        assert_eq!(Partition::of(&id("amy"), 8), Partition::number(4));
    }
}
