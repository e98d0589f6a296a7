//! What users see: events, metrics, texts, errors, names and traits.

extern crate alloc;

#[path = "../support/mod.rs"]
mod support;

mod compiler_messages;
mod debug;
mod error_messages;
#[cfg(all(feature = "tracing", feature = "scopes"))]
mod events;
mod public_names;
mod public_traits;
#[cfg(feature = "serde")]
mod settings_by_name;
#[cfg(feature = "serde")]
mod settings_text;
#[cfg(all(feature = "tracing", feature = "metrics"))]
mod strategy_events;
