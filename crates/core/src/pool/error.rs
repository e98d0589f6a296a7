//! Why a pool cannot be, or refused a request.

use core::{error::Error, fmt, time::Duration};

/// Why a [`SendPool`](crate::SendPool) cannot be, or refused. Nothing was taken from any member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolError<E> {
    /// A pool of so many members cannot be.
    Members {
        /// How many there were.
        given: usize,
        /// The most that its type has room for.
        most: usize,
    },
    /// A limiter stands twice in the pool.
    Twice {
        /// Its indexes, the lower first.
        members: [usize; 2],
    },
    /// The choice of the pool ranks no member.
    NotChosen,
    /// Each chosen member is shut, paused or spent.
    Spent {
        /// How long it would have been until the first of them had the tokens. Never zero.
        wait: Duration,
    },
    /// A member refused, or cannot be one.
    Member {
        /// Its index.
        index: usize,
        /// Why it refused: of several members, the member with the shortest wait.
        error: E,
    },
}

impl<E> PoolError<E> {
    /// Returns the member that refused, `None` if it was not one of them alone.
    #[must_use]
    pub const fn index(&self) -> Option<usize> {
        match self {
            Self::Member { index, .. } => Some(*index),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for PoolError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Members { given, most } => {
                write!(f, "{given} members: a pool of this type has one to {most}")
            }
            Self::Twice {
                members: [first, second],
            } => write!(f, "members {first} and {second} are one limiter"),
            Self::NotChosen => f.write_str("no member is chosen"),
            Self::Spent { wait } => {
                write!(
                    f,
                    "every member is shut, paused or spent: a wait of {wait:?}"
                )
            }
            Self::Member { index, error } => write!(f, "member {index}: {error}"),
        }
    }
}

impl<E: Error> Error for PoolError<E> {}
