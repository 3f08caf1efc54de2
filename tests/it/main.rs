//! Behaviour through the real door: a real server, its own private Redis, real HTTP and WebSocket; only time is ours.
//!
//! [`harness`] starts servers and speaks to them; each other file is a feature, its tests named by what they promise.
#![cfg(test)]

mod access;
mod batches;
mod board_model;
mod boards;
mod check_ins;
mod checkin_keep;
mod checkin_model;
mod clients;
mod crowds;
mod documentation;
mod edges;
mod faults;
mod figures;
mod figures_at_scale;
mod harness;
mod heat;
mod identity;
mod imports;
mod issuing;
mod live;
mod live_faults;
mod live_model;
mod make_ups;
mod managed_redis;
mod models;
mod operations;
mod over_http;
mod pages;
mod persisted;
mod presence;
mod presence_count;
mod presence_edges;
mod presence_eviction;
mod presence_live;
mod presence_sockets;
mod presence_upkeep;
mod profiles;
mod protocol;
mod rank_model;
mod ranks;
mod roots;
mod sharing;
mod sse;
mod startup;
mod streaks;
mod tokens;
mod upkeep;
mod wallets;
mod windows;
