//! The clocks of the strategies. Only this file asks the system for the time.

use alloc::sync::Arc;
use core::fmt;
use std::sync::LazyLock;

use crate::Timestamp;

/// A monotonic clock.
///
/// A strategy takes a clock at construction, so that tests and simulations can control the time.
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
    /// Returns the time since the clock's origin. The time must never go back and never run ahead.
    /// After one reading far in the future, all requests wait until then.
    /// [`SendRate::reset`](crate::SendRate::reset) ends such a wait.
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

/// A clock that stands still, so that a time can be passed as a clock.
impl Clock for Timestamp {
    fn now(&self) -> Timestamp {
        *self
    }
}

/// The system's monotonic clock.
///
/// All such clocks of a process share one unspecified origin, so their timestamps may be compared
/// and used with one limiter. By default the clock is [`std::time::Instant`]. With the feature
/// `quanta` it is the processor's time stamp counter, if the counter can be trusted. The counter's
/// scale is measured when the first clock of the process is made, for 200 ms at most. Making a
/// clock may wait for another thread that makes a clock. Reading never waits.
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

/// Shows the clock's time.
impl fmt::Debug for MonotonicClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.now().saturating_since(Timestamp::ZERO);
        f.debug_tuple("MonotonicClock").field(&shown).finish()
    }
}

/// The clock of tokio's runtime, which tests can pause and move.
///
/// In a test with `start_paused` the clock shows tokio's paused time. Timers then fire when the
/// strategy expects them, and each run of a test is the same to the nanosecond. tokio's timers
/// round up to milliseconds. In other runtimes the clock is the system's monotonic clock.
///
/// Create the clock in the runtime whose time it shows. Its origin is the time of its creation, and
/// clones share the origin. Timestamps of two clocks that were created apart must not meet in one
/// limiter.
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

/// Shows the clock's time.
#[cfg(feature = "tokio")]
impl fmt::Debug for TokioClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokioClock")
            .field(&self.0.elapsed())
            .finish()
    }
}

/// Returns the default clock of strategies, the system's.
pub(crate) fn system() -> &'static MonotonicClock {
    static CLOCK: LazyLock<MonotonicClock> = LazyLock::new(MonotonicClock::new);
    &CLOCK
}

/// Returns the time since 1970-01-01 00:00 UTC by the system's clock, for headers with dates.
/// Before 1970 it is zero. It may go back.
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

    /// The counter and its scale, made once, since asking the processor for the scale takes tens of
    /// microseconds under a hypervisor. Reading a clock does not touch this cell.
    static SOURCE: OnceLock<Source> = OnceLock::new();

    /// The shift from nanoseconds in 2⁴⁴ ticks to nanoseconds in 2⁶⁴ ticks.
    const FRACTION: u32 = 20;

    /// The processor's counter, with its zero as the origin.
    #[derive(Clone)]
    pub(super) struct Source {
        clock: quanta::Clock,
        /// Nanoseconds in 2⁶⁴ ticks, to a multiple of 2²⁰. Zero if a tick is a nanosecond or more,
        /// or if there is no counter.
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
            // Time counts from the counter's zero and not from an instant. So no shared state is
            // set up, and all clocks of the process have one origin. The counter never goes back,
            // and neither does its product.
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

    /// Returns the nanoseconds in 2⁶⁴ ticks from the nanoseconds in 2⁴⁴ ticks, or 0 on overflow.
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

    /// The origin of every clock of the process. Reading a clock does not touch this cell.
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
