//! One strategy state for each resource that is throttled on its own.
//!
//! The map is `papaya`'s: it alone of those considered reads without a lock and without a write to
//! memory that threads share. `dashmap` locks a shard, also to read; `scc`'s buckets are locked, if
//! for a moment; either writes a line that all readers of the shard or bucket share. Creating a
//! scope is rare, and may wait inside the map while that grows. The line in which scopes stand for
//! eviction is `crossbeam-queue`'s.
//!
//! Whether a scope is in use, has its place, is retired, or was used since the last look is one
//! word of the scope, `Usage`. How many places are taken, and by which scope last, is one word of
//! the store, `Occupancy`. The protocol:
//!
//! 1. Get: find the key in the map and enter its usage; if that is retired, or the key not there,
//!    create. If it has no place yet, take one for it, as its creator does.
//! 2. Create: make the strategy, put it into the map unless a state that is not retired is there,
//!    and take a place by one swap that names the state. The next thread to take a place notes that
//!    at the state first. So a place belongs to a key from the start, two threads that create one
//!    key take one place, and a store that looks full is full of other keys. Without a place to
//!    take, evict; without any to evict, the last user of the state takes it out of the map.
//! 3. Evict: take the first out of the line; look at its usage; if it is unused and its strategy is
//!    idle, retire it unless a user has entered since the look; take it out of the map, and give
//!    its place back. Else put it last, also if its strategy panics.
//!
//! A retired state is never entered again, and a state is replaced in the map only if it is
//! retired: there are never two live states of one key. A thread that stops in a look-up holds up
//! no other; what it holds is not evicted. One that stops between a state's retirement and the end
//! of its eviction keeps that place. One that stops within the line while it creates or evicts may
//! hold up others that do the same, as in the map.

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
