//! What tests start and speak to.

mod answers;
mod app;
mod pages;
mod seed;
mod shape;
mod socket;

pub use answers::*;
pub use app::{Caller, TestApp, at, both_partitions, date, spawn_app};
pub use pages::{Entries, PageInfo, Way, entries};
pub use seed::Seed;
pub use socket::Socket;
