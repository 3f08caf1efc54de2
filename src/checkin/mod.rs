//! Check-ins: the calendar, streaks, rewards and the wallet.
//!
//! Read [`streak`], [`rewards`] and [`make_up`] (the rules), [`record`] and [`rows`] (what is kept, and where a day's bit
//! lies), [`ended`], [`joining`] and [`past`] (what is known of runs whose first years are gone), then the store:
//! [`store`] (one script a check-in), [`making_up`], [`wallet`], [`history`] and [`write_history`] (reading and importing
//! years), [`keep`], [`keeping`] and [`upkeep`] (what time does to it). [`graphql`] is the face.

pub mod calendar;
pub mod ended;
pub mod graphql;
pub mod history;
pub mod joining;
pub mod keep;
pub mod keeping;
pub mod make_up;
pub mod making_up;
pub mod past;
pub mod record;
pub mod rewards;
pub mod rows;
pub mod store;
pub mod stored;
pub mod streak;
pub mod upkeep;
pub mod wallet;
pub mod write_history;

pub use record::Record;
pub use rewards::{Reward, Rewards};
pub use store::CheckIns;
