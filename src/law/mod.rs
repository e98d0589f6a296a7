//! The control laws: what the send rate should be, and the settings of the paced law.
//!
//! [`ControlLaw`](crate::ControlLaw) names the laws. Laws are functions of values: no atomics, no
//! floats, no clock. All times are nanoseconds after the limiter's start.

// The words of a limiter know a law by `Controller` alone. A law remembers its last decision in 49
// bits beside a time (`State`), and what it has counted in one word (a reading). Settings that
// change while it is at work are in another word.

#[cfg(test)]
pub(crate) mod aimd;
pub(crate) mod aws;
pub(crate) mod cubic;
pub(crate) mod declared;
pub(crate) mod paced;
mod state;

pub use declared::{
    DeclaredSettings, Dimension, LimitName, LimitReport, LimitReports, Observed, Reset, Spend,
};
pub use paced::{LearnedRate, PacedSettings, PacedSettingsBuilder, PacedSettingsError};

pub(crate) use state::{Draining, State};

use crate::fixed::Rate;
use aws::Aws;
use declared::Declared;

/// What a law makes of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It limits from `since` on, with `memory`. In between there is a pause if `since` is later
    /// than now.
    Limit { since: u64, memory: u64 },
    /// It limits nothing until the next throttle.
    End,
}

/// Responses that were not throttled, and of some laws those that were: the law's reading, and the
/// sum of all counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) reading: u128,
    /// Wraps. It was read after `reading`, so that it is not behind what that knows of it.
    pub(crate) sum: u64,
}

/// What a response does to the window that is being counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The reading that replaces the one before, if the window is over.
    pub(crate) next: Option<u128>,
    /// Before this time no window ends.
    pub(crate) end: u64,
    /// What the window has counted, if the law wants to look at it: see [`Law::after_window`].
    pub(crate) counted: Option<Rate>,
    /// When the response counts as recorded: now, or later.
    pub(crate) at: u64,
}

/// A throttle that is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throttled {
    pub(crate) now: u64,
    /// When the request was sent, at most `now`. 0 if nothing was limited yet then.
    pub(crate) sent: u64,
    /// When the pause ends that the service asked for; `now` if it asked for none.
    pub(crate) until: u64,
    /// The fill rate.
    pub(crate) fill: Rate,
    pub(crate) counted: Counted,
    /// How many have been counted since the state was entered, if that is known.
    pub(crate) since_change: Option<u64>,
}

/// A response, as a law counts it that corrects its first decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub(crate) now: u64,
    /// When the request was sent, at most `now`. `None` if the clock was not read, which is so only
    /// for requests that were sent while nothing was limited.
    pub(crate) sent: Option<u64>,
    pub(crate) weight: u32,
    pub(crate) throttled: bool,
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

/// What a snapshot shows of a law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) measured: Rate,
    pub(crate) peak: Rate,
    /// The fill rate while nothing is limited.
    pub(crate) idle: Rate,
}

/// One law, with its settings.
pub(crate) trait Law {
    /// Whether throttled responses are counted too, and turn the window.
    const COUNTS_THROTTLES: bool;
    /// Whether time alone moves the rate, so that waiters have to look at it.
    const MOVES_BY_ITSELF: bool;

    /// Returns how much a bucket holds, in nanoseconds at its rate.
    fn burst(&self) -> u64;

    /// Returns the state's memory of a limiter that limits from the start, if this one does.
    fn initial(&self) -> Option<u64>;

    /// Returns the memory to go on with where nothing is limited, if the law never lets that be.
    fn held(&self) -> Option<u64>;

    /// Returns the first reading, of counts that begin at `sum`, and the end of the first window.
    fn first_reading(&self, sum: u64) -> (u128, u64);

    /// Returns the fill rate in `state`, [`Rate::LEAST`] in a pause. `time_to_peak` is
    /// [`cubic::time_to_peak`].
    fn rate(
        &self,
        state: State,
        now: u64,
        reading: u128,
        time_to_peak: impl Fn(Rate) -> u64,
    ) -> Rate;

    /// Returns the rate that `state` begins with, for a caller at `now`, and the time from which it
    /// holds.
    fn first_rate(&self, state: State, now: u64) -> (u64, Rate) {
        let from = state.since().min(now);
        (from, self.rate(state, from, 0, cubic::time_to_peak))
    }

    /// Returns until when `rate`, which is the one at `now`, stays, if no throttle is recorded and
    /// no window ends.
    fn steady_until(&self, state: State, now: u64, rate: Rate, reading: u128) -> u64;

    /// Looks at the window after a response at `now` has been counted, to a request sent at `sent`.
    fn turn(
        &self,
        reading: u128,
        sum: impl Fn() -> u64,
        state: State,
        now: u64,
        sent: u64,
    ) -> Window;

    /// Returns the time before which no window ends.
    fn window_end(&self, reading: u128) -> u64;

    /// Decides on what a window has counted. `None` leaves the state as it is.
    fn after_window(
        &self,
        state: State,
        now: u64,
        rate: Rate,
        counted: Counted,
    ) -> Option<Decision>;

    /// Whether in `state` each response has to be looked at, by
    /// [`after_response`](Self::after_response).
    fn looks_at_each(&self, _state: State) -> bool {
        false
    }

    /// Decides on a response at `now` that was not throttled, to a request sent at `sent`, while
    /// the rate is used up. `None` leaves the state as it is.
    fn after_response(&self, _state: State, _now: u64, _sent: u64) -> Option<Decision> {
        None
    }

    /// Decides on a throttle. `None` leaves the state as it is.
    fn after_throttle(&self, state: State, throttled: &Throttled) -> Option<Decision>;

    /// Returns the counts of no responses, if what comes back after a first decision, which left
    /// `memory`, may correct it. `trip` is the round trip of the request that was throttled.
    fn drain_of(&self, _memory: u64, _trip: u64) -> Option<u128> {
        None
    }

    /// Looks at a response after the first decision, beside what has been counted.
    fn drain(&self, _state: State, _counts: u128, _response: &Response) -> Drain {
        Drain::Over(None)
    }

    /// Returns the reading of a window that begins at `now` from zero, and its end; or `None` if
    /// none has begun.
    fn restarted(&self, counted: Counted, now: u64) -> Option<(u128, u64)>;

    /// Returns what there is to show at `now`.
    fn shown(&self, state: State, counted: Counted, now: u64) -> Shown;

    /// Whether a limiter in `state` is at the rate that it began with, or a rounding error below.
    #[cfg_attr(
        not(feature = "std"),
        allow(dead_code, reason = "scopes ask, and need std")
    )]
    fn is_at_start(&self, state: State, now: u64) -> bool;

    /// Returns the settings that may change under way, in 128 bits.
    fn to_word(&self) -> u128;

    /// Returns the law with other settings, from [`to_word`](Self::to_word).
    fn with_word(&self, word: u128) -> Self;
}

/// All that the words of a limiter know of its law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    Aws(Aws),
    Paced(PacedSettings),
    Declared(Declared),
    #[cfg(test)]
    Aimd(aimd::Aimd),
}

/// Hands a call to the law that there is.
macro_rules! each {
    ($controller:expr, $law:ident => $call:expr) => {
        match $controller {
            Controller::Aws($law) => $call,
            Controller::Paced($law) => $call,
            Controller::Declared($law) => $call,
            #[cfg(test)]
            Controller::Aimd($law) => $call,
        }
    };
}

/// The constants of the law that there is.
macro_rules! constant {
    ($controller:expr, $name:ident) => {{
        const fn of<L: Law>(_law: &L) -> bool {
            L::$name
        }
        each!($controller, law => of(law))
    }};
}

impl Controller {
    pub(crate) const fn counts_throttles(&self) -> bool {
        constant!(self, COUNTS_THROTTLES)
    }

    pub(crate) const fn moves_by_itself(&self) -> bool {
        constant!(self, MOVES_BY_ITSELF)
    }

    pub(crate) fn burst(&self) -> u64 {
        each!(self, law => law.burst())
    }

    pub(crate) fn initial(&self) -> Option<u64> {
        each!(self, law => law.initial())
    }

    pub(crate) fn held(&self) -> Option<u64> {
        each!(self, law => law.held())
    }

    pub(crate) fn first_reading(&self, sum: u64) -> (u128, u64) {
        each!(self, law => law.first_reading(sum))
    }

    pub(crate) fn rate(
        &self,
        state: State,
        now: u64,
        reading: u128,
        time_to_peak: impl Fn(Rate) -> u64,
    ) -> Rate {
        each!(self, law => law.rate(state, now, reading, time_to_peak))
    }

    /// As [`Law::first_rate`]; zero if nothing is limited.
    pub(crate) fn first_rate(&self, state: State, now: u64) -> (u64, Rate) {
        if !state.is_engaged() {
            return (now, Rate::ZERO);
        }
        each!(self, law => law.first_rate(state, now))
    }

    /// Returns the rate after the pause that `state` began with.
    pub(crate) fn resumed(&self, state: State) -> Rate {
        self.rate(state, state.since(), 0, cubic::time_to_peak)
    }

    pub(crate) fn steady_until(&self, state: State, now: u64, rate: Rate, reading: u128) -> u64 {
        each!(self, law => law.steady_until(state, now, rate, reading))
    }

    pub(crate) fn turn(
        &self,
        reading: u128,
        sum: impl Fn() -> u64,
        state: State,
        now: u64,
        sent: u64,
    ) -> Window {
        each!(self, law => law.turn(reading, sum, state, now, sent))
    }

    pub(crate) fn window_end(&self, reading: u128) -> u64 {
        each!(self, law => law.window_end(reading))
    }

    pub(crate) fn after_window(
        &self,
        state: State,
        now: u64,
        rate: Rate,
        counted: Counted,
    ) -> Option<Decision> {
        each!(self, law => law.after_window(state, now, rate, counted))
    }

    pub(crate) fn looks_at_each(&self, state: State) -> bool {
        each!(self, law => law.looks_at_each(state))
    }

    pub(crate) fn after_response(&self, state: State, now: u64, sent: u64) -> Option<Decision> {
        each!(self, law => law.after_response(state, now, sent))
    }

    pub(crate) fn after_throttle(&self, state: State, throttled: &Throttled) -> Option<Decision> {
        each!(self, law => law.after_throttle(state, throttled))
    }

    pub(crate) fn drain_of(&self, memory: u64, trip: u64) -> Option<u128> {
        each!(self, law => law.drain_of(memory, trip))
    }

    pub(crate) fn drain(&self, state: State, counts: u128, response: &Response) -> Drain {
        each!(self, law => law.drain(state, counts, response))
    }

    pub(crate) fn restarted(&self, counted: Counted, now: u64) -> Option<(u128, u64)> {
        each!(self, law => law.restarted(counted, now))
    }

    pub(crate) fn shown(&self, state: State, counted: Counted, now: u64) -> Shown {
        each!(self, law => law.shown(state, counted, now))
    }

    #[cfg(feature = "std")]
    pub(crate) fn is_at_start(&self, state: State, now: u64) -> bool {
        each!(self, law => law.is_at_start(state, now))
    }

    pub(crate) fn to_word(self) -> u128 {
        each!(self, law => law.to_word())
    }

    pub(crate) fn with_word(&self, word: u128) -> Self {
        match self {
            Self::Aws(law) => Self::Aws(law.with_word(word)),
            Self::Paced(law) => Self::Paced(law.with_word(word)),
            Self::Declared(law) => Self::Declared(law.with_word(word)),
            #[cfg(test)]
            Self::Aimd(law) => Self::Aimd(law.with_word(word)),
        }
    }

    /// Returns the declared law, `None` if it is another one.
    pub(crate) const fn declared(&self) -> Option<Declared> {
        match self {
            Self::Declared(law) => Some(*law),
            _ => None,
        }
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
