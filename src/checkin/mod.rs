//! Check-ins: the calendar, streaks, rewards and the wallet.
//!
//! Read [`streak`] and [`rewards`] (the rules), [`rows`] (where a day's bit lies), then [`store`] (one script a
//! check-in), [`history`] (reading and importing years) and [`graphql`].

pub mod calendar;
pub mod graphql;
pub mod history;
pub mod rewards;
pub mod rows;
pub mod store;
pub mod streak;

pub use rewards::{Reward, Rewards};
pub use store::CheckIns;
pub use streak::Record;
