//! The hold of a token on its scope's state.

use alloc::sync::Arc;
use core::{any::Any, fmt};

/// The state of a scope, as a token holds it.
pub(crate) trait Leave: Any + Send + Sync {
    /// Ends one use of the state.
    fn leave(&self);

    /// Returns the state itself.
    fn as_any(&self) -> &dyn Any;
}

/// One use of a state, or no use. The use ends when this value is dropped.
#[derive(Default)]
pub(crate) struct Hold(Option<Arc<dyn Leave>>);

impl Hold {
    /// The hold of a token without a scope.
    pub(crate) const NONE: Self = Self(None);

    /// Takes over one use of `held`.
    pub(crate) const fn taking_over(held: Arc<dyn Leave>) -> Self {
        Self(Some(held))
    }

    /// Returns `true` if there is no use.
    pub(crate) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the state if it is a `T`.
    pub(crate) fn get<T: Leave>(&self) -> Option<&T> {
        self.0.as_ref()?.as_any().downcast_ref()
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            leave(held);
        }
    }
}

/// Cold, because most tokens hold nothing. Their drop stays small enough to be inlined.
#[cold]
#[expect(clippy::needless_pass_by_value, reason = "dropped here")]
fn leave(held: Arc<dyn Leave>) {
    held.leave();
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}
