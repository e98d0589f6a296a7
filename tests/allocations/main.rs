//! What is allocated, counted: this binary has an allocator of its own.

extern crate alloc;

mod attempts;
mod reports;
#[cfg(feature = "scopes")]
mod scopes;
#[cfg(feature = "scopes")]
mod scopes_of_many;
#[cfg(feature = "tokio")]
mod waiting;
