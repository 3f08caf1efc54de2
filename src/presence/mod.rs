//! Presence: who is online, in a room and on the whole site.
//!
//! [`store`] owns the sets of last sightings, their sessions and what counts as online; [`list`] reads who it is, [`upkeep`]
//! clears away who has gone, `minutes` is the mode that only counts, [`attendance`] beats for sockets (`seats` says for which,
//! [`batches`] sends many beats at a time); [`graphql`] and [`live`] are the face, [`watched`] looks at all counts that are
//! followed.

pub mod attendance;
pub mod batches;
pub mod graphql;
pub mod list;
pub mod live;
mod minutes;
mod seats;
pub mod store;
pub mod upkeep;
pub mod watched;

pub use store::{Place, Presence};
