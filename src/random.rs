//! Chance: the one place that draws random numbers.
//!
//! Owns names that must not collide (operations, generations, epochs), the secret of a run in `--dev`, the jitter of
//! reconnects and of tries, and the spread of a drain.
//! Nothing that a user is shown or paid depends on chance.

use std::time::Duration;

/// A name of 128 random bits in hexadecimal: two draws are never alike in practice, on one node or on many.
#[allow(clippy::disallowed_methods)] // the place that the ban points to
pub fn unique_name() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// A secret of 256 random bits, in hexadecimal.
pub fn secret() -> String {
    unique_name() + &unique_name()
}

/// Somewhere between half of `pause` and all of it, so that nodes which failed together do not return together.
#[allow(clippy::disallowed_methods)] // the place that the ban points to
pub fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + rand::random::<f64>() / 2.0)
}

/// Somewhere between nothing and `most`, so that what leaves together does not leave at once.
#[allow(clippy::disallowed_methods)] // the place that the ban points to
pub fn up_to(most: Duration) -> Duration {
    most.mul_f64(rand::random::<f64>())
}
