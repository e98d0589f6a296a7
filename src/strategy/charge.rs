//! The charge of an attempt, to settle later.

use alloc::sync::Arc;
use core::fmt;

use crate::seam::Sequence;
use crate::set::{SetError, Weights};

/// The tokens that one attempt took from its strategy's send rates as an estimate. Settle it with
/// the true cost after the outcome was recorded, when the body of the response has the cost.
///
/// It comes from [`Attempts::charge`](crate::operation::Attempts::charge). The adapters for reqwest
/// and tower put it into the extensions of a response. If the cost is known with the outcome, use
/// [`Reports::costing`](super::Reports::costing) instead. An attempt that both settle is corrected
/// twice.
///
/// Clones belong to the same attempt, which is settled once. A charge that is dropped unsettled
/// leaves the estimate spent.
///
/// # Examples
///
/// ```
/// use paceline::{
///     Adaptive, Operation, RetryStrategy, operation::Next, strategy::Reports,
///     law::{DeclaredSettings, Dimension},
/// };
///
/// let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
/// let strategy = Adaptive::builder().declared(DeclaredSettings::new()).also(tokens).build()?;
/// let clock = strategy.clock();
/// let mut attempts = Operation::new(&strategy).weights([1, 1_200]).start();
/// let Next::Send(_) = attempts.next(clock, None) else { unreachable!() };
/// let charge = attempts.charge().expect("it is under way");
/// attempts.succeeded(Reports::at(clock))?; // the headers are there
/// // ... the body says that it took 3,411 tokens:
/// charge.settle(&[1, 3_411])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "a charge that is dropped leaves the estimate spent"]
pub struct AttemptCharge(Arc<Taken<Settle>>);

/// A function that settles with the given costs.
type Settle = dyn Fn(&[u32]) -> Result<(), SetError> + Send + Sync;

struct Taken<F: ?Sized> {
    estimate: Weights,
    /// Numbers the settlements: only number 0 counts.
    settled: Sequence,
    settle: F,
}

impl AttemptCharge {
    /// Creates the charge of an attempt that took `estimate`, for strategies that users write.
    /// `settle` is called at most once, with as many costs as there are weights.
    pub fn new(
        estimate: Weights,
        settle: impl Fn(&[u32]) -> Result<(), SetError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Taken {
            estimate,
            settled: Sequence::starting_at(0),
            settle,
        }))
    }

    /// Returns the tokens that the attempt took from each send rate.
    #[must_use]
    pub fn estimate(&self) -> &Weights {
        &self.0.estimate
    }

    /// Corrects the attempt's tokens to its true `costs`, one for each send rate. See
    /// [`SendRate::settle`](crate::SendRate::settle). A second call does nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`SendSet::settle`](crate::SendSet::settle).
    pub fn settle(&self, costs: &[u32]) -> Result<(), SetError> {
        let (given, rates) = (costs.len(), self.0.estimate.as_slice().len());
        if given != rates {
            return Err(SetError::Weights { given, rates });
        }
        if self.0.settled.next() > 0 {
            return Ok(());
        }
        (self.0.settle)(costs)
    }
}

/// The estimate, in one line.
impl fmt::Debug for AttemptCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settled = if self.0.settled.peek() > 0 {
            ", settled"
        } else {
            ""
        };
        write!(f, "AttemptCharge({:?}{settled})", self.0.estimate)
    }
}
