//! Permits of a set.

use core::array;
use core::fmt;

use super::Weights;
use crate::SendPermit;
use crate::permit::Order;

/// The permit of a request to a [`SendSet`](crate::SendSet): one for each limit in which the
/// request has a weight.
///
/// A permit that is recorded or settled twice counts twice.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use = "a request that was let go should be recorded once it is answered"]
pub struct SetPermit<const N: usize> {
    taken: [Option<SendPermit>; N],
}

impl<const N: usize> SetPermit<N> {
    /// The permit of a request that has taken nothing yet.
    pub(super) const NOTHING: Self = Self { taken: [None; N] };

    /// Returns the permit of a request with `permits`, a function of the limit.
    #[doc(hidden)]
    pub fn of(permits: impl Fn(usize) -> Option<SendPermit>) -> Self {
        Self {
            taken: array::from_fn(permits),
        }
    }

    #[inline]
    pub(super) const fn put(&mut self, limit: usize, permit: SendPermit) {
        self.taken[limit] = Some(permit);
    }

    /// Returns the permit of `limit`, `None` if the request took nothing of it.
    #[inline]
    #[must_use]
    pub fn get(&self, limit: usize) -> Option<SendPermit> {
        *self.taken.get(limit)?
    }

    /// Returns the permit of a request that took `weights`. It has the time and the order of
    /// `first`, the permit of the first limit.
    #[doc(hidden)]
    pub fn behind(first: SendPermit, weights: &Weights) -> Self {
        Self::of(|limit| {
            let weight = weights
                .as_slice()
                .get(limit)
                .filter(|weight| **weight > 0)?;
            let order = if limit == 0 {
                first.place()
            } else {
                Order::NONE
            };
            Some(SendPermit::with_order(first.time(), *weight, order))
        })
    }

    /// Returns the permit of the same request with its true `costs`, one for each limit in order.
    /// [`SendSet::record`](crate::SendSet::record) then measures the rates in true costs. See
    /// [`SendPermit::costing`].
    pub fn costing(mut self, costs: &[u32]) -> Self {
        for (taken, cost) in self.taken.iter_mut().zip(costs) {
            *taken = taken.map(|permit| permit.costing(*cost));
        }
        self
    }
}

/// Returns the tokens that were taken of a limit.
fn weight(taken: Option<SendPermit>) -> u32 {
    taken.map_or(0, SendPermit::weight)
}

/// The weights, in one line.
impl<const N: usize> fmt::Debug for SetPermit<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetPermit(")?;
        for (limit, taken) in self.taken.iter().enumerate() {
            let comma = if limit == 0 { "" } else { ", " };
            write!(f, "{comma}{limit}: {}", weight(*taken))?;
        }
        f.write_str(")")
    }
}
