//! The control laws: what the send rate should be, and the settings of the paced law.
//!
//! [`ControlLaw`] names the laws. Laws are functions of values: no atomics, no
//! floats, no clock. All times are nanoseconds after the limiter's start.

// A limiter calls its law through `Controller`, and keeps the law's memory in atomic words. One
// word has the last decision: 49 bits beside a time (`State`). A second word has the law's counts
// (a reading). A third has the settings that may change while the law is at work. Only the declared
// law uses the words for declared limits.

#[cfg(test)]
#[path = "tests/aimd.rs"]
pub(crate) mod aimd;
pub(crate) mod aws;
pub(crate) mod cubic;
pub(crate) mod declared;
pub(crate) mod outcome;
pub(crate) mod paced;
mod respond;
mod state;

pub use declared::{
    DeclaredSettings, Dimension, LimitName, LimitReport, LimitReports, Observed, Reset, Spend,
};
pub use outcome::Recorded;
pub use paced::{LearnedRate, PacedSettings, PacedSettingsBuilder, PacedSettingsError};

pub(crate) use declared::Ledger;
pub(crate) use respond::{Response, Seen};
pub(crate) use state::{Draining, State};

use core::num::NonZeroU64;

use crate::ControlLaw;
use crate::fixed::{Rate, SECOND};
use aws::Aws;
use declared::Declared;

/// What a law decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The law limits from `since` on, with `memory`. A `since` later than now is the end of a
    /// pause.
    Limit {
        since: u64,
        memory: u64,
        /// The cycle that begins with this decision, if one does.
        cycle: Option<u128>,
    },
    /// The law limits nothing until the next throttle.
    End,
}

impl Decision {
    pub(crate) const fn is_end(self) -> bool {
        matches!(self, Self::End)
    }
}

/// The counts of responses: the law's reading, and the sum of all counts. Throttled responses count
/// only under a law that each response moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) reading: u128,
    /// The sum of all counts, wrapping. The sum was read after `reading`, so it is never older than
    /// the sum in `reading`.
    pub(crate) sum: u64,
    pub(crate) cycle: u128,
}

/// What a response does to the window that is being counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The reading of the next window, if this window is over.
    pub(crate) next: Option<u128>,
    /// Before this time no window ends.
    pub(crate) end: u64,
    /// What the window has counted, if the law decides on it: see [`Event`].
    pub(crate) counted: Option<Past>,
    /// When the response counts as recorded: now, or the start of the window if that is later.
    pub(crate) at: u64,
    /// The cycle, if the window has changed it.
    pub(crate) cycle: Option<u128>,
}

impl Window {
    /// The effect of a response at `now` that leaves the window as it is.
    pub(crate) const fn unturned(now: u64) -> Self {
        Self {
            next: None,
            end: u64::MAX,
            counted: None,
            at: now,
            cycle: None,
        }
    }
}

/// A window that is over: when it began, the rate of the window before, and its own rate without
/// failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) began: u64,
    pub(crate) before: Rate,
    pub(crate) done: Rate,
    /// In a cycle: the calms so far, and the time in the window in which the rate was not used.
    pub(crate) calms: u64,
    pub(crate) idle: u64,
}

/// What a law decides on: a response, and the window that the response ends.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) now: u64,
    /// When the request was sent, at most `now`. If nothing was limited then: 0.
    pub(crate) sent: u64,
    /// The tokens of the request that were done, and those that were throttled. Both are 0 for an
    /// attempt that got no answer or failed for another reason.
    pub(crate) done: u32,
    pub(crate) throttled: u32,
    /// When the pause ends that the service asked for; `now` if the service asked for none.
    pub(crate) until: u64,
    /// The fill rate.
    pub(crate) fill: Rate,
    pub(crate) counted: Counted,
    /// How many tokens have been counted since the state was entered, if known.
    pub(crate) since_change: Option<u64>,
    /// The window that is over.
    pub(crate) past: Option<Past>,
    /// Whether the rate is used up: the bucket is less than half full, or holds no token.
    pub(crate) is_used_up: &'a dyn Fn() -> bool,
}

/// What a response does to the counts that may correct the first decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    /// The response does not count.
    Unchanged,
    /// The counts, 112 bits, with the response in them.
    Counted(u128),
    /// All the requests have come back. The state gets this memory, if any, and keeps its time.
    Over(Option<u64>),
}

/// The memories with which a law limits without a throttle; `None` limits nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unthrottled {
    /// The memory at the start.
    pub(crate) start: Option<u64>,
    /// The memory after the law has ended, or has been forgotten.
    pub(crate) later: Option<u64>,
}

/// Until when the law has nothing to do, if no throttle is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quiet {
    /// The rate stays until this time, if no window ends.
    pub(crate) rate: u64,
    /// Before this time no window ends.
    pub(crate) window: u64,
    /// Whether the law has to see each response before that, too.
    pub(crate) each: bool,
}

impl Quiet {
    /// For a law without windows, whose rate only a throttle moves.
    pub(crate) const UNTIL_A_THROTTLE: Self = Self {
        rate: u64::MAX,
        window: u64::MAX,
        each: false,
    };
}

/// What a snapshot shows of a law.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) measured: Rate,
    /// Whether `measured` comes from a whole window.
    pub(crate) is_measured: bool,
    pub(crate) peak: Rate,
    /// Whether `peak` comes from a throttle, rather than from the settings.
    pub(crate) is_peak_seen: bool,
    /// Whether nothing gets through at the moment. The rate then says nothing about the limit.
    pub(crate) is_shut: bool,
    /// The fill rate while nothing is limited.
    pub(crate) idle: Rate,
    /// How long a cycle takes, in nanoseconds, if cycles were counted.
    pub(crate) cycle: Option<NonZeroU64>,
}

/// One law, with its settings.
///
/// A law counts responses in windows ([`begin`](Self::begin), [`turn`](Self::turn)). It decides on
/// each event ([`decide`](Self::decide)), and its last decision gives the [`rate`](Self::rate). The
/// default methods are for a law without windows, which begins with no limit and corrects no
/// decision.
pub(crate) trait Law {
    /// Returns `true` if time alone moves the rate, so that waiters have to read it again. If
    /// `false`, each response moves the rate; then throttled responses count too, and turn the
    /// window.
    fn moves_with_time(&self) -> bool;

    /// Returns the capacity of the bucket, in nanoseconds at its rate.
    fn burst(&self) -> u64 {
        SECOND
    }

    /// Returns the memories with which the law limits without a throttle.
    fn unthrottled(&self) -> Unthrottled {
        Unthrottled::default()
    }

    /// Returns the reading of a window that begins at `now` with `sum` counted, and the window's
    /// end. Without a `last` reading this is the first window.
    fn begin(&self, _last: Option<u128>, _sum: u64, _now: u64) -> (u128, u64) {
        (0, u64::MAX)
    }

    /// Turns the window if it is over. The response at `now` is counted already; its request was
    /// sent at `sent`. `counts` returns the sum of all counts, and the failures in this window.
    fn turn(
        &self,
        _reading: u128,
        _cycle: u128,
        _counts: impl Fn() -> (u64, u64),
        _state: State,
        now: u64,
        _sent: u64,
    ) -> Window {
        Window::unturned(now)
    }

    /// Returns the fill rate in `state`, [`Rate::LEAST`] in a pause. Without a `reading` the rate
    /// is that at the beginning of the state.
    fn rate(&self, state: State, now: u64, reading: Option<u128>) -> Rate;

    /// Returns until when the law has nothing to do. `rate` is the rate at `now`.
    fn quiet(&self, _state: State, _now: u64, _rate: Rate, _reading: u128) -> Quiet {
        Quiet::UNTIL_A_THROTTLE
    }

    /// Decides on `event`. `None` leaves the state as it is.
    fn decide(&self, state: State, event: &Event<'_>) -> Option<Decision>;

    /// Counts a response after the first decision: the counts may show that the decision was wrong.
    /// The throttle that made the decision comes without `counts`.
    fn drain(&self, _state: State, _counts: Option<u128>, _response: &Response) -> Drain {
        Drain::Over(None)
    }

    /// Returns what a snapshot shows at `now`.
    fn shown(&self, state: State, counted: Counted, now: u64) -> Shown;

    /// Returns `true` if the rate in `state` is the initial rate, up to rounding.
    #[cfg_attr(
        not(feature = "std"),
        allow(dead_code, reason = "scopes ask, and need std")
    )]
    fn is_at_start(&self, _state: State, _now: u64) -> bool {
        false
    }
}

/// The law of a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    Aws(Aws),
    Paced(PacedSettings),
    Declared(Declared),
    #[cfg(test)]
    Aimd(aimd::Aimd),
}

/// Methods that forward the call to the variant's law.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty;)*) => {$(
        pub(crate) fn $name(&self $(, $argument: $kind)*) -> $result {
            match self {
                Self::Aws(law) => law.$name($($argument),*),
                Self::Paced(law) => law.$name($($argument),*),
                Self::Declared(law) => law.$name($($argument),*),
                #[cfg(test)]
                Self::Aimd(law) => law.$name($($argument),*),
            }
        }
    )*};
}

impl Controller {
    /// Returns a law with its default settings, for a limiter that starts at `start` nanoseconds.
    pub(crate) fn new(kind: ControlLaw, start: u64) -> Self {
        match kind {
            ControlLaw::Aws => Self::Aws(Aws {
                windows: aws::Windows::new(start),
            }),
            ControlLaw::Paced => Self::Paced(PacedSettings::new()),
            ControlLaw::Declared => Self::Declared(DeclaredSettings::new().law()),
        }
    }

    /// Returns the name of the law.
    pub(crate) const fn kind(&self) -> ControlLaw {
        match self {
            Self::Aws(_) => ControlLaw::Aws,
            Self::Declared(_) => ControlLaw::Declared,
            Self::Paced(_) => ControlLaw::Paced,
            #[cfg(test)]
            Self::Aimd(_) => ControlLaw::Paced,
        }
    }

    /// Returns `true` if threads may take tokens ahead under this law. Threads may not where sends
    /// are counted in order, or where each response moves the rate.
    pub(crate) const fn lends(&self) -> bool {
        match self {
            Self::Paced(_) => true,
            Self::Aws(_) | Self::Declared(_) => false,
            #[cfg(test)]
            Self::Aimd(_) => false,
        }
    }

    /// Returns `true` if the law has no settings, so that [`new`](Self::new) makes the same law
    /// again.
    pub(crate) const fn is_plain(&self) -> bool {
        match self {
            Self::Aws(_) => true,
            Self::Paced(_) | Self::Declared(_) => false,
            #[cfg(test)]
            Self::Aimd(_) => false,
        }
    }

    forward! {
        fn moves_with_time(&self) -> bool;
        fn burst(&self) -> u64;
        fn unthrottled(&self) -> Unthrottled;
        fn begin(&self, last: Option<u128>, sum: u64, now: u64) -> (u128, u64);
        fn turn(&self, reading: u128, cycle: u128, counts: impl Fn() -> (u64, u64), state: State, now: u64, sent: u64) -> Window;
        fn rate(&self, state: State, now: u64, reading: Option<u128>) -> Rate;
        fn quiet(&self, state: State, now: u64, rate: Rate, reading: u128) -> Quiet;
        fn decide(&self, state: State, event: &Event<'_>) -> Option<Decision>;
        fn drain(&self, state: State, counts: Option<u128>, response: &Response) -> Drain;
        fn shown(&self, state: State, counted: Counted, now: u64) -> Shown;
    }

    forward! {
        fn is_at_start(&self, state: State, now: u64) -> bool;
    }
}

impl Controller {
    /// Returns the rate that `state` begins with for a caller at `now`, and the time from which
    /// that rate holds. The rate is zero if nothing is limited.
    ///
    /// A rate that moves with time holds from `now`. The time of the state may be long past, and
    /// tokens minted since then must not be taken back.
    pub(crate) fn first_rate(&self, state: State, now: u64) -> (u64, Rate) {
        if !state.is_engaged() {
            return (now, Rate::ZERO);
        }
        let from = if self.moves_with_time() {
            now
        } else {
            state.since()
        };
        (from, self.rate(state, from, None))
    }

    /// Returns the state after `last` by a decision at `now`. A law whose limiter may not end gets
    /// the memory of [`Unthrottled`] instead.
    pub(crate) fn decided(&self, last: State, now: u64, decision: Decision) -> State {
        match self.unthrottled().later {
            Some(unlimited) if decision.is_end() => last.next(now, unlimited),
            _ => last.decided(decision),
        }
    }

    /// Returns the rate after the pause with which `state` began.
    pub(crate) fn resumed(&self, state: State) -> Rate {
        self.rate(state, state.since(), None)
    }

    /// Returns the settings that may change under way, in 128 bits.
    pub(crate) fn tunable_bits(&self) -> u128 {
        self.paced().map_or(0, |settings| settings.tunable_bits())
    }

    /// Returns the law with the settings of [`tunable_bits`](Self::tunable_bits).
    pub(crate) fn with_tunable_bits(self, bits: u128) -> Self {
        match self {
            Self::Paced(settings) => Self::Paced(settings.with_tunable_bits(bits)),
            Self::Declared(law) => {
                Self::Declared(law.with_paced(law.paced().with_tunable_bits(bits)))
            }
            Self::Aws(_) => self,
            #[cfg(test)]
            Self::Aimd(_) => self,
        }
    }

    /// Returns the declared law, or `None` under another law.
    pub(crate) const fn declared(&self) -> Option<Declared> {
        match self {
            Self::Declared(law) => Some(*law),
            _ => None,
        }
    }

    /// Returns for how long a new limiter sends nothing, in nanoseconds.
    pub(crate) fn shut_at_first(&self) -> u64 {
        self.paced().map_or(0, |settings| settings.shut())
    }

    /// Returns the settings of the paced law, also where the declared law falls back to it. `None`
    /// under the published law.
    pub(crate) const fn paced(&self) -> Option<PacedSettings> {
        match self {
            Self::Paced(settings) => Some(*settings),
            Self::Declared(law) => Some(law.paced()),
            Self::Aws(_) => None,
            #[cfg(test)]
            Self::Aimd(_) => None,
        }
    }
}
