//! One run of Redis after another, until told to end it.

use std::time::Duration;

use tokio::select;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, error, info, warn};

use super::process::Process;
use super::{POLL, Plan, client};

/// How long a Redis may take to complete its files and go, before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// A Redis that lived this long works, so its next end counts as a first failure.
const STABLE_LIFE: Duration = Duration::from_secs(10);

/// Starts Redis anew whenever it ends by itself. Returns after a word, or after the sender was dropped, with no
/// process left.
pub(super) async fn keep_running(
    plan: &Plan,
    mut process: Process,
    show_pid: watch::Sender<Option<u32>>,
    mut told_to_stop: oneshot::Receiver<()>,
) {
    let mut failures = 0;
    loop {
        let born = Instant::now();
        let status = select! {
            word = &mut told_to_stop => {
                return if word.is_ok() { shut_down(plan, process).await } else { process.kill().await };
            }
            status = ended(plan, &mut process) => status,
        };
        show_pid.send_replace(None);
        if born.elapsed() >= STABLE_LIFE {
            failures = 0;
        }
        warn!(status, "the private Redis ended by itself; starting it again");
        process = loop {
            select! {
                biased;
                _ = &mut told_to_stop => return,
                () = sleep(pause_after(failures)) => failures += 1,
            }
            match Process::spawn(plan) {
                Ok(process) => break process,
                Err(cause) => error!(%cause, "the private Redis cannot be started again"),
            }
        };
        show_pid.send_replace(process.pid());
    }
}

/// Waits for the end of `process`, and meanwhile says when it takes commands.
async fn ended(plan: &Plan, process: &mut Process) -> String {
    select! {
        status = process.ended() => return status,
        () = client::until_ready(&plan.socket) => {}
    }
    info!(pid = process.pid(), socket = %plan.socket.display(), "the private Redis is ready");
    process.ended().await
}

/// None before the first restart, then 50 ms, doubling up to 2 s.
fn pause_after(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        n => Duration::from_millis(50 << (n - 1).min(6)).min(Duration::from_secs(2)),
    }
}

async fn shut_down(plan: &Plan, mut process: Process) {
    // Asked again and again: one that was just started does not listen yet.
    let asking = async {
        loop {
            if let Err(reason) = client::shut_down(&plan.socket).await {
                debug!(%reason, "the private Redis did not take the order to stop");
            }
            sleep(POLL).await;
        }
    };
    let ended = timeout(GRACE, async {
        select! {
            status = process.ended() => status,
            never = asking => never,
        }
    });
    match ended.await {
        Ok(status) => info!(status, "the private Redis has stopped"),
        Err(_) => {
            warn!("the private Redis did not stop within {GRACE:?}, killing it");
            process.kill().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_later_ones_wait_up_to_two_seconds() {
        let pauses = [0, 1, 2, 3, 6, 7, 1_000].map(|failures| pause_after(failures).as_millis());
        assert_eq!(pauses, [0, 50, 100, 200, 1_600, 2_000, 2_000]);
    }
}
