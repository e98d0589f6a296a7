//! The declared law: a client of a service that says in its responses what is left of its limit.
//!
//! # What it promises
//!
//! * *Liveness.* If the service would let a waiting request go, and has asked for no pause, one
//!   goes within two windows: whatever places are forgotten, polls refused, reports lost or weights
//!   asked for. A report stops a client for an hour at most; then one request asks again. A
//!   report that nothing is left of a told window of a month at most stops it until the reset.
//! * *Safety.* Between two reports no more goes than what is left, less what is kept back; and one
//!   request an hour that asks again. In a window of an unchanged limit no more goes than it had at
//!   its beginning, the first burst, and what was in flight over the reset. This needs reports that
//!   are true, and holds for what this client sends.
//! * *Accounting.* Each send counts once, whatever the order of reports, settlements and refusals.
//!   A debit may count twice until a later send is reported, and a credit counts when it is.
//!
//! The closed loop in `fuzz/src/systems` plays random services against these three. Its tests
//! hold 300 small systems to them. `ci/ablation.py` switches each part of the rules off alone; the
//! README beside this file says what it costs to do without.
//!
//! # Rules
//!
//! The code cites them by number. `L` is the limit, `W` its window, `left` what remained by the
//! last report, less what was sent since. Sends have positions: the weight of all sends up to them.
//!
//! 1. *First contact.* Before the first report a small burst of requests goes, whatever they weigh,
//!    and as many again every ten seconds. If nothing has gone after twenty, the next to ask goes.
//!    The first answer without a report ends that: the paced law decides until there is a report.
//! 2. *Who may go.* A request goes if its turn has come and it is not *barred*: `left` is at least
//!    its weight and what is kept back, or its weight and 31/32 of `L`, and no pause is in force.
//!    The comparison and the send are one swap of the last position. What is promised to others
//!    bars no request, and one above a limit that has shrunk goes when all of it is left.
//! 3. *What is left* is carried forward by what was sent since the report, by what comes back
//!    (`L/W`, if the limit refills), and by what others are seen to take. Others are foreseen for
//!    two trips on a refill and four in a window: without a bound, what is left would fall below
//!    zero, nothing would be sent, and no report could correct it.
//! 4. *The pace* decides whose turn it is: `σ^¾ · (left − kept − promised) / (time until the limit
//!    is whole)`. `σ` is this client's part of what is taken. Clients that read the same number
//!    come to equal parts. A request is kept back where others are seen, and another one for each
//!    two of them, because they send between two sends of this client. *Promised* are tokens that
//!    were minted for requests which have not gone yet; what was unclaimed throughout a window is
//!    forgotten. The first token of a window is there when it begins: a whole one, unless others
//!    take more than a tenth of what this client takes.
//! 5. *No more than `L/W`* for two trips after the first report. Where it is not known within half
//!    a window when the window ends: 15/16 of `L/W`, since one that is used up early costs two
//!    windows. Beside another limit that is not declared (rule 11) `σ · L/W`, an eighth of it by
//!    `σ^¾`: what was refused is left, and would go in a burst.
//! 6. *A report counts by the order of sends.* After a reset only a later reset, or a request sent
//!    since, opens the new window. Once that is heard of, a reset that was to come a window sooner
//!    is late, whatever its order. A request that was sent first may come to the service last. So a
//!    report of an older send counts if it says less. One of a later send that says more than the
//!    last one left says nothing new for two trips. More than the limit is never left.
//!    Where a refill has rolled (rule 7), reports on what was sent since the last one count.
//! 7. *A window without a report* rolls: at its reset all of it is left. Where there is no reset,
//!    or the limit comes back little by little, it ends a window after the last report, and what
//!    was sent before that is back. A limit that is not told any more while others are sets no
//!    pace, and still bars.
//! 8. *Refill, window or sliding* is told by the service or the family of its headers. If not, the
//!    reset says it: that of a window is one instant until it is past, and the next is no sooner
//!    than a window later. Three reports with another reset, and the limit comes back little by
//!    little; it slides if the reset is sooner than half of what a refill of as much would need. A
//!    sliding limit is spread over a sixteenth of its window.
//! 9. *A window that is not told* is at least any time to its reset, and at most the distance of
//!    two resets between which everything came back. A refill is whole in the time to its reset,
//!    times `L` by what is used. Where resets are told to the second, a report that says a quarter
//!    of `L` more than the last one shows when a window began.
//! 10. *Clocks.* A reset at a time counts by the service's own clock, from the last `Date`. The
//!     difference of the clocks is an interval, and so is every reset: what all reports of a window
//!     say of it is intersected, and the next begins at the latest time that fits.
//! 11. *A throttle.* Nothing is sent for as long as the service asks, an hour at most. If its
//!     report says that a quarter of the limit or less was left, and the service asks to wait until
//!     the reset, reports say too much, and that much more is kept back; a 256th less in each
//!     window. If more was left, there is another limit that is not declared: for ten windows the
//!     rate is the paced law's where that is lower. The same holds if it came without a report, and
//!     the last one is more than a window ago. If a request that was sent at no more than rule 5
//!     allows, ten seconds after the last pause, is refused by that other limit all the same, rule
//!     5 does not help against it and no longer holds for it.
//! 12. *Settled costs.* A debit is a send of as much now, unless a report of its request or a later
//!     one was taken: that has the true cost in it. A credit waits for the next report.
//! 13. *What is told is believed as far as what is seen agrees with it.* A reset that is past, or
//!     now, frees nothing. If two resets in a row bring nothing back, and any reset is soon, the
//!     limit is given up for an hour, and the paced law decides. A reset that falls by a thousand
//!     seconds a second is in milliseconds. If a window of a second or two had not begun where it
//!     was expected, windows begin with their first request, and end a window after its answer.
//!     Where resets are told that roughly, an answer by which less than half is left shows that the
//!     window has not begun, and the window is expected after as long as it is late. Two resets by
//!     the service's clock that are a second apart are one, and the later counts. Requests count by
//!     what they cost where that is less than half of their estimates, this client is alone, and
//!     none was refused because of it.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "amounts and times are below 2⁶², spans below 2⁵⁶, and products are made in 128 bits"
)]

mod clock;
mod hear;
mod infer;
mod ledger;
mod level;
mod plan;
mod report;
mod seen;
mod settings;
mod spare;
mod throttle;
mod words;

pub use report::{Dimension, LimitName, LimitReport, LimitReports, Observed, Reset};
pub use settings::{DeclaredSettings, Spend};

pub(crate) use hear::{ResetAt, Told};
pub(crate) use ledger::Ledger;
pub(crate) use level::Standing;
pub(crate) use plan::Plan;
pub(crate) use throttle::Refused;

use core::time::Duration;

use super::paced::PacedSettings;
use super::{Counted, Decision, Event, Law, Past, Quiet, Shown, State, Unthrottled, Window};
use crate::fixed::{Rate, SECOND};

/// The declared law as long as nothing is declared: rule 1, and the paced law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    otherwise: PacedSettings,
    first: Option<u32>,
    spend: Spend,
    max_pause: Duration,
}

/// The memory while no answer has come: no cut of the paced law leaves it.
const FIRST_CONTACT: u64 = 0;

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

    pub(crate) const fn max_pause(&self) -> Duration {
        self.max_pause
    }

    /// Returns how many requests go before the first report, and 0 for all.
    pub(crate) const fn first(&self) -> u32 {
        match (self.first, self.otherwise.highest()) {
            (Some(requests), _) => requests,
            (None, Some(_)) => 0,
            (None, None) => 1,
        }
    }

    /// Returns `true` if nothing has been heard of the service.
    pub(crate) const fn is_first_contact(state: State) -> bool {
        state.is_engaged() && state.memory() == FIRST_CONTACT
    }

    /// Returns `true` if it limits as good as nothing.
    pub(crate) fn is_free(&self, state: State) -> bool {
        self.otherwise.start().is_none() && state.memory() == self.unlimited()
    }

    /// The memory of a paced law that limits to its ceiling, or as good as nothing.
    fn unlimited(&self) -> u64 {
        super::paced::started(&self.otherwise)
    }
}

impl Law for Declared {
    fn moves_with_time(&self) -> bool {
        true
    }

    fn burst(&self) -> u64 {
        self.otherwise.burst()
    }

    fn unthrottled(&self) -> Unthrottled {
        let unlimited = self.unlimited();
        let start = if self.first() == 0 {
            unlimited
        } else {
            FIRST_CONTACT
        };
        Unthrottled {
            start: Some(start),
            later: Some(unlimited),
        }
    }

    fn begin(&self, last: Option<u128>, sum: u64, now: u64) -> (u128, u64) {
        self.otherwise.begin(last, sum, now)
    }

    fn turn(
        &self,
        reading: u128,
        cycle: u128,
        counts: impl Fn() -> (u64, u64),
        state: State,
        now: u64,
        sent: u64,
    ) -> Window {
        let window = self
            .otherwise
            .turn(reading, cycle, counts, state, now, sent);
        if Self::is_first_contact(state) {
            return Window {
                counted: window.counted.or(Some(Past {
                    began: now,
                    ..Past::default()
                })),
                end: now,
                ..window
            };
        }
        window
    }

    fn rate(&self, state: State, now: u64, reading: Option<u128>) -> Rate {
        if Self::is_first_contact(state) {
            return Rate::from_ratio(self.first(), SECOND.saturating_mul(10));
        }
        self.otherwise.rate(state, now, reading)
    }

    fn quiet(&self, state: State, now: u64, rate: Rate, reading: u128) -> Quiet {
        let quiet = self.otherwise.quiet(state, now, rate, reading);
        Quiet {
            each: quiet.each && !Self::is_first_contact(state),
            ..quiet
        }
    }

    fn decide(&self, state: State, event: &Event<'_>) -> Option<Decision> {
        let is_first_contact = Self::is_first_contact(state);
        if event.throttled > 0 && (is_first_contact || self.is_free(state)) {
            // To the paced law this is the first throttle: what limits to nothing that matters, or
            // by first contact, is not of its making.
            return self.otherwise.decide(State::NONE, event);
        }
        if !is_first_contact {
            return self.otherwise.decide(state, event);
        }
        // It goes on limiting, so that what is declared holds: to nothing that matters.
        event.past.map(|_| Decision::Limit {
            since: event.now,
            memory: self.unlimited(),
            cycle: None,
        })
    }

    fn shown(&self, state: State, counted: Counted, now: u64) -> Shown {
        let shown = self.otherwise.shown(state, counted, now);
        Shown {
            is_peak_seen: shown.is_peak_seen && !Self::is_first_contact(state),
            ..shown
        }
    }

    fn is_at_start(&self, state: State, now: u64) -> bool {
        Self::is_first_contact(state)
            || (self.first() == 0 && self.rate(state, now, None) == Rate::MAX)
    }
}

#[cfg(test)]
mod tests;
