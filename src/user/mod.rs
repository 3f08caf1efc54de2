//! Users as others see them: names and avatars.
//!
//! [`profile`] is the store, [`graphql`] the face. Who a user *is* belongs to the host application; nothing is derived
//! from an id.

pub mod graphql;
pub mod profile;

pub use profile::{Profile, Profiles};
