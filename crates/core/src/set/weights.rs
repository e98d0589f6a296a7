//! The weights of a request, by value.

use core::{array, fmt};

use super::{MOST_RATES, SetError};
use crate::Part;

/// A weight, or a true cost, in tokens for each limit of a set. `Operation::weights` and similar
/// methods take it.
///
/// # Examples
///
/// ```
/// use paceline::set::Weights;
///
/// assert_eq!(Weights::from([1, 1_200]).as_slice(), [1, 1_200]);
/// assert!(Weights::of(&[1; 9]).is_err());
/// ```
#[derive(Clone, Copy)]
pub struct Weights {
    all: [u32; MOST_RATES],
    len: usize,
    up_to_capacity: bool,
}

impl Weights {
    /// Returns the weights `given`.
    ///
    /// # Errors
    ///
    /// [`SetError::Rates`] if there are no weights, or more than eight.
    pub fn of(given: &[u32]) -> Result<Self, SetError> {
        if !(1..=MOST_RATES).contains(&given.len()) {
            return Err(SetError::Rates { given: given.len() });
        }
        Ok(Self::first(given))
    }

    fn first(given: &[u32]) -> Self {
        Self {
            all: array::from_fn(|limit| given.get(limit).copied().unwrap_or(0)),
            len: given.len(),
            up_to_capacity: false,
        }
    }

    /// Lets a weight above a limit take the whole limit, and owe the rest once the request goes. By
    /// default such a request is refused.
    ///
    /// It is for weights that are estimates, such as the tokens of a prompt and of its answer. The
    /// request may cost less, and the service decides. Only strategies with several send rates
    /// (`StrategyBuilder::also`) use this setting.
    #[must_use]
    pub const fn up_to_capacity(mut self) -> Self {
        self.up_to_capacity = true;
        self
    }

    /// Returns the weights of a part of the request: see [`Part::of`].
    #[must_use]
    pub fn of_part(mut self, part: Part) -> Self {
        self.all = self.all.map(|weight| part.of(weight));
        self
    }

    /// Returns `true` if a weight above a limit is not refused.
    #[doc(hidden)]
    #[must_use]
    pub const fn is_up_to_capacity(&self) -> bool {
        self.up_to_capacity
    }

    /// Returns the weights.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        self.all.get(..self.len).unwrap_or(&self.all)
    }
}

/// Any number of weights but one to eight is a compile error.
impl<const N: usize> From<[u32; N]> for Weights {
    fn from(given: [u32; N]) -> Self {
        const { assert!(N >= 1 && N <= MOST_RATES, "a set has one to eight rates") };
        Self::first(&given)
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}
