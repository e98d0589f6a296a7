//! How long to wait before a retry: a pure function of its number, and of one random number.

use core::{fmt, time::Duration};

/// A rule that turns the number of a retry into a delay.
///
/// It is stateless: the same arguments always give the same delay, so it can be shared by any
/// number of operations and a recorded sequence of random numbers replays every delay.
///
/// # Examples
///
/// A pause of 200 ms before every retry, without jitter:
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{BackoffStrategy, Standard};
///
/// #[derive(Debug)]
/// struct Steady;
///
/// impl BackoffStrategy for Steady {
///     fn delay(&self, retry: u32, _throttle: bool, _random: u64) -> Duration {
///         Duration::from_millis(if retry == 0 { 0 } else { 200 })
///     }
/// }
///
/// let strategy = Standard::builder().backoff(Arc::new(Steady)).build()?;
/// # Ok::<(), paceline::SettingsError>(())
/// ```
pub trait BackoffStrategy: fmt::Debug + Send + Sync {
    /// Returns the delay before the `retry`-th retry of an operation, counted from 1.
    ///
    /// Retry 0 is the first send and has no delay. `throttle` says that the latest failure was a
    /// throttling error. `random` is uniform over all of `u64`.
    fn delay(&self, retry: u32, throttle: bool, random: u64) -> Duration;
}

/// Exponential backoff with full jitter: `b × min(base × 2^(retry − 1), max_delay)`.
///
/// `b` is uniform over (0, 1]: `(random + 1) / 2⁶⁴`, and the product is rounded down to whole
/// nanoseconds. So `random = u64::MAX` gives exactly the capped delay. The cap comes before the
/// jitter, so delays at the cap are spread as well (botocore's fix #3178). The base is chosen by the
/// latest failure, the exponent by the number of the retry whatever came before ("Retry behavior",
/// AWS SDKs and Tools Reference Guide). A base or cap of zero gives no delays; spans beyond
/// 2⁶⁴ − 1 ns, 584 years, count as that.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{BackoffStrategy, ExponentialBackoff};
///
/// let backoff = ExponentialBackoff::new(Duration::from_millis(50), Duration::from_secs(20))
///     .with_throttling_base(Duration::from_secs(1));
/// assert_eq!(backoff.delay(3, false, u64::MAX), Duration::from_millis(200));
/// assert_eq!(backoff.delay(3, false, u64::MAX / 2), Duration::from_millis(100));
/// assert_eq!(backoff.delay(3, true, u64::MAX), Duration::from_secs(4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExponentialBackoff {
    base: Duration,
    throttling_base: Duration,
    max_delay: Duration,
}

impl ExponentialBackoff {
    /// Creates a backoff that starts at `base`, doubles, and stops growing at `max_delay`.
    #[must_use]
    pub const fn new(base: Duration, max_delay: Duration) -> Self {
        Self {
            base,
            throttling_base: base,
            max_delay,
        }
    }

    /// Starts at `base` instead when the latest failure was a throttling error.
    #[must_use]
    pub const fn with_throttling_base(self, base: Duration) -> Self {
        Self {
            throttling_base: base,
            ..self
        }
    }
}

impl BackoffStrategy for ExponentialBackoff {
    fn delay(&self, retry: u32, throttle: bool, random: u64) -> Duration {
        let Some(exponent) = retry.checked_sub(1) else {
            return Duration::ZERO;
        };
        let base = if throttle {
            self.throttling_base
        } else {
            self.base
        };
        let grown = nanos(base).saturating_mul(2_u64.saturating_pow(exponent));
        Duration::from_nanos(jittered(grown.min(nanos(self.max_delay)), random))
    }
}

/// Returns `span` in nanoseconds, or the largest number there is.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns `whole × (random + 1) / 2⁶⁴`, rounded down.
fn jittered(whole: u64, random: u64) -> u64 {
    // Cannot overflow: (2⁶⁴ − 1) × 2⁶⁴ < 2¹²⁸.
    let scaled = u128::from(whole).wrapping_mul(u128::from(random).wrapping_add(1));
    u64::try_from(scaled >> 64).unwrap_or(u64::MAX)
}
