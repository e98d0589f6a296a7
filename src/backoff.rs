//! The delay before a retry: a pure function of the retry's number and of one random number.

pub use crate::random::{Random, SeededRandom};

use core::{fmt, time::Duration};

/// A rule that turns the number of a retry into a delay.
///
/// A rule is stateless, so the same arguments always give the same delay. Any number of operations
/// can share a rule. A recorded sequence of random numbers replays every delay.
///
/// # Examples
///
/// A pause of 200 ms before every retry, without jitter:
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{Standard, backoff::BackoffStrategy};
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
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
pub trait BackoffStrategy: fmt::Debug + Send + Sync {
    /// Returns the delay before the `retry`-th retry of an operation, counted from 1.
    ///
    /// Retry 0 is the first send and has no delay. `throttle` says that the latest failure was a
    /// throttling error. `random` is uniform over all of `u64`.
    fn delay(&self, retry: u32, throttle: bool, random: u64) -> Duration;
}

/// Exponential backoff with full jitter: `b × min(base × 2^(retry − 1), max_delay)`. `b` is uniform
/// over (0, 1]: `(random + 1) / 2⁶⁴`, and the product is rounded down to whole nanoseconds. So
/// `random = u64::MAX` gives exactly the capped delay. The cap comes before the jitter, so delays
/// at the cap are spread as well (botocore's fix #3178). The latest failure chooses the base. The
/// number of the retry chooses the exponent, whatever failed before ("Retry behavior", AWS SDKs and
/// Tools Reference Guide). A base or cap of zero gives no delays. Spans longer than 2⁶⁴ − 1 ns, 584
/// years, count as this maximum.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::backoff::{BackoffStrategy, ExponentialBackoff};
///
/// let backoff = ExponentialBackoff::new(Duration::from_millis(50), Duration::from_secs(20));
/// assert_eq!(backoff.delay(3, false, u64::MAX), Duration::from_millis(200));
/// assert_eq!(backoff.delay(3, false, u64::MAX / 2), Duration::from_millis(100));
/// ```
#[derive(Clone, Copy)]
pub struct ExponentialBackoff {
    // In nanoseconds.
    base: u64,
    throttling_base: u64,
    throttling_floor: u64,
    max_delay: u64,
}

impl ExponentialBackoff {
    /// Creates a backoff that starts at `base`, doubles, and stops growing at `max_delay`.
    #[must_use]
    pub const fn new(base: Duration, max_delay: Duration) -> Self {
        Self {
            base: nanos(base),
            throttling_base: nanos(base),
            throttling_floor: 0,
            max_delay: nanos(max_delay),
        }
    }

    /// Starts at `base` instead when the latest failure was a throttling error.
    pub(crate) const fn with_throttling_base(self, base: Duration) -> Self {
        Self {
            throttling_base: nanos(base),
            ..self
        }
    }

    /// Lets no delay after a throttling error be shorter than `floor`, whatever the jitter. Zero by
    /// default.
    ///
    /// The jitter spreads over the span above the floor, so delays do not gather at the floor. A
    /// backoff below the floor is lifted to the floor, even if the floor is above `max_delay`.
    pub(crate) const fn with_throttling_floor(self, floor: Duration) -> Self {
        Self {
            throttling_floor: nanos(floor),
            ..self
        }
    }

    /// Returns the base and the floor, in nanoseconds.
    const fn bounds(&self, throttle: bool) -> (u64, u64) {
        if throttle {
            (self.throttling_base, self.throttling_floor)
        } else {
            (self.base, 0)
        }
    }

    /// Returns `base × 2^exponent` under the cap, in nanoseconds.
    fn grown(&self, base: u64, exponent: u32) -> u64 {
        let factor = 1_u64.checked_shl(exponent).unwrap_or(u64::MAX);
        base.saturating_mul(factor).min(self.max_delay)
    }
}

//= AWS: The SDKs use truncated binary exponential backoff with jitter.
impl BackoffStrategy for ExponentialBackoff {
    #[inline]
    //= AWS: seconds_to_sleep_i = min(b*r^i, MAX_BACKOFF)
    fn delay(&self, retry: u32, throttle: bool, random: u64) -> Duration {
        let Some(exponent) = retry.checked_sub(1) else {
            return Duration::ZERO;
        };
        let (base, least) = self.bounds(throttle);
        let most = self.grown(base, exponent);
        let chance = part(most.saturating_sub(least), random);
        Duration::from_nanos(least.saturating_add(chance))
    }
}

impl fmt::Debug for ExponentialBackoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = Duration::from_nanos;
        f.debug_struct("ExponentialBackoff")
            .field("base", &span(self.base))
            .field("throttling_base", &span(self.throttling_base))
            .field("throttling_floor", &span(self.throttling_floor))
            .field("max_delay", &span(self.max_delay))
            .finish()
    }
}

/// Returns `span` in nanoseconds, at most `u64::MAX`.
const fn nanos(span: Duration) -> u64 {
    let whole = span.as_secs().saturating_mul(1_000_000_000);
    whole.saturating_add(span.subsec_nanos() as u64)
}

/// Returns `whole × (random + 1) / 2⁶⁴`, rounded down.
fn part(whole: u64, random: u64) -> u64 {
    // Cannot overflow: (2⁶⁴ − 1) × 2⁶⁴ < 2¹²⁸.
    let scaled = u128::from(whole).wrapping_mul(u128::from(random).wrapping_add(1));
    u64::try_from(scaled >> 64).unwrap_or(u64::MAX)
}
