//! Live: how a change in Redis reaches a thousand sockets.
//!
//! Read along the way of a change: a script publishes a [`message`]; the node's one [`subscriber`] hears it; [`changes`]
//! wakes whoever follows that board ([`listener`]) by a [`pulse`], at most every `live.interval_ms`; a resolver's stream ([`follow`]) reads the state
//! anew; a [`topic`] executes and serialises it once for everybody who asked the same ([`operation`]); its
//! [`fan_out`] writes those bytes into the [`outlet`]s of [`socket`]s (graphql-transport-ws, spelled by [`protocol`]), and HTTP
//! [`streams`] fetch them. [`audit`] looks for messages that got lost, [`gauges`] count.

pub mod audit;
pub mod changes;
pub mod connections;
pub mod fan_out;
pub mod follow;
pub mod gauges;
pub mod legacy;
pub mod listener;
pub mod message;
pub mod operation;
pub mod operations;
pub mod outlet;
pub mod protocol;
pub mod pulse;
pub mod socket;
pub mod streams;
pub mod subscriber;
pub mod topic;
pub mod topics;

pub use changes::Changes;
pub use connections::Connections;
pub use follow::{Followed, Step, UpdateCause, follow};
pub use gauges::Gauges;
pub use listener::Listener;
pub use pulse::Pulse;
pub use topics::Topics;
