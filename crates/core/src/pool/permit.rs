//! Permits of a pool.

/// The permit of a request to a [`SendPool`](crate::SendPool): a member's permit
/// and index.
///
/// A permit that is recorded twice counts twice.
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
    /// Returns the member's permit, for example to settle it.
    pub const fn permit(&self) -> P {
        self.permit
    }
}
