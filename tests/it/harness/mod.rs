//! What tests start and speak to.

mod answers;
mod app;
mod figures;
mod pages;
mod process;
mod redis;
mod seed;
mod shape;
mod signer;
mod socket;
mod spans;
mod waiting;
mod watcher;
mod wire;

pub use answers::*;
pub use app::{Caller, TestApp, at, both_partitions, date, spawn_app};
pub use figures::{crowd, crowd_becomes, live_figure, resident_kib};
pub use pages::{Entries, PageInfo, Way, entries};
pub use process::{Place, Server, is_alive, run, signal, tallyboard};
pub use redis::{Line, OwnRedis};
pub use seed::Seed;
pub use signer::Signer;
pub use socket::Socket;
pub use spans::*;
pub use waiting::eventually;
pub use watcher::{Got, Watched, Watcher};
pub use wire::{Came, Kind, Wire, frame, head, part, subscribe};
