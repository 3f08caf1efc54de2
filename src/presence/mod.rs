//! Presence: who is online, in a room and on the whole site.
//!
//! [`store`] owns the sets of last sightings and what counts as online; [`graphql`] is its face.

pub mod graphql;
pub mod store;

pub use store::Presence;
