//! Why a set refused a request, and which of its limits it was.

use core::{error::Error, fmt, time::Duration};

use super::MOST_RATES;
use crate::AcquireError;

/// The limit that holds a request of a [`SendSet`](crate::SendSet) back longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The position of the limit's rate in the set.
    pub limit: usize,
    /// The time until the request's turn in that line, at today's rate. Never zero.
    pub wait: Duration,
}

impl Binding {
    /// Returns the binding with the longer wait, or `self` if both are equal.
    pub(crate) fn later(self, other: Self) -> Self {
        if other.wait > self.wait { other } else { self }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {} asks for a wait of {:?}", self.limit, self.wait)
    }
}

/// Why a [`SendSet`](crate::SendSet) refused. Nothing was taken from any of its rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// The set has no rate, or more than eight.
    Rates {
        /// The rates given.
        given: usize,
    },
    /// The number of weights, or of costs, differs from the number of rates.
    Weights {
        /// The weights or costs given.
        given: usize,
        /// The number of rates in the set.
        rates: usize,
    },
    /// A rate stands twice in the set. A request would take from the rate twice, and wait for
    /// itself.
    Twice {
        /// The positions of the rate, the lower one first.
        limits: [usize; 2],
    },
    /// A limit of the set refused.
    Limit {
        /// The position of the limit's rate in the set.
        limit: usize,
        /// Why the limit refused. If several limits make the request wait, this is the longest
        /// wait.
        error: AcquireError,
    },
}

impl SetError {
    /// Returns the limit that refused, or `None` for an error of the whole set.
    #[must_use]
    pub const fn limit(&self) -> Option<usize> {
        match self {
            Self::Limit { limit, .. } => Some(*limit),
            Self::Rates { .. } | Self::Weights { .. } | Self::Twice { .. } => None,
        }
    }

    /// Returns the time until the tokens would have come, or `None` if they never can.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        match self {
            Self::Limit { error, .. } => error.wait(),
            _ => None,
        }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rates { given } => {
                write!(f, "{given} rates: a set has one to {MOST_RATES}")
            }
            Self::Weights { given, rates } => {
                write!(f, "{given} weights for {rates} rates: each has one")
            }
            Self::Twice {
                limits: [first, second],
            } => write!(f, "limits {first} and {second} are one rate"),
            Self::Limit { limit, error } => write!(f, "limit {limit}: {error}"),
        }
    }
}

impl Error for SetError {}

impl From<Binding> for SetError {
    fn from(Binding { limit, wait }: Binding) -> Self {
        let error = AcquireError::NotInTime { wait };
        Self::Limit { limit, error }
    }
}
