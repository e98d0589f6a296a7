//! What an attempt took, for later.

use alloc::sync::Arc;
use core::fmt;

use crate::atomic::cells::Sequence;
use crate::set::{MOST_RATES, SetError, SetPermit};
use crate::{Clock, SendRate, SendSet};

/// What one attempt took of its strategy's send rates as an estimate, to be settled with its true
/// cost after its outcome was recorded: when the body of the response says what it was.
///
/// From [`Attempts::charge`](crate::operation::Attempts::charge); the adapters for reqwest and
/// tower put it into the extensions of a response. Where the cost is known with the outcome,
/// [`Reports::costing`](super::Reports::costing) takes it, and no charge is needed.
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
pub struct AttemptCharge(Arc<Taken>);

struct Taken {
    set: SendSet<Arc<SendRate>>,
    permit: SetPermit<MOST_RATES>,
    clock: Arc<dyn Clock>,
    /// Numbers the settlements: only number 0 counts.
    settled: Sequence,
}

impl AttemptCharge {
    pub(super) fn new(
        set: SendSet<Arc<SendRate>>,
        permit: SetPermit<MOST_RATES>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Taken {
            set,
            permit,
            clock,
            settled: Sequence::starting_at(0),
        }))
    }

    /// Corrects what the attempt took to its true `costs` in tokens, one for each send rate, as
    /// [`SendCharge::settle`](crate::SendCharge::settle) does. The second time nothing happens.
    ///
    /// # Errors
    ///
    /// As [`SendSet::settle`].
    pub fn settle(&self, costs: &[u32]) -> Result<(), SetError> {
        let Taken { set, permit, .. } = &*self.0;
        set.check_costs(costs)?;
        if self.0.settled.next() > 0 {
            return Ok(());
        }
        set.settle(self.0.clock.now(), *permit, costs)
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
        write!(f, "AttemptCharge({:?}{settled})", self.0.permit)
    }
}
