//! The public type of scopes.

use alloc::{boxed::Box, sync::Arc};
use core::fmt;

use super::{ScopeRefused, builder::Make, slot::Scope, store::Store};
use crate::RetryStrategy;

/// A strategy for each key: for each table, bucket, host, or other resource that the service
/// throttles separately.
///
/// `Scopes` is itself a strategy: an operation uses the state that
/// [`scope`](crate::Operation::scope) names. It is also a map, from which [`get`](Self::get) takes
/// a scope. Clones share all states. Two `Scopes` that are built apart share nothing.
///
/// # Cost
///
/// Looking a key up takes no lock, allocates nothing and writes no memory that threads share. An
/// operation by name counts itself in and out, in its scope's own cache line. Operations on
/// different scopes share no cache line. A thread that uses one scope often should take a [`Scope`]
/// once, through which nothing is counted.
///
/// A look-up takes some 25 ns in the cache, and 1 µs at random among a million scopes. With a key
/// of 24 bytes a scope takes about 500 bytes under the published law and 700 under the paced law.
/// Once throttled, a scope takes 1,000 and 1,200 bytes (x86-64 with glibc;
/// `tests/allocations/scopes_of_many.rs` measures it). In a full store of 100,000 a new key takes
/// 0.7 to 4 µs if other scopes are idle. If all are limited, the key is refused in 7 to 41 µs.
///
/// # Bound
///
/// There are at most [`max_scopes`](crate::scope::ScopesBuilder::max_scopes). While there is room,
/// no key is refused and no scope is dropped, however many threads ask at once. When there is no
/// room, an approximately least recently used scope is dropped (CLOCK). One call looks at 32 scopes
/// and spares the scopes used since the last look. If it spared some and dropped none, it looks at
/// 32 more. A scope that is dropped has to be
///
/// - not in use: there is no [`Scope`], no operation and no token of it, so no place in line
///   either; and
/// - [idle](RetryStrategy::is_idle): the quota is full and nothing is limited, or neither was used
///   for half an hour. The rate that the scope had learned is lost.
///
/// So an unused scope is idle within an hour, under every law. Two things keep a scope longer: a
/// pause that the service asked for, and [settings](crate::SendRate::set_paced) that were changed
/// at run time.
///
/// If no scope can be dropped, [`get`](Self::get) returns [`ScopeRefused`], and an operation by
/// name uses the [`shared`](Self::shared) state. So does an operation without a scope, with too
/// long a key, or with wrong settings. The shared state limits and retries these operations
/// together. Each refusal is counted.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, ControlLaw, Failure, RetryStrategyExt};
///
/// let strategy = Adaptive::builder().law(ControlLaw::Paced).max_attempts(2).scopes().build()?;
/// let hot = strategy.operation().scope("hot-table");
/// hot.run(|_| Err::<(), _>(Failure::throttling())).unwrap_err();
///
/// assert!(strategy.get("hot-table")?.quota().available() < 500);
/// assert_eq!(strategy.get("cold-table")?.quota().available(), 500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Scopes<S>(Arc<Store<S>>);

/// How many scopes there are, and how many were refused or evicted.
///
/// Each field was true at some moment of the call, but not all need to be of the same moment.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ScopesSnapshot {
    /// The scopes that there are, including scopes that are being dropped.
    pub scopes: u64,
    /// The most scopes that there may be.
    pub max_scopes: u64,
    /// The scopes that were dropped, since the beginning.
    pub evicted: u64,
    /// The calls and operations that got no scope of their own, since the beginning.
    pub refused: u64,
}

impl<S: RetryStrategy + 'static> Scopes<S> {
    pub(super) fn from_parts(make: Box<Make<S>>, shared: S, max_scopes: usize) -> Self {
        let max_scopes = u64::try_from(max_scopes).unwrap_or(u64::MAX);
        Self(Arc::new(Store::new(make, shared, max_scopes)))
    }

    pub(super) fn store(&self) -> &Store<S> {
        &self.0
    }

    /// Returns the scope of `key`, which is created if there is none.
    ///
    /// Any string is a key, even an empty string.
    ///
    /// # Errors
    ///
    /// Returns [`ScopeRefused`] if there is no room, if the key is too long, or if the settings
    /// made for it are wrong.
    pub fn get(&self, key: &str) -> Result<Scope<S>, ScopeRefused> {
        self.0.enter(key).map(Scope::taking_over)
    }

    /// Returns the scope of `key`, or `None` if there is none.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Scope<S>> {
        self.0.find(key).map(Scope::taking_over)
    }

    /// Returns the strategy of operations without a scope: they name no scope, or it was refused.
    #[must_use]
    pub fn shared(&self) -> &S {
        &self.0.shared
    }

    /// Drops the state of `key`, even if it is not idle. Returns `false` if the state is in use or
    /// missing.
    ///
    /// Use this for a resource that no longer exists, or to forget its throttling.
    #[expect(clippy::must_use_candidate, reason = "false is no failure")]
    pub fn remove(&self, key: &str) -> bool {
        self.0.remove(key)
    }

    /// Drops every scope that is idle and not in use, and returns their number.
    ///
    /// Idle scopes stay until their room is needed. After a peak, this gives their memory back. The
    /// call looks at every scope, one after the other.
    #[expect(clippy::must_use_candidate, reason = "none is no failure")]
    pub fn evict_idle(&self) -> usize {
        self.0.evict_idle()
    }

    /// Looks at the strategy of every scope, with its key, one after the other and in no order.
    ///
    /// A scope that is created meanwhile may be left out. The call takes no lock and counts as no
    /// use, so `look` may get a state that is just being dropped.
    ///
    /// # Examples
    ///
    /// Which tables are limited at the moment:
    ///
    /// ```
    /// use paceline::{Adaptive, ControlLaw, Failure, RetryStrategy, RetryStrategyExt};
    ///
    /// let strategy = Adaptive::builder().law(ControlLaw::Paced).max_attempts(1).scopes().build()?;
    /// strategy.operation().scope("cold").run(|_| Ok::<_, Failure>(())).unwrap();
    /// let hot = strategy.operation().scope("hot");
    /// hot.run(|_| Err::<(), _>(Failure::throttling())).unwrap_err();
    ///
    /// let mut limited = Vec::new();
    /// strategy.for_each(|table, state| {
    ///     if state.snapshot().rate.is_some_and(|rate| rate.enabled) {
    ///         limited.push(table.to_owned());
    ///     }
    /// });
    /// assert_eq!(limited, ["hot"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each(&self, look: impl FnMut(&str, &S)) {
        self.0.for_each(look);
    }

    /// Returns how many scopes are in use. The call looks at every scope, one after the other.
    #[must_use]
    pub fn count_in_use(&self) -> usize {
        self.0.count_in_use()
    }

    /// Returns the counts, and reads a word for each. [`for_each`](Self::for_each) shows the states
    /// of the scopes.
    #[must_use]
    pub fn snapshot(&self) -> ScopesSnapshot {
        let occupancy = &self.0.occupancy;
        ScopesSnapshot {
            scopes: occupancy.taken().count(),
            max_scopes: occupancy.most(),
            evicted: occupancy.evicted(),
            refused: occupancy.refused(),
        }
    }
}

impl<S> Clone for Scopes<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: RetryStrategy + 'static> fmt::Debug for Scopes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scopes")
            .field("shared", self.shared())
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}
