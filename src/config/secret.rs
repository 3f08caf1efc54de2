//! A setting that nobody may read in a log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Text that shows itself only to who asks for it by [`Secret::reveal`].
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for nothing but the work that it is for.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it is not set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "not set" } else { "[secret]" })
    }
}
