//! What a pool lets go.

/// A request that a [`SendPool`](crate::SendPool) let go: the permit of a member, and which member
/// that was.
///
/// It is `Copy`: recorded twice it counts twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a request that was let go should be recorded once it is answered"]
pub struct PoolPermit<P> {
    index: usize,
    permit: P,
}

impl<P> PoolPermit<P> {
    pub(super) const fn new(index: usize, permit: P) -> Self {
        Self { index, permit }
    }

    /// Returns the member that serves the request, by its index.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl<P: Copy> PoolPermit<P> {
    /// Returns the permit of that member: to be settled there, say.
    pub const fn permit(&self) -> P {
        self.permit
    }
}
