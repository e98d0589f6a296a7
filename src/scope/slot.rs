//! The state of one scope, and the handle that keeps it in use.

use alloc::{boxed::Box, sync::Arc};
use core::{
    any::Any,
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
};

use crate::{
    RetryStrategy,
    strategy::{StrategyId, hold::Leave},
    usage::Usage,
};

/// The result of a look at a state that may be retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The state was idle and unused, and is now retired.
    Retired,
    /// The state was used since the last look. Whether it is idle was not checked.
    Spared,
    /// The state is in use, or not idle.
    Kept,
}

/// The state of one scope: alive until its usage is retired.
pub(super) struct Slot<S> {
    pub(super) usage: Usage,
    /// The unique number by which the occupancy names the state.
    pub(super) number: u64,
    /// The scopes that the state belongs to.
    pub(super) owner: StrategyId,
    pub(super) key: Box<str>,
    pub(super) strategy: S,
}

impl<S> Slot<S> {
    /// Creates a state that has no place yet, and is in use by its creator.
    pub(super) fn entered(number: u64, owner: StrategyId, key: &str, strategy: S) -> Self {
        Self {
            usage: Usage::entered(),
            number,
            owner,
            key: key.into(),
            strategy,
        }
    }
}

impl<S: RetryStrategy> Slot<S> {
    /// Retires the state if it is idle and unused. With `sparing` it must also be unused since the
    /// last call.
    ///
    /// For the thread that has taken the state out of the queue.
    pub(super) fn retire(&self, sparing: bool) -> Look {
        match self.usage.look() {
            Some(true) if sparing => Look::Spared,
            Some(_) if self.strategy.is_idle() && self.usage.retire() => Look::Retired,
            _ => Look::Kept,
        }
    }
}

impl<S: RetryStrategy + 'static> Leave for Slot<S> {
    fn leave(&self) {
        self.usage.leave();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A state in the map, which is found by its key.
pub(super) struct Keyed<S>(pub(super) Arc<Slot<S>>);

impl<S> Borrow<str> for Keyed<S> {
    fn borrow(&self) -> &str {
        &self.0.key
    }
}

/// Hashes like the key, since the map is searched by key.
impl<S> Hash for Keyed<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl<S> PartialEq for Keyed<S> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl<S> Eq for Keyed<S> {}

/// The handle of a scope in use. A scope is not dropped while there is a handle.
///
/// Made by [`Scopes::get`](crate::Scopes::get). The handle derefs to the strategy, so the
/// strategy's methods can be called on it. These calls look nothing up and count nothing. Cloning
/// and dropping count in the scope's own cache line. A handle that is forgotten (`mem::forget`)
/// keeps its scope in use until the process ends.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, ControlLaw, Failure, RetryStrategyExt};
///
/// let scopes = Adaptive::builder().law(ControlLaw::Paced).scopes().build()?;
/// let orders = scopes.get("eu-west-1/orders")?;
/// for _ in 0..3 {
///     orders.run(|_| Ok::<_, Failure>("sent")).unwrap();
/// }
/// assert_eq!(orders.key(), "eu-west-1/orders");
/// assert_eq!(orders.quota().available(), 500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a scope that is dropped is not in use any more"]
pub struct Scope<S>(Arc<Slot<S>>);

impl<S> Scope<S> {
    /// Takes over one use of `slot`.
    pub(super) const fn taking_over(slot: Arc<Slot<S>>) -> Self {
        Self(slot)
    }

    /// Returns the key of the scope.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl<S> Deref for Scope<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0.strategy
    }
}

impl<S> Clone for Scope<S> {
    fn clone(&self) -> Self {
        // The scope is in use, so it is not retired and may be entered.
        let _ = self.0.usage.enter();
        Self(Arc::clone(&self.0))
    }
}

impl<S> Drop for Scope<S> {
    fn drop(&mut self) {
        self.0.usage.leave();
    }
}

impl<S: fmt::Debug> fmt::Debug for Scope<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("key", &self.key())
            .field("strategy", &self.0.strategy)
            .finish()
    }
}
