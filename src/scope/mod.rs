//! One strategy state for each resource that is throttled on its own.
//!
//! The map is `papaya`'s: it alone of those considered reads without a lock and without a write to memory that threads
//! share. `dashmap` locks a shard, also to read; `scc`'s buckets are locked, if for a moment; either writes a line that
//! all readers of the shard or bucket share. Creating a scope is rare, and may wait inside the map while that grows. The
//! line in which scopes stand for eviction is `crossbeam-queue`'s.
//!
//! Who is in use, who is retired and whether somebody came in between is decided by one word of each scope,
//! `Usage`. The protocol:
//!
//! 1. Get: find the key in the map and enter its usage; if that is retired, or the key not there, create.
//! 2. Create: take a place (or evict, which hands one over), make the strategy, and put it into the map unless a state
//!    that is not retired is there; then into the line.
//! 3. Evict: take the first out of the line; look at its usage; if nobody uses it and its strategy is idle, retire it
//!    unless somebody has entered since the look; take it out of the map. Else put it last.
//!
//! A retired state is never entered again, and a state is replaced in the map only if it is retired: there are never two
//! live states of one key. A thread that stops while it looks up what is there holds up nobody; what it holds is not evicted. One that
//! stops within the line while it creates or evicts may hold up others that do the same, as in the map.

mod builder;
mod error;
#[cfg(feature = "metrics")]
mod metrics;
mod scopes;
mod slot;
mod store;
mod strategy;

pub use builder::ScopesBuilder;
pub use error::{ScopeRefused, ScopesError};
pub use scopes::{Scopes, ScopesSnapshot};
pub use slot::Scope;
