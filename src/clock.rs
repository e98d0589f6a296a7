//! Where the strategies get the time from: the only file that asks the system.

use alloc::sync::Arc;
use core::fmt;

use crate::Timestamp;

/// A monotonic clock.
///
/// A strategy takes it at construction, so that tests and simulations can move the time themselves.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use paceline::{Adaptive, Clock, Timestamp};
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
/// let strategy = Adaptive::builder().clock(clock).build()?;
/// assert_eq!(strategy.clock().now(), Timestamp::from_nanos(7));
/// # Ok::<(), paceline::SettingsError>(())
/// ```
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the time since the clock's origin. It never goes back.
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

/// The system's monotonic clock.
///
/// All such clocks of a process share one origin, which is otherwise unspecified: their timestamps
/// may be compared and used with one limiter. With the feature `quanta` (a default) the processor's
/// time stamp counter is read where it can be trusted; the counter's scale is measured when the
/// first clock of the process is made, for 200 ms at most. Without it, the clock is
/// [`std::time::Instant`]. Only making a clock may wait for another thread that makes one.
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
#[derive(Clone, Debug)]
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

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.source.nanos())
    }
}

/// Returns the time since 1970-01-01 00:00 UTC by the system's clock, for headers with dates: zero before
/// that. It may go back.
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

    /// Asking the processor what its counter is worth takes tens of microseconds where there is a hypervisor, so it is
    /// asked once. Touched when a clock is made, never when it is read.
    static CLOCK: OnceLock<quanta::Clock> = OnceLock::new();

    /// The processor's counter, with its own zero as the origin.
    #[derive(Clone, Debug)]
    pub(super) struct Source(quanta::Clock);

    impl Source {
        pub(super) fn new() -> Self {
            Self(CLOCK.get_or_init(quanta::Clock::new).clone())
        }

        pub(super) fn nanos(&self) -> u64 {
            // From the counter's zero rather than from an instant of ours: no shared state to set
            // up, and every clock of the process has the same origin.
            self.0.delta_as_nanos(0, self.0.raw())
        }
    }
}

#[cfg(not(feature = "quanta"))]
mod by_instant {
    use std::{sync::OnceLock, time::Instant};

    /// The origin of every clock of the process. Touched when a clock is made, never when it is read.
    static ORIGIN: OnceLock<Instant> = OnceLock::new();

    #[derive(Clone, Debug)]
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
