//! What the documentation says, compared with what is so.
//!
//! [`schema`]: every part of the API is described. [`configuration`]: every setting is, with its default and its bounds.
//! [`samples`]: the requests of docs/api.md and docs/errors.md are sent, and answered as the pages show. [`errors`]: no code
//! is left out. [`page`], [`settings`], [`story`] and [`likeness`] read and compare.

mod configuration;
mod errors;
mod likeness;
mod page;
mod samples;
mod schema;
mod settings;
mod story;
