//! Why a set refused a request, and which of its limits it was.

use core::{error::Error, fmt, time::Duration};

use super::MOST_RATES;
use crate::AcquireError;

/// The limit that holds a request of a [`SendSet`](crate::SendSet) back longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The position of its rate in the set.
    pub limit: usize,
    /// The time until the request's turn in that line, at today's rate. Never zero.
    pub wait: Duration,
}

impl Binding {
    /// Returns the one with the longer wait, this one if they are equal.
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
    /// A set of so many rates cannot be: it has one to eight.
    Rates {
        /// How many there were.
        given: usize,
    },
    /// There is not one weight, or cost, for each rate.
    Weights {
        /// How many there were.
        given: usize,
        /// How many rates the set has.
        rates: usize,
    },
    /// A rate stands twice in the set: a request would take from it twice, and wait for itself.
    Twice {
        /// Its positions, the lower first.
        limits: [usize; 2],
    },
    /// One of its limits refused.
    Limit {
        /// The position of its rate in the set.
        limit: usize,
        /// Why it refused: of several that make the request wait, the one with the longest wait.
        error: AcquireError,
    },
}

impl SetError {
    /// Returns the limit that refused, `None` if it was not one of them.
    #[must_use]
    pub const fn limit(&self) -> Option<usize> {
        match self {
            Self::Limit { limit, .. } => Some(*limit),
            Self::Rates { .. } | Self::Weights { .. } | Self::Twice { .. } => None,
        }
    }

    /// Returns how long it would have been until the tokens came, `None` if they never could.
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
