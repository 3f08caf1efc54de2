//! Waiting for what must come, without a guess how long it takes.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Looks until it holds; fails the test if it does not in time.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let looking = async {
            while !holds().await {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = timeout(Duration::from_secs(30), looking).await.is_ok();
        assert!(in_time, "waited in vain for {what} at {place}");
    }
}
