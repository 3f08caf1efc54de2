//! What a server says of itself: its metrics, its memory.

use std::fs;

use super::eventually;

/// A figure of live push as `/metrics` shows it, summed over its labels: `sockets`, `topics`, `dropped_total`.
pub async fn live_figure(address: &str, name: &str) -> u64 {
    let page = reqwest::get(format!("http://{address}/metrics")).await.unwrap();
    let page = page.error_for_status().unwrap().text().await.unwrap();
    let name = format!("tallyboard_live_{name}");
    let values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(&name)?;
        let (_, value) = rest.rsplit_once(' ')?;
        rest.starts_with(['{', ' '])
            .then(|| value.parse::<u64>().unwrap())
    });
    values.sum()
}

/// Sockets, subscriptions and topics.
pub async fn crowd(address: &str) -> [u64; 3] {
    [
        live_figure(address, "sockets").await,
        live_figure(address, "subscriptions").await,
        live_figure(address, "topics").await,
    ]
}

/// Waits until there are so many sockets, subscriptions and topics.
#[track_caller]
pub fn crowd_becomes(address: &str, expected: [u64; 3]) -> impl Future<Output = ()> {
    eventually("the crowd", async move || crowd(address).await == expected)
}

/// How much of a process is in memory, in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}
