//! What the documentation says, compared with what is so.
//!
//! [`schema`]: every part of the API is described. [`configuration`]: every setting is, with its default and its bounds.

mod configuration;
mod page;
mod schema;
mod settings;
