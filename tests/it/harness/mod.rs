//! What tests start and speak to.

mod answers;
mod app;
mod shape;
mod socket;
mod spans;

pub use answers::*;
pub use app::{Caller, TestApp, at, both_partitions, date, spawn_app};
pub use socket::Socket;
pub use spans::*;
