//! What a request took as an estimate, until its true cost is known.

use core::fmt;
use core::ops::Deref;

use crate::{SendPermit, SendRate, Timestamp, WeightError};

/// What one request took from a [`SendRate`] as an estimate, to be settled with its true cost.
///
/// Services that count tokens, bytes or compute units say what a request cost in its response. Take
/// the estimate before it, and [`settle`](Self::settle) after it: the difference is debited or
/// credited. A charge is used once. Dropped unsettled it leaves the estimate spent.
///
/// It holds a `&SendRate` ([`SendRate::charge`]), or an `Arc<SendRate>` for a later task
/// ([`SendCharge::new`]): then it is `Send + 'static`.
///
/// # Memory ordering
///
/// As [`SendRate`]: none is promised. A settlement and the grants are in one order that all threads
/// agree on.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::{AcquireError, SendRate, Timestamp, law::PacedSettings};
///
/// // 1,000 tokens/s, of which the bucket holds two seconds' worth.
/// let second = Duration::from_secs(1);
/// let settings = PacedSettings::fixed(1_000, second)?.to_builder().burst(2 * second).build()?;
/// let (rate, now) = (SendRate::paced(settings, Timestamp::ZERO), Timestamp::ZERO);
///
/// let permit = rate.try_acquire_n(now, 1_200).unwrap(); // the estimate; 800 are left
/// let charge = rate.charge(permit);
/// charge.settle(now, 3_200).unwrap(); // the true cost: 1,200 below zero
/// let wait = Duration::from_millis(1_201);
/// assert_eq!(rate.try_acquire_n(now, 1), Err(AcquireError::NotInTime { wait }));
/// # Ok::<(), paceline::law::PacedSettingsError>(())
/// ```
#[must_use = "a charge that is dropped leaves the estimate spent"]
pub struct SendCharge<R: Deref<Target = SendRate>> {
    rate: R,
    permit: SendPermit,
}

impl SendRate {
    /// Returns what the request of `permit` took, to be settled once its true cost is known.
    ///
    /// Call it once for a permit: settled twice, the difference counts twice.
    pub const fn charge(&self, permit: SendPermit) -> SendCharge<&Self> {
        SendCharge::new(self, permit)
    }
}

impl<R: Deref<Target = SendRate>> SendCharge<R> {
    /// Returns what the request of `permit` took from `rate`, which granted it.
    pub const fn new(rate: R, permit: SendPermit) -> Self {
        Self { rate, permit }
    }

    /// Returns the tokens that the request took.
    #[must_use]
    pub const fn estimate(&self) -> u32 {
        self.permit.weight()
    }

    /// Corrects the estimate to `true_cost`, in tokens: the difference is debited or credited.
    ///
    /// - *A debit* is promised behind all that is promised: the bucket may go below zero, and then
    ///   no new request is granted until it is paid. Places that are in line already keep their
    ///   turns.
    /// - *A credit* fills the bucket up to its capacity, and wakes waiters whose turn that brings.
    ///   A cost of 0 gives all back.
    /// - A permit that was granted while nothing was limited took nothing, and so nothing is
    ///   settled.
    /// - Once the service has declared a limit
    ///   ([`ControlLaw::Declared`](crate::ControlLaw::Declared)) the difference changes what is
    ///   left of it, and the rate with that, rather than the bucket. Nothing is settled if the
    ///   limiter has taken in a report of this request or a later one
    ///   ([`observe`](SendRate::observe)), which has the true cost in it.
    ///
    /// A debt stays when throttles are [forgotten](SendRate::forget_throttles); a
    /// [reset](SendRate::reset) takes it away.
    ///
    /// The outcome is recorded apart from this. [`SendPermit::costing`] makes the measured rate one
    /// of true costs.
    ///
    /// # Errors
    ///
    /// [`WeightError::LineFull`] if so many tokens are promised already that a debit would come
    /// near the wrap of places. The estimate stays spent.
    pub fn settle(self, now: Timestamp, true_cost: u32) -> Result<(), WeightError> {
        self.rate.settle(now, self.permit, true_cost)
    }
}

/// The estimate, in one line.
impl<R: Deref<Target = SendRate>> fmt::Debug for SendCharge<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendCharge({} tokens)", self.estimate())
    }
}
