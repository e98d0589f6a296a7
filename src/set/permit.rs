//! What a set lets go, and what it looks like.

use core::fmt;

use super::Binding;
use crate::{SendPermit, SendRateSnapshot};

/// A request that a [`SendSet`](crate::SendSet) let go: a permit of each limit that it has a weight
/// in.
///
/// It is `Copy`: recorded or settled twice it counts twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a request that was let go should be recorded once it is answered"]
pub struct SetPermit<const N: usize> {
    permits: [Option<SendPermit>; N],
}

impl<const N: usize> SetPermit<N> {
    pub(super) const NONE: Self = Self { permits: [None; N] };

    pub(super) fn put(&mut self, limit: usize, permit: SendPermit) {
        if let Some(room) = self.permits.get_mut(limit) {
            *room = Some(permit);
        }
    }

    /// Returns the permit of `limit`, `None` if the request took nothing of it.
    #[must_use]
    pub fn get(&self, limit: usize) -> Option<SendPermit> {
        self.permits.get(limit).copied().flatten()
    }

    /// Returns the permit of the first limit that the request took tokens of.
    #[cfg(feature = "std")]
    pub(crate) fn first(&self) -> Option<SendPermit> {
        self.permits.iter().copied().flatten().next()
    }

    /// Returns the permit of the same request with its true `costs`, one for each limit in order,
    /// for [`SendSet::record`](crate::SendSet::record): the rates are then measured in true costs.
    /// See [`SendPermit::costing`].
    pub fn costing(mut self, costs: &[u32]) -> Self {
        for (permit, cost) in self.permits.iter_mut().zip(costs) {
            *permit = permit.map(|permit| permit.costing(*cost));
        }
        self
    }
}

/// The weights, in one line.
impl<const N: usize> fmt::Debug for SetPermit<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetPermit(")?;
        for (limit, permit) in self.permits.iter().enumerate() {
            let comma = if limit == 0 { "" } else { ", " };
            let weight = permit.map_or(0, SendPermit::weight);
            write!(f, "{comma}{limit}: {weight}")?;
        }
        f.write_str(")")
    }
}

/// The state of a [`SendSet`](crate::SendSet), for diagnostics.
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SetSnapshot<const N: usize> {
    /// The state of each rate, by its limit; `None` beyond the last one.
    pub rates: [Option<SendRateSnapshot>; N],
    /// The limit that would hold a request of the given weights back, `None` if it could go.
    pub binding: Option<Binding>,
}

impl<const N: usize> SetSnapshot<N> {
    pub(super) const fn new(
        rates: [Option<SendRateSnapshot>; N],
        binding: Option<Binding>,
    ) -> Self {
        Self { rates, binding }
    }
}

impl<const N: usize> fmt::Display for SetSnapshot<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding {
            Some(binding) => write!(f, "{binding}")?,
            None => f.write_str("no limit binds")?,
        }
        for (limit, rate) in self.rates.iter().flatten().enumerate() {
            write!(f, "; {limit}: {rate}")?;
        }
        Ok(())
    }
}

/// As `Display`, in one line.
impl<const N: usize> fmt::Debug for SetSnapshot<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SetSnapshot({self})")
    }
}
