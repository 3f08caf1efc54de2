//! What the documentation says, compared with what is so.
//!
//! [`schema`]: every part of the API is described.

mod schema;
