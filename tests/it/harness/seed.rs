//! What random tests are drawn from.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// What a run is drawn from; says so when it fails.
pub struct Seed(pub u64);

impl Seed {
    /// Another one each time, unless `TALLYBOARD_SEED` names one.
    pub fn draw() -> Seed {
        let given = std::env::var("TALLYBOARD_SEED").ok();
        Seed(given.map_or_else(|| StdRng::from_os_rng().random(), |seed| seed.parse().unwrap()))
    }
}

impl Drop for Seed {
    #[allow(clippy::print_stderr)] // the test's own report
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TALLYBOARD_SEED={} repeats this", self.0);
        }
    }
}
