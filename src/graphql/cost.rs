//! What a field costs by `graphql.max_complexity`, in fields of the answer.
//!
//! Owns how a list is counted: what is selected of an entry, as often as there may be entries.

/// The most entries that a list is counted for; longer ones are refused anyway.
const MOST: i32 = 1_000;

/// A list of up to `many` entries.
pub fn of_list(many: i32, each: usize) -> usize {
    1 + usize::try_from(many.clamp(0, MOST)).unwrap_or(0) * each
}

/// A page that is asked for from either end; `usual` entries if neither says how many.
pub fn of_page(first: Option<i32>, last: Option<i32>, usual: i32, each: usize) -> usize {
    of_list(first.or(last).unwrap_or(usual), each)
}

/// One entry for each of those that are named.
pub fn of_each<T>(named: &[T], each: usize) -> usize {
    of_list(i32::try_from(named.len()).unwrap_or(MOST), each)
}
