//! Where the strategies get the time from: the only file that asks the system.

use alloc::sync::Arc;
use core::fmt;
use std::sync::LazyLock;

use crate::Timestamp;

/// A monotonic clock.
///
/// A strategy takes it at construction, so that tests and simulations can move the time themselves.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use paceline::{Adaptive, ControlLaw, Clock, Timestamp};
///
/// #[derive(Debug)]
/// struct Stopped(Timestamp);
///
/// impl Clock for Stopped {
///     fn now(&self) -> Timestamp {
///         self.0
///     }
/// }
///
/// let clock = Arc::new(Stopped(Timestamp::from_nanos(7)));
/// let strategy = Adaptive::builder().law(ControlLaw::Paced).clock(clock).build()?;
/// assert_eq!(strategy.clock().now(), Timestamp::from_nanos(7));
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the time since the clock's origin. It never goes back, and never runs ahead: one
    /// reading far in the future makes all others wait until then
    /// ([`SendRate::reset`](crate::SendRate::reset) ends that).
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// A clock that stands still: where a clock is asked for, a time will do.
impl Clock for Timestamp {
    fn now(&self) -> Timestamp {
        *self
    }
}

/// The system's monotonic clock.
///
/// All such clocks of a process share one origin, which is otherwise unspecified: their timestamps
/// may be compared and used with one limiter. By default the clock is [`std::time::Instant`]. With
/// the feature `quanta` it is the processor's time stamp counter where that can be trusted. The
/// counter's scale is measured when the first clock of the process is made, for 200 ms at most.
/// Only making a clock may wait for another thread that makes one.
///
/// # Examples
///
/// ```
/// use paceline::{Clock, MonotonicClock};
///
/// let (one, other) = (MonotonicClock::new(), MonotonicClock::new());
/// let earlier = one.now();
/// assert!(other.now() >= earlier);
/// ```
#[derive(Clone)]
pub struct MonotonicClock {
    source: Source,
}

impl MonotonicClock {
    /// Creates a handle to the clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            source: Source::new(),
        }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.source.nanos())
    }
}

/// The time that it shows.
impl fmt::Debug for MonotonicClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.now().saturating_since(Timestamp::ZERO);
        f.debug_tuple("MonotonicClock").field(&shown).finish()
    }
}

/// The clock of tokio's runtime, which tests can pause and move.
///
/// Made in a test with `start_paused`, it shows tokio's time: timers then fire when the strategy
/// expects them, and each run of a test is the same to the nanosecond. tokio's timers round up to
/// milliseconds. Without a paused runtime it is the system's monotonic clock.
///
/// Its origin is when it was made, in the runtime whose time it is to show. Clones share the
/// origin. Timestamps of two such clocks that were made apart must not meet in one limiter.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::{sync::Arc, time::Duration};
/// use paceline::{Adaptive, Clock, Failure, RetryStrategyExt, TokioClock, law::PacedSettings};
///
/// let clock = TokioClock::new();
/// let settings = PacedSettings::fixed(1, Duration::from_secs(60)).unwrap();
/// let builder = Adaptive::builder().paced(settings).clock(Arc::new(clock));
/// let strategy = builder.build().unwrap();
/// for _ in 0..3 {
///     strategy.run_async(async |_| Ok::<_, Failure>(())).await.unwrap();
/// }
/// assert_eq!(clock.now().as_nanos() / 1_000_000_000, 120); // two minutes of tokio's time
/// # }
/// ```
#[cfg(feature = "tokio")]
#[derive(Clone, Copy)]
pub struct TokioClock(tokio::time::Instant);

#[cfg(feature = "tokio")]
impl TokioClock {
    /// Creates a clock that begins now, by the runtime's time.
    #[must_use]
    pub fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[cfg(feature = "tokio")]
#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The time that it shows.
#[cfg(feature = "tokio")]
impl fmt::Debug for TokioClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokioClock")
            .field(&self.0.elapsed())
            .finish()
    }
}

/// Returns the clock of strategies that have none: the system's.
pub(crate) fn system() -> &'static MonotonicClock {
    static CLOCK: LazyLock<MonotonicClock> = LazyLock::new(MonotonicClock::new);
    &CLOCK
}

/// Returns the time since 1970-01-01 00:00 UTC by the system's clock, for headers with dates: zero
/// before that. It may go back.
#[cfg(feature = "http")]
pub(crate) fn wall_time() -> core::time::Duration {
    std::time::UNIX_EPOCH.elapsed().unwrap_or_default()
}

#[cfg(feature = "quanta")]
use by_counter::Source;
#[cfg(not(feature = "quanta"))]
use by_instant::Source;

#[cfg(feature = "quanta")]
mod by_counter {
    use std::sync::OnceLock;

    /// Asking the processor what its counter is worth takes tens of microseconds where there is a
    /// hypervisor, so it is asked once. Touched when a clock is made, never when it is read.
    static SOURCE: OnceLock<Source> = OnceLock::new();

    /// The bits of `scale` below those of a whole nanosecond for 2⁴⁴ ticks.
    const FRACTION: u32 = 20;

    /// The processor's counter, with its zero as the origin.
    #[derive(Clone)]
    pub(super) struct Source {
        clock: quanta::Clock,
        /// Nanoseconds in 2⁶⁴ ticks, to a multiple of 2²⁰; 0 where a tick is a nanosecond or more,
        /// or there is no counter.
        scale: u64,
    }

    impl Source {
        pub(super) fn new() -> Self {
            SOURCE
                .get_or_init(|| Self::of(quanta::Clock::new()))
                .clone()
        }

        fn of(clock: quanta::Clock) -> Self {
            let scale = scale(clock.delta_as_nanos(0, 1 << (64 - FRACTION)));
            Self { clock, scale }
        }

        pub(super) fn nanos(&self) -> u64 {
            // From the counter's zero rather than from an instant: no shared state to set up, and
            // every clock of the process has the same origin. One product of a count
            // that never goes back never goes back.
            let raw = self.clock.raw();
            if self.scale == 0 {
                return self.clock.delta_as_nanos(0, raw);
            }
            multiply_high(raw, self.scale)
        }
    }

    /// Returns the high half of the 128-bit product.
    fn multiply_high(raw: u64, scale: u64) -> u64 {
        (u128::from(raw).wrapping_mul(u128::from(scale)) >> 64) as u64
    }

    /// Returns the nanoseconds in 2⁶⁴ ticks by those in 2⁴⁴ of them, or 0 if that does not fit.
    const fn scale(nanos: u64) -> u64 {
        if nanos >> (64 - FRACTION) == 0 {
            nanos << FRACTION
        } else {
            0
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn one_product_shows_what_the_crate_shows() {
            let source = Source::of(quanta::Clock::new());
            for _ in 0..100 {
                let before = source.clock.delta_as_nanos(0, source.clock.raw());
                let now = source.nanos();
                let after = source.clock.delta_as_nanos(0, source.clock.raw());
                // The scale is rounded down by less than one part in 2⁴⁰: a microsecond in twelve
                // days.
                let slack = 1 + (after >> 40);
                assert!(before - slack <= now && now <= after + slack);
            }
        }

        #[test]
        fn a_tick_of_a_nanosecond_or_more_is_left_to_the_crate() {
            assert_eq!(scale((1 << 44) - 1), u64::MAX - ((1 << 20) - 1));
            assert_eq!(scale(1 << 44), 0);
            assert_eq!(scale(u64::MAX), 0);
            let (clock, mock) = quanta::Clock::mock();
            let source = Source::of(clock);
            assert_eq!(source.scale, 0, "it counts nanoseconds");
            mock.increment(7_u64);
            assert_eq!(source.nanos(), 7);
        }
    }
}

#[cfg(not(feature = "quanta"))]
mod by_instant {
    use std::{sync::OnceLock, time::Instant};

    /// The origin of every clock of the process. Touched when a clock is made, never when it is
    /// read.
    static ORIGIN: OnceLock<Instant> = OnceLock::new();

    #[derive(Clone)]
    pub(super) struct Source(Instant);

    impl Source {
        pub(super) fn new() -> Self {
            Self(*ORIGIN.get_or_init(Instant::now))
        }

        pub(super) fn nanos(&self) -> u64 {
            u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
        }
    }
}
