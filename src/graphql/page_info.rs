//! Where a page lies, as the Relay cursor connections specification says it.

use async_graphql::SimpleObject;

use super::shared::shared;

/// Where a page lies.
#[derive(Debug, SimpleObject)]
#[graphql(directive = shared::apply(None))]
pub struct PageInfo {
    /// Whether there are rows before this page.
    pub has_previous_page: bool,
    /// Whether there are rows after this page.
    pub has_next_page: bool,
    /// The first row's cursor; null on an empty page.
    pub start_cursor: Option<String>,
    /// The last row's cursor; null on an empty page.
    pub end_cursor: Option<String>,
}

impl PageInfo {
    /// Of a page whose rows have these cursors, in their order.
    pub fn of<'c>(
        has_previous_page: bool,
        has_next_page: bool,
        cursors: impl DoubleEndedIterator<Item = &'c str> + Clone,
    ) -> PageInfo {
        PageInfo {
            has_previous_page,
            has_next_page,
            start_cursor: cursors.clone().next().map(str::to_owned),
            end_cursor: cursors.clone().next_back().map(str::to_owned),
        }
    }
}
