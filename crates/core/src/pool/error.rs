//! Why a pool cannot be created, or refused a request.

use core::{error::Error, fmt, time::Duration};

/// Why a [`SendPool`](crate::SendPool) cannot be created, or refused. Nothing was taken from any
/// member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolError<E> {
    /// The pool has too few or too many members.
    Members {
        /// The members given.
        given: usize,
        /// The most members that its type allows.
        most: usize,
    },
    /// A limiter stands twice in the pool.
    Twice {
        /// The limiter's indexes, lower first.
        members: [usize; 2],
    },
    /// The choice of the pool ranks no member.
    NotChosen,
    /// Each chosen member is shut, paused or spent.
    Spent {
        /// The time until the first member would have had the tokens. Never zero.
        wait: Duration,
    },
    /// A member refused, or cannot belong to the pool.
    Member {
        /// The member's index.
        index: usize,
        /// The member's error. Of several refusals, the refusal with the shortest wait.
        error: E,
    },
}

impl<E> PoolError<E> {
    /// Returns the member that refused, or `None` for an error of the whole pool.
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
