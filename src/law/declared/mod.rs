//! The declared law: a client of a service that says in its responses what is left of its limit.
//!
//! # Rules
//!
//! The code cites them by number. `L` is the limit, `W` its window, `left` what remained by the
//! last report, less what was sent since; costs are counted in the order that requests were sent.
//!
//! 1. *First contact.* Before the first report a small burst goes, and as much again every ten
//!    seconds. Each answer without a report doubles that, and the eighth ends it: then the paced
//!    law decides.
//! 2. *What is left* is carried forward by what was sent since the report, by what comes back
//!    (`L/W`, if the limit refills), and by what others are seen to take. Others are foreseen for
//!    two trips on a refill and four in a window: foreseen without a bound, what is left would fall
//!    below zero, nothing would be sent, and no report could correct it.
//! 3. *The rate* is `σ^¾ · (left − kept) / (time until the limit is whole)`. `σ` is this client's
//!    part of what is taken. Clients that read the same number come to equal parts, and the rate
//!    goes to zero as `left` does, so that nothing overshoots. One request is kept back where
//!    others are seen: between two sends of one client the others make theirs. In a window
//!    it is planned that everything is sent two trips before the end (a tenth of the window at
//!    most), because a late request counts in the next one.
//! 4. *No more than `L/W`* for two trips after the first report, in a new window until its first
//!    report, and in those last two trips, should something be left then.
//! 5. *A report counts by the order of sends.* One of an older send than the last report taken is
//!    ignored, so that a late answer never raises what is left. After a reset only a later reset,
//!    or a request sent since, opens the new window. What is left of a window only falls: an older
//!    send's report that says less was answered later, and lowers it; and one that says more than
//!    the last one left is ignored for two trips, because a request sent before it may be on its
//!    way. More than the limit is never left.
//! 6. *Refill or window* is found out. By the reports of a window the reset is one instant; by
//!    those of a refill the time until the reset is in proportion to what is used. Both are
//!    intervals that shrink by intersection: whole seconds leave wide ones, and so does room for
//!    reports that are off by a 32nd of the limit. A reset that comes sooner than one window after
//!    the last one is no window's. Until it is known, and nothing is declared, the window is the
//!    least usual one that holds the first reset; a reset that is nearer than two trips says too
//!    little for that, and counts as a refill's, exactly where hardly anything is used. A reset
//!    that passes twice and leaves more than half of what was used is that of a sliding window:
//!    what was used comes back one window later. What is left of one is spread over a sixteenth of
//!    it, since at the full rate nothing would be left.
//! 7. *Clocks.* A reset at a time counts by the service's own clock, from `Date`; the difference of
//!    the clocks is an interval too. The window begins at the latest time that fits, and ends at
//!    the earliest.
//! 8. *A throttle in spite of the reports.* Nothing is sent until the time that the service gave.
//!    If by the report of the throttled response a quarter of the limit or less was left, reports
//!    say too much: that much is taken off from now on, less once a request gets through with less,
//!    and half as much after a hundred windows. If more was left there is another limit that is not
//!    declared: for ten windows the rate is the paced law's where that is lower.
//! 9. *Settled costs.* A request that cost more or less than it took moves what is left, unless a
//!    report of it or of a later send has been taken: a report has the true cost in it. The bucket
//!    is left alone, because the rate follows from what is left. What was settled is dropped when
//!    such a report comes.
//! 10. *No report* for two windows, while answers come: the paced law decides. It has seen every
//!     outcome all along.
//!
//! # What lost
//!
//! Prototypes in floating point, 81 scenes: additive probing on what remains instead of on
//! throttles throttles up to 5.8 %; a part to the power of 1 has no restoring force (Jain 0.88 on a
//! refill), and 0 spends too much early (the 99th percentile of waits doubles). Without the
//! foresight of rule 2 four clients throttle 3.2 % of 60 a minute, without the request kept back
//! 1.6 %.

pub(crate) mod ledger;
mod report;

pub use report::{Dimension, LimitName, LimitReport, LimitReports, Observed, Reset};

use super::paced::PacedSettings;
use super::{Counted, Decision, Law, Shown, State, Throttled, Window};
use crate::fixed::{Rate, SECOND};

/// How what is left of a window is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Spend {
    /// Evenly until the reset: the shortest waits, and no throttles.
    #[default]
    Even,
    /// As fast as it is allowed, and then wait for the reset.
    Fast,
}

/// Settings of [`ControlLaw::Declared`](crate::ControlLaw::Declared).
///
/// # Examples
///
/// ```
/// use paceline::{SendRate, Timestamp, law::{DeclaredSettings, Spend}};
///
/// let settings = DeclaredSettings::new().first_burst(4).spend(Spend::Fast);
/// let rate = SendRate::declared(settings, Timestamp::ZERO);
/// assert!(rate.try_acquire(Timestamp::ZERO).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "settings are for a limiter"]
pub struct DeclaredSettings {
    otherwise: PacedSettings,
    dimension: Dimension,
    first: Option<u32>,
    spend: Spend,
}

impl DeclaredSettings {
    /// Creates the settings that [`ControlLaw::Declared`](crate::ControlLaw::Declared) has unless
    /// set otherwise: limits of requests, spent evenly, and one request before the first report.
    pub fn new() -> Self {
        Self {
            otherwise: PacedSettings::new(),
            dimension: Dimension::Requests,
            first: None,
            spend: Spend::Even,
        }
    }

    /// Sets how many requests go at once before the first report; 0 for all. As many again come in
    /// each ten seconds, twice as many after each answer without a report, and all after the eighth.
    ///
    /// By default one, and all where something other than requests is counted: a rate of tokens
    /// says little of requests. The rate of requests beside it, in a
    /// [`SendSet`](crate::SendSet), holds them back.
    pub const fn first_burst(mut self, requests: u32) -> Self {
        self.first = Some(requests);
        self
    }

    /// Sets how what is left of a window is spent.
    pub const fn spend(mut self, spend: Spend) -> Self {
        self.spend = spend;
        self
    }

    /// Sets which limits are obeyed: those that count what the limiter's tokens are. Limits of
    /// other dimensions are left alone.
    pub const fn dimension(mut self, dimension: Dimension) -> Self {
        self.dimension = dimension;
        self
    }

    /// Sets the paced law that decides where nothing is declared. Its ceiling always holds.
    pub const fn otherwise(mut self, paced: PacedSettings) -> Self {
        self.otherwise = paced;
        self
    }

    /// Returns the dimension of the limits that are obeyed.
    #[must_use]
    pub const fn obeyed(&self) -> Dimension {
        self.dimension
    }

    /// Returns the settings of the law that decides where nothing is declared.
    #[must_use]
    pub const fn paced(&self) -> PacedSettings {
        self.otherwise
    }

    pub(crate) const fn law(&self) -> Declared {
        Declared {
            otherwise: self.otherwise,
            first: match (self.first, self.dimension) {
                (Some(first), _) => first,
                (None, Dimension::Requests) => 1,
                (None, _) => 0,
            },
            spend: self.spend,
        }
    }
}

impl Default for DeclaredSettings {
    fn default() -> Self {
        Self::new()
    }
}

/// The declared law as long as nothing is declared: rule 1, and the paced law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    otherwise: PacedSettings,
    first: u32,
    spend: Spend,
}

/// How many answers without a report end the first contact.
const ANSWERS: u32 = 8;
/// The bits of a memory below the count of answers; they are a peak, which no cut leaves at zero.
const PEAK_BITS: u32 = 37;

/// Returns the answers without a report so far, if it is still the first contact.
const fn first_contact(memory: u64) -> Option<u32> {
    let answers = (memory >> PEAK_BITS) as u32;
    if memory & ((1 << PEAK_BITS) - 1) == 0 {
        Some(answers)
    } else {
        None
    }
}

impl Declared {
    pub(crate) const fn paced(&self) -> PacedSettings {
        self.otherwise
    }

    pub(crate) const fn with_paced(self, otherwise: PacedSettings) -> Self {
        Self { otherwise, ..self }
    }

    pub(crate) const fn spend(&self) -> Spend {
        self.spend
    }

    pub(crate) const fn first(&self) -> u32 {
        self.first
    }

    /// Whether nothing has been heard of the service.
    pub(crate) const fn is_first_contact(state: State) -> bool {
        state.is_engaged() && first_contact(state.memory()).is_some()
    }

    /// Whether it limits as good as nothing.
    pub(crate) fn is_free(&self, state: State) -> bool {
        self.otherwise.start().is_none() && state.memory() == self.unlimited()
    }

    /// The memory of a paced law that limits to its ceiling, or as good as nothing.
    fn unlimited(&self) -> u64 {
        let rate = self.otherwise.start().unwrap_or(Rate::MAX);
        super::paced::started(&self.otherwise, rate)
    }
}

impl Law for Declared {
    const COUNTS_THROTTLES: bool = false;
    const MOVES_BY_ITSELF: bool = true;

    fn burst(&self) -> u64 {
        self.otherwise.burst()
    }

    fn initial(&self) -> Option<u64> {
        if self.first == 0 {
            return Some(self.unlimited());
        }
        Some(0) // no answer yet
    }

    fn held(&self) -> Option<u64> {
        Some(self.unlimited())
    }

    fn first_reading(&self, sum: u64) -> (u128, u64) {
        self.otherwise.first_reading(sum)
    }

    fn rate(
        &self,
        state: State,
        now: u64,
        reading: u128,
        time_to_peak: impl Fn(Rate) -> u64,
    ) -> Rate {
        match first_contact(state.memory()) {
            Some(answers) => {
                let slow = Rate::from_ratio(self.first, SECOND.saturating_mul(10));
                slow.times_two_to(answers)
            }
            None => self.otherwise.rate(state, now, reading, time_to_peak),
        }
    }

    fn steady_until(&self, state: State, now: u64, rate: Rate, reading: u128) -> u64 {
        self.otherwise.steady_until(state, now, rate, reading)
    }

    fn turn(
        &self,
        reading: u128,
        sum: impl Fn() -> u64,
        state: State,
        now: u64,
        sent: u64,
    ) -> Window {
        let window = self.otherwise.turn(reading, sum, state, now, sent);
        if Self::is_first_contact(state) {
            return Window {
                counted: Some(window.counted.unwrap_or(Rate::ZERO)),
                end: now,
                ..window
            };
        }
        window
    }

    fn window_end(&self, reading: u128) -> u64 {
        self.otherwise.window_end(reading)
    }

    fn after_window(
        &self,
        state: State,
        now: u64,
        rate: Rate,
        counted: Counted,
    ) -> Option<Decision> {
        if let Some(answers) = first_contact(state.memory()) {
            let answers = answers.saturating_add(1);
            let memory = if answers < ANSWERS {
                u64::from(answers) << PEAK_BITS
            } else {
                self.unlimited()
            };
            return Some(Decision::Limit { since: now, memory });
        }
        match self.otherwise.after_window(state, now, rate, counted) {
            // It goes on limiting, so that what is declared holds: to nothing that matters.
            Some(Decision::End) => Some(Decision::Limit {
                since: now,
                memory: self.unlimited(),
            }),
            decision => decision,
        }
    }

    fn after_throttle(&self, state: State, throttled: &Throttled) -> Option<Decision> {
        // To the paced law this is the first throttle: what limits to nothing that matters, or by
        // first contact, is not of its making.
        let unseen = self.is_free(state) || first_contact(state.memory()).is_some();
        let state = if unseen { State::NONE } else { state };
        self.otherwise.after_throttle(state, throttled)
    }

    fn looks_at_each(&self, state: State) -> bool {
        first_contact(state.memory()).is_none() && self.otherwise.looks_at_each(state)
    }

    fn after_response(&self, state: State, now: u64, sent: u64) -> Option<Decision> {
        if first_contact(state.memory()).is_some() {
            return None;
        }
        self.otherwise.after_response(state, now, sent)
    }

    fn restarted(&self, counted: Counted, now: u64) -> Option<(u128, u64)> {
        self.otherwise.restarted(counted, now)
    }

    fn shown(&self, state: State, counted: Counted, now: u64) -> Shown {
        self.otherwise.shown(state, counted, now)
    }

    fn is_at_start(&self, state: State, now: u64) -> bool {
        match first_contact(state.memory()) {
            Some(answers) => answers == 0,
            None => self.first == 0 && self.rate(state, now, 0, |_| 0) == Rate::MAX,
        }
    }

    fn to_word(&self) -> u128 {
        self.otherwise.to_word()
    }

    fn with_word(&self, word: u128) -> Self {
        self.with_paced(self.otherwise.with_word(word))
    }
}

#[cfg(test)]
mod tests;
