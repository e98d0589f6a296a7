//! How long to wait before a retry: a pure function of its number, and of one random number.

pub use crate::random::{Random, SeededRandom};

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

    /// Returns the delay like [`delay`](Self::delay), for a rule that goes by the delay before.
    ///
    /// `previous` is what this method returned for the retry before, without the service's hint,
    /// and zero for the first retry. Strategies call this one. By default it ignores
    /// `previous`.
    fn delay_after(&self, retry: u32, throttle: bool, random: u64, previous: Duration) -> Duration {
        let _ = previous;
        self.delay(retry, throttle, random)
    }
}

/// How much of a backoff is left to chance, so that clients that failed together do not come back
/// together.
///
/// `x` is the capped backoff `min(base × 2^(retry − 1), max_delay)`, and `b` is uniform over (0,
/// 1].
///
/// | kind | delay | least | mean |
/// |---|---|---|---|
/// | `Full` | `b × x` | 0 | `x / 2` |
/// | `Equal` | `x / 2 + b × x / 2` | `x / 2` | `3x / 4` |
/// | `Decorrelated` | `min(base + b × 3 × previous, max_delay)` | `base` | `base + 1.5 × previous` |
/// | `None` | `x` | `x` | `x` |
///
/// Sources: "Exponential Backoff And Jitter", AWS Architecture Blog, for the names; smithy-python
/// for the formula of `Decorrelated`, in which the delay before the first retry counts as `base`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::backoff::{BackoffStrategy, ExponentialBackoff, Jitter};
///
/// let second = Duration::from_secs(1);
/// let least = |jitter| ExponentialBackoff::new(second, 20 * second).with_jitter(jitter).delay(2, false, 0);
/// assert_eq!(least(Jitter::Full), Duration::ZERO);
/// assert_eq!(least(Jitter::Equal), second);
/// assert_eq!(least(Jitter::None), 2 * second);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Jitter {
    /// All of it: what AWS's modes do, and what spreads best.
    #[default]
    Full,
    /// Half of it, for services to which a delay near zero does harm.
    Equal,
    /// A step from the delay before, whichever retry it is. Delays at the cap are not spread.
    Decorrelated,
    /// Nothing. Clients that fail together come back together: for tests, and for a client on its
    /// own.
    None,
}

/// Exponential backoff: `min(base × 2^(retry − 1), max_delay)`, of which a [`Jitter`] takes a part.
///
/// With full jitter, the default, it is `b × min(base × 2^(retry − 1), max_delay)`. `b` is uniform
/// over (0, 1]: `(random + 1) / 2⁶⁴`, and the product is rounded down to whole nanoseconds. So
/// `random = u64::MAX` gives exactly the capped delay. The cap comes before the
/// jitter, so delays at the cap are spread as well (botocore's fix #3178). The base is chosen by
/// the latest failure, the exponent by the number of the retry whatever came before ("Retry
/// behavior", AWS SDKs and Tools Reference Guide). A base or cap of zero gives no delays but the
/// [floor](Self::with_throttling_floor), if there is one; spans beyond
/// 2⁶⁴ − 1 ns, 584 years, count as that.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::backoff::{BackoffStrategy, ExponentialBackoff};
///
/// let backoff = ExponentialBackoff::new(Duration::from_millis(50), Duration::from_secs(20))
///     .with_throttling_base(Duration::from_secs(1));
/// assert_eq!(backoff.delay(3, false, u64::MAX), Duration::from_millis(200));
/// assert_eq!(backoff.delay(3, false, u64::MAX / 2), Duration::from_millis(100));
/// assert_eq!(backoff.delay(3, true, u64::MAX), Duration::from_secs(4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExponentialBackoff {
    base_ns: u64,
    throttling_base_ns: u64,
    throttling_floor_ns: u64,
    max_delay_ns: u64,
    jitter: Jitter,
}

impl ExponentialBackoff {
    /// Creates a backoff that starts at `base`, doubles, and stops growing at `max_delay`.
    #[must_use]
    pub const fn new(base: Duration, max_delay: Duration) -> Self {
        Self {
            base_ns: nanos(base),
            throttling_base_ns: nanos(base),
            throttling_floor_ns: 0,
            max_delay_ns: nanos(max_delay),
            jitter: Jitter::Full,
        }
    }

    /// Starts at `base` instead when the latest failure was a throttling error.
    #[must_use]
    pub const fn with_throttling_base(self, base: Duration) -> Self {
        Self {
            throttling_base_ns: nanos(base),
            ..self
        }
    }

    /// Lets no delay after a throttling error be shorter than `floor`, whatever the jitter. Zero by
    /// default.
    ///
    /// The jitter spreads over what is left above it, so that delays do not gather at the floor. A
    /// backoff below the floor is lifted to it, one above `max_delay` too.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::backoff::{BackoffStrategy, ExponentialBackoff};
    ///
    /// let second = Duration::from_secs(1);
    /// let backoff = ExponentialBackoff::new(second, 20 * second).with_throttling_floor(second / 2);
    /// assert_eq!(backoff.delay(2, true, 0), second / 2);
    /// assert_eq!(backoff.delay(2, true, u64::MAX / 2), second / 2 + 3 * second / 4);
    /// assert_eq!(backoff.delay(2, false, 0), Duration::ZERO);
    /// ```
    #[must_use]
    pub const fn with_throttling_floor(self, floor: Duration) -> Self {
        Self {
            throttling_floor_ns: nanos(floor),
            ..self
        }
    }

    /// Replaces the kind of jitter.
    #[must_use]
    pub const fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// Returns the base and the floor, in nanoseconds.
    const fn bounds(&self, throttle: bool) -> (u64, u64) {
        if throttle {
            (self.throttling_base_ns, self.throttling_floor_ns)
        } else {
            (self.base_ns, 0)
        }
    }

    /// Returns `base × 2^exponent` under the cap, in nanoseconds.
    fn grown(&self, base: u64, exponent: u32) -> u64 {
        let factor = 1_u64.checked_shl(exponent).unwrap_or(u64::MAX);
        base.saturating_mul(factor).min(self.max_delay_ns)
    }

    /// Returns a delay that goes by `previous`, in nanoseconds: the base, and up to three times
    /// that.
    fn stepped(&self, base: u64, previous: u64, random: u64) -> u64 {
        let cap = self.max_delay_ns;
        if base == 0 || cap == 0 {
            return 0;
        }
        let reach = previous.max(base).saturating_mul(3);
        base.saturating_add(part(reach, random)).min(cap)
    }
}

impl ExponentialBackoff {
    /// Returns the delay by the number of the retry alone.
    #[inline]
    fn spread(&self, retry: u32, throttle: bool, random: u64) -> Duration {
        let Some(exponent) = retry.checked_sub(1) else {
            return Duration::ZERO;
        };
        let (base, floor) = self.bounds(throttle);
        let most = self.grown(base, exponent);
        let least = match self.jitter {
            Jitter::Full | Jitter::Decorrelated => 0,
            Jitter::Equal => most >> 1,
            Jitter::None => most,
        };
        let least = least.max(floor);
        let chance = part(most.saturating_sub(least), random);
        Duration::from_nanos(least.saturating_add(chance))
    }
}

impl BackoffStrategy for ExponentialBackoff {
    /// With [`Jitter::Decorrelated`] the delay before counts as the backoff of that retry before
    /// jitter.
    #[inline]
    fn delay(&self, retry: u32, throttle: bool, random: u64) -> Duration {
        if matches!(self.jitter, Jitter::Decorrelated) {
            let (base, _) = self.bounds(throttle);
            let previous = self.grown(base, retry.saturating_sub(2));
            return self.delay_after(retry, throttle, random, Duration::from_nanos(previous));
        }
        self.spread(retry, throttle, random)
    }

    #[inline]
    fn delay_after(&self, retry: u32, throttle: bool, random: u64, previous: Duration) -> Duration {
        if matches!(self.jitter, Jitter::Decorrelated) && retry > 0 {
            let (base, floor) = self.bounds(throttle);
            let stepped = self.stepped(base, nanos(previous), random);
            return Duration::from_nanos(stepped.max(floor));
        }
        self.spread(retry, throttle, random)
    }
}

impl fmt::Debug for ExponentialBackoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = Duration::from_nanos;
        f.debug_struct("ExponentialBackoff")
            .field("base", &span(self.base_ns))
            .field("throttling_base", &span(self.throttling_base_ns))
            .field("throttling_floor", &span(self.throttling_floor_ns))
            .field("max_delay", &span(self.max_delay_ns))
            .field("jitter", &self.jitter)
            .finish()
    }
}

/// Returns `span` in nanoseconds, or the largest number there is.
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
