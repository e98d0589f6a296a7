//! What an attempt took, for later.

use alloc::sync::Arc;
use core::fmt;

use crate::atomic::cells::Sequence;
use crate::set::{SetError, Weights};

/// What one attempt took of its strategy's send rates as an estimate, to be settled with its true
/// cost after its outcome was recorded: when the body of the response says what it was.
///
/// From [`Attempts::charge`](crate::operation::Attempts::charge); the adapters for reqwest and
/// tower put it into the extensions of a response. Where the cost is known with the outcome,
/// [`Reports::costing`](super::Reports::costing) takes it, and no charge is needed. Use one of the
/// two: an attempt that both settle is corrected twice.
///
/// Clones are of the same attempt, which is settled once. Dropped unsettled it leaves the estimate
/// spent.
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

/// Settles with the costs that it is given.
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

    /// Returns what the attempt took, in tokens of each send rate.
    #[must_use]
    pub fn estimate(&self) -> &Weights {
        &self.0.estimate
    }

    /// Corrects what the attempt took to its true `costs` in tokens, one for each send rate, as
    /// [`SendRate::settle`](crate::SendRate::settle) does. The second time nothing happens.
    ///
    /// # Errors
    ///
    /// As [`SendSet::settle`](crate::SendSet::settle).
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
