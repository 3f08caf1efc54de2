//! Who moved from where to where between two tops.
//!
//! Owns the difference of two orders. Pure.

use std::collections::HashMap;

use crate::ids::UserId;

/// A user's move, in ORDINAL places from 1; `None`: outside the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Who.
    pub user: UserId,
    /// The place before.
    pub from: Option<u64>,
    /// The place after.
    pub to: Option<u64>,
}

/// The moves that lead from the order `before` to the order `after`: those who came or changed place by their new place,
/// then those who left by their old one. Whoever is not among them stands where it stood.
pub fn between<'u>(
    before: impl IntoIterator<Item = &'u UserId>,
    after: impl IntoIterator<Item = &'u UserId>,
) -> Vec<Move> {
    let before: Vec<&UserId> = before.into_iter().collect();
    let mut places: HashMap<&UserId, u64> = before.iter().copied().zip(1..).collect();
    let mut moves = Vec::new();
    for (user, to) in after.into_iter().zip(1..) {
        let from = places.remove(user);
        if from != Some(to) {
            moves.push(Move {
                user: user.clone(),
                from,
                to: Some(to),
            });
        }
    }
    let left = before
        .iter()
        .filter_map(|user| Some((*user, places.remove(user)?)));
    moves.extend(left.map(|(user, from)| Move {
        user: user.clone(),
        from: Some(from),
        to: None,
    }));
    moves
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a client does: takes off who moved, then puts each in its new place.
    fn apply(before: &[UserId], moves: &[Move]) -> Vec<UserId> {
        let mut places: HashMap<u64, UserId> = (1..).zip(before.iter().cloned()).collect();
        for from in moves.iter().filter_map(|step| step.from) {
            places.remove(&from);
        }
        for step in moves {
            if let Some(to) = step.to {
                assert_eq!(places.insert(to, step.user.clone()), None, "two in one place");
            }
        }
        let mut order: Vec<(u64, UserId)> = places.into_iter().collect();
        order.sort();
        assert!(
            order.iter().map(|(place, _)| *place).eq(1..=order.len() as u64),
            "a gap: {order:?}"
        );
        order.into_iter().map(|(_, user)| user).collect()
    }

    fn order() -> impl Strategy<Value = Vec<UserId>> {
        let users: Vec<UserId> = ('a'..='l')
            .map(|name| UserId::parse(&name.to_string()).unwrap())
            .collect();
        (Just(users).prop_shuffle(), 0usize..=10).prop_map(|(users, many)| users[..many].to_vec())
    }

    proptest! {
        #[test]
        fn applied_to_the_order_before_they_give_the_order_after(before in order(), after in order()) {
            let moves = between(&before, &after);
            prop_assert_eq!(apply(&before, &moves), after.clone());
            for step in &moves {
                prop_assert_ne!(step.from, step.to);
            }
            prop_assert!(between(&after, &after).is_empty());
        }
    }
}
