//! The control laws: what the send rate should be, and the settings of the paced law.
//!
//! [`ControlLaw`] names the laws. Laws are functions of values: no atomics, no
//! floats, no clock. All times are nanoseconds after the limiter's start.

// The words of a limiter call a law through `Controller`. A law remembers its last decision in 49
// bits beside a time (`State`), and what it has counted in one word (a reading). Settings that
// change while the law is at work are in another word. Declared limits have words of their own,
// which only the declared law has a use for.

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
    /// It limits from `since` on, with `memory`. In between there is a pause if `since` is later
    /// than now.
    Limit {
        since: u64,
        memory: u64,
        /// The cycle that has begun with it.
        cycle: Option<u128>,
    },
    /// It limits nothing until the next throttle.
    End,
}

impl Decision {
    pub(crate) const fn is_end(self) -> bool {
        matches!(self, Self::End)
    }
}

/// Responses that were not throttled, and of some laws those that were: the law's reading, and the
/// sum of all counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) reading: u128,
    /// Wraps. It was read after `reading`, so that it is not behind what that knows of it.
    pub(crate) sum: u64,
    pub(crate) cycle: u128,
}

/// What a response does to the window that is being counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The reading that replaces the one before, if the window is over.
    pub(crate) next: Option<u128>,
    /// Before this time no window ends.
    pub(crate) end: u64,
    /// What the window has counted, if the law wants to look at it: see [`Event`].
    pub(crate) counted: Option<Past>,
    /// When the response counts as recorded: now, or later.
    pub(crate) at: u64,
    /// The cycle, if the window has changed it.
    pub(crate) cycle: Option<u128>,
}

impl Window {
    /// What does not touch the window at `now`.
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

/// A window that is over: when it began, the rate of the one before, and that of what was done in
/// it, without what failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) began: u64,
    pub(crate) before: Rate,
    pub(crate) done: Rate,
    /// Of a cycle: the calms before its end, and the time in it that was not used.
    pub(crate) calms: u64,
    pub(crate) idle: u64,
}

/// What a law decides on: a response, and the window that is over with it.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) now: u64,
    /// When the request was sent, at most `now`. 0 if nothing was limited yet then.
    pub(crate) sent: u64,
    /// The tokens of the request that were done, and those that were throttled. Neither is of an
    /// attempt without an answer, or of one that failed for another reason.
    pub(crate) done: u32,
    pub(crate) throttled: u32,
    /// When the pause ends that the service asked for; `now` if it asked for none.
    pub(crate) until: u64,
    /// The fill rate.
    pub(crate) fill: Rate,
    pub(crate) counted: Counted,
    /// How many have been counted since the state was entered, if that is known.
    pub(crate) since_change: Option<u64>,
    /// The window that is over.
    pub(crate) past: Option<Past>,
    /// Whether the rate is used up: the bucket holds less than half of what it can, or no token.
    pub(crate) is_used_up: &'a dyn Fn() -> bool,
}

/// What a response does to what is counted after a first decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    /// It does not belong to that.
    Unchanged,
    /// It is in these counts, 112 bits.
    Counted(u128),
    /// All have come back: the state has this memory instead, if any, and the time that it had.
    Over(Option<u64>),
}

/// The memories with which a law limits where no throttle has made it: `None` limits nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unthrottled {
    /// From the start.
    pub(crate) start: Option<u64>,
    /// Wherever nothing is limited later.
    pub(crate) later: Option<u64>,
}

/// How long there is nothing to do, if no throttle is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quiet {
    /// Until when the rate stays, if no window ends.
    pub(crate) rate: u64,
    /// Before this time no window ends.
    pub(crate) window: u64,
    /// Whether each response has to be looked at all the same.
    pub(crate) each: bool,
}

impl Quiet {
    /// Of a law without windows whose rate only a throttle moves.
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
    /// Whether that is of a whole window.
    pub(crate) is_measured: bool,
    pub(crate) peak: Rate,
    /// Whether that is of a throttle, and not what the law begins with.
    pub(crate) is_peak_seen: bool,
    /// Whether nothing gets through at the moment, so that the rate says nothing.
    pub(crate) is_shut: bool,
    /// The fill rate while nothing is limited.
    pub(crate) idle: Rate,
    /// How long a cycle of windows takes, in nanoseconds, if there was one.
    pub(crate) cycle: Option<NonZeroU64>,
}

/// One law, with its settings.
///
/// A law counts responses in windows ([`begin`](Self::begin), [`turn`](Self::turn)), decides on
/// what happens ([`decide`](Self::decide)), and says what [`rate`](Self::rate) follows from its
/// last decision. A method with a body says what a law does that has no windows, begins with no
/// limit and corrects no decision; such a law leaves the method out.
pub(crate) trait Law {
    /// Returns `true` if time alone moves the rate, so that waiters have to look at it. If not,
    /// each response does: then throttled ones are counted too, and turn the window.
    fn moves_with_time(&self) -> bool;

    /// Returns how much a bucket holds, in nanoseconds at its rate.
    fn burst(&self) -> u64 {
        SECOND
    }

    /// Returns what it does where there was no throttle.
    fn unthrottled(&self) -> Unthrottled {
        Unthrottled::default()
    }

    /// Returns the reading of a window that begins at `now` at the count of `sum`, and its end; and
    /// the first one if there is no `last` reading.
    fn begin(&self, _last: Option<u128>, _sum: u64, _now: u64) -> (u128, u64) {
        (0, u64::MAX)
    }

    /// Looks at the window after a response at `now` has been counted, to a request sent at `sent`.
    /// `counts` returns the sum of all counts, and how many in this window failed.
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

    /// Returns the fill rate in `state`, [`Rate::LEAST`] in a pause; and if there is no `reading`
    /// the one that the state begins with.
    fn rate(&self, state: State, now: u64, reading: Option<u128>) -> Rate;

    /// Returns how long there is nothing to do, where `rate` is the one at `now`.
    fn quiet(&self, _state: State, _now: u64, _rate: Rate, _reading: u128) -> Quiet {
        Quiet::UNTIL_A_THROTTLE
    }

    /// Decides on `event`. `None` leaves the state as it is.
    fn decide(&self, state: State, event: &Event<'_>) -> Option<Decision>;

    /// Looks at a response after the first decision, beside what has been counted: it may show that
    /// the decision was wrong. There are no `counts` for the throttle that made it.
    fn drain(&self, _state: State, _counts: Option<u128>, _response: &Response) -> Drain {
        Drain::Over(None)
    }

    /// Returns what there is to show at `now`.
    fn shown(&self, state: State, counted: Counted, now: u64) -> Shown;

    /// Returns `true` if a limiter in `state` is at the rate that it began with, or a rounding
    /// error below.
    #[cfg_attr(
        not(feature = "std"),
        allow(dead_code, reason = "scopes ask, and need std")
    )]
    fn is_at_start(&self, _state: State, _now: u64) -> bool {
        false
    }
}

/// The law that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    Aws(Aws),
    Paced(PacedSettings),
    Declared(Declared),
    #[cfg(test)]
    Aimd(aimd::Aimd),
}

/// Methods that hand the call to the law that there is.
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
    /// Returns a law with its own settings, of a limiter that starts at `start` nanoseconds.
    pub(crate) fn new(kind: ControlLaw, start: u64) -> Self {
        match kind {
            ControlLaw::Aws => Self::Aws(Aws {
                windows: aws::Windows::new(start),
            }),
            ControlLaw::Paced => Self::Paced(PacedSettings::new()),
            ControlLaw::Declared => Self::Declared(DeclaredSettings::new().law()),
        }
    }

    /// Returns which law it is.
    pub(crate) const fn kind(&self) -> ControlLaw {
        match self {
            Self::Aws(_) => ControlLaw::Aws,
            Self::Declared(_) => ControlLaw::Declared,
            Self::Paced(_) => ControlLaw::Paced,
            #[cfg(test)]
            Self::Aimd(_) => ControlLaw::Paced,
        }
    }

    /// Returns `true` if threads may take tokens ahead by it: not where sends are counted in order,
    /// nor where each response moves the rate.
    pub(crate) const fn lends(&self) -> bool {
        match self {
            Self::Paced(_) => true,
            Self::Aws(_) | Self::Declared(_) => false,
            #[cfg(test)]
            Self::Aimd(_) => false,
        }
    }

    /// Returns `true` if there is nothing to it but its kind: [`new`](Self::new) makes it again.
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
    /// Returns the rate that a caller at `now` has to let `state` begin with, and the time from
    /// which it holds; zero if nothing is limited.
    ///
    /// A rate that moves with time holds from `now`: the time of a state may be long past, and what
    /// was minted since must not be taken back.
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

    /// Returns the state after `last` by a decision at `now`. A law under which the limiter may not
    /// end limits to nothing that matters instead.
    pub(crate) fn decided(&self, last: State, now: u64, decision: Decision) -> State {
        match self.unthrottled().later {
            Some(unlimited) if decision.is_end() => last.next(now, unlimited),
            _ => last.decided(decision),
        }
    }

    /// Returns the rate after the pause that `state` began with.
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

    /// Returns the declared law, `None` if it is another one.
    pub(crate) const fn declared(&self) -> Option<Declared> {
        match self {
            Self::Declared(law) => Some(*law),
            _ => None,
        }
    }

    /// Returns for how long nothing is sent at first, in nanoseconds.
    pub(crate) fn shut_at_first(&self) -> u64 {
        self.paced().map_or(0, |settings| settings.shut())
    }

    /// Returns the settings of the paced law, also as the one that the declared law falls back to;
    /// `None` if it is another one.
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
