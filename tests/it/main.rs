//! Behaviour through the real door: a real server, its own private Redis, real HTTP and WebSocket; only time is ours.
//!
//! [`harness`] starts servers and speaks to them; each other file is a feature, its tests named by what they promise.
#![cfg(test)]

mod batches;
mod board_model;
mod boards;
mod check_ins;
mod checkin_model;
mod clients;
mod edges;
mod faults;
mod harness;
mod heat;
mod identity;
mod imports;
mod live;
mod make_ups;
mod managed_redis;
mod models;
mod pages;
mod presence;
mod profiles;
mod startup;
mod streaks;
mod upkeep;
mod wallets;
mod windows;
