//! Presence: who is online, in a room and on the whole site.
//!
//! [`store`] owns the sets of last sightings, their sessions and what counts as online; [`list`] reads who it is, [`upkeep`]
//! clears away who has gone, `minutes` is the mode that only counts, [`attendance`] beats for sockets (in [`batches`]); [`graphql`] and [`live`] are the face.

pub mod attendance;
pub mod batches;
pub mod graphql;
pub mod list;
pub mod live;
mod minutes;
pub mod store;
pub mod upkeep;

pub use store::{Place, Presence};
