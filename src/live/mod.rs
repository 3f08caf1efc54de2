//! Live: how a change in Redis reaches those who watch.
//!
//! [`changes`] listens to Redis and says which board changed; a subscription then reads the state anew.

pub mod changes;

pub use changes::Changes;
