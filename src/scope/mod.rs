//! One strategy state for each resource that is throttled separately.
//!
//! The map is from `papaya`. Of the maps considered, only this map reads without a lock and without
//! a write to memory that threads share. A reader of `dashmap` locks a shard, and a reader of `scc`
//! locks a bucket for a moment. Either writes a cache line that other readers share. Creating a
//! scope is rare, and may wait inside the map while the map grows. The queue of scopes for eviction
//! is from `crossbeam-queue`.
//!
//! Each scope has one word, `Usage`: whether the scope is in use, has its place, is retired, or was
//! used since the last look. The store has one word, `Occupancy`: how many places are taken, and by
//! which scope last. The protocol:
//!
//! 1. Get: find the key in the map and enter its usage. If the key is missing or its state retired,
//!    create. If the state has no place yet, take a place for it, as its creator does.
//! 2. Create: make the strategy, and put its state into the map unless a live state is there. Take
//!    a place by one swap that names the state. The next thread that takes a place first notes at
//!    this state that it has its place. So a place belongs to a key from the start. Two threads
//!    that create one key take one place, and a full store is full of other keys. If no place is
//!    free, evict. If nothing can be evicted, the last user of the state takes it out of the map.
//! 3. Evict: take the first state out of the queue and look at its usage. If it is unused and its
//!    strategy idle, retire it, unless a user has entered since the look. Then take the state out
//!    of the map, and give its place back. Otherwise put the state last, even if its strategy
//!    panics.
//!
//! A retired state is never entered again, and only a retired state is replaced in the map. So a
//! key never has two live states. A thread that stops in a look-up holds up no other thread, but
//! its state is not evicted. A thread that stops between a state's retirement and the end of its
//! eviction keeps that place. A thread that stops inside the queue or the map while it creates or
//! evicts may hold up others that create or evict.

mod builder;
mod error;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod scopes;
mod slot;
mod store;
mod strategy;

pub use builder::ScopesBuilder;
pub use error::ScopeRefused;
pub use slot::Scope;
