//! The declared law: for a client of a service that says in its responses what is left of its
//! limit.
//!
//! # What it promises
//!
//! * *Liveness.* If the service would let a waiting request go, and has asked for no pause, a
//!   request goes within two windows. Forgotten places, refused polls, lost reports and any weights
//!   do not change this. A report stops a client for an hour at most; then one request asks again.
//!   If nothing is left of a told window of up to a month, the client stops until the reset.
//! * *Safety.* Between two reports the client sends no more than what is left, less what is kept
//!   back, and one request an hour that asks again. In a window of an unchanged limit the client
//!   sends no more than what was left at the beginning, the first burst, and the sends in flight
//!   over the reset. The promise is for this client's sends, and needs true reports.
//! * *Accounting.* Each send counts once, whatever the order of reports, settlements and refusals.
//!   A debit may count twice until a later send is reported; a credit counts from then on.
//!
//! The closed loop in `fuzz/src/systems` plays random services against these promises. Its tests
//! hold 300 small systems to the promises. `ci/ablation.py` switches off each part of the rules
//! alone; the README beside this file has the costs.
//!
//! # Rules
//!
//! The code cites the rules by number. `L` is the limit, `W` its window, `left` what remained by
//! the last report, less what was sent since. The position of a send is the weight of all sends up
//! to it.
//!
//! 1. *First contact.* Before the first report a small burst of requests goes, whatever they weigh,
//!    and as many again every ten seconds. If no request has gone after twenty seconds, the next to
//!    ask goes. After the first answer without a report, the paced law decides until there is a
//!    report.
//! 2. *Who may go.* A request goes if its turn has come and it is not *barred*. A request is barred
//!    during a pause, or if `left` is less than its weight plus what is kept back. A `left` of
//!    31/32 of `L` that covers its weight is enough in any case. The comparison and the send are
//!    one swap of the last position. Tokens promised to others bar no request. A request above a
//!    shrunken limit goes when all of the limit is left.
//! 3. *What is left* is carried forward from the report. What was sent since is taken off, and so
//!    is what others are seen to take. What comes back is added: `L/W`, if the limit refills. What
//!    others take is foreseen for two trips on a refill and four in a window. Without that bound
//!    `left` would fall below zero, nothing would be sent, and no report could correct the number.
//! 4. *The pace* is the rate of turns: `σ^¾ · (left − kept − promised) / (time until the limit is
//!    whole)`. `σ` is this client's part of what is taken. Clients that read the same number come
//!    to equal parts. Where others are seen, a request is kept back, and another for each two of
//!    them, because they send between two sends of this client. *Promised* tokens were minted for
//!    requests that have not gone yet; tokens unclaimed throughout a window are forgotten. The
//!    first token of a window is there when the window begins. It is a whole token, unless others
//!    take more than a tenth of what this client takes.
//! 5. *No more than `L/W`* is the pace for two trips after the first report. Where the end of a
//!    window is not known to half a window, the most is 15/16 of `L/W`, since a window used up
//!    early costs two. Beside another limit that is not declared (rule 11) the most is `σ · L/W`,
//!    an eighth of it by `σ^¾`. What the other limit refused is left of this one, and would go in a
//!    burst.
//! 6. *A report counts by the order of sends.* After a reset only a report with a later reset, or
//!    of a request sent since, opens the new window. Once the new window is open, a report with the
//!    reset of the window before is late, whatever its order. A request that was sent first may
//!    reach the service last. So a report of an older send counts if it says less. A report of a
//!    later send that says more than the last one left says nothing new for two trips. `left` is
//!    never more than the limit. Where a refill has rolled (rule 7), a report counts if its request
//!    was sent since the last report.
//! 7. *A window without a report* rolls: at its reset all of the limit is left. Without a reset, or
//!    where the limit comes back little by little, the window ends a window length after the last
//!    report. What was sent before that report is then back. A limit that the service no longer
//!    tells, while it tells others, sets no pace but still bars.
//! 8. *Refill, window or sliding*: the service or the family of its headers tells the kind. If not,
//!    the resets show the kind. The reset of a window is one instant until it is past, and the next
//!    is no sooner than a window later. After three reports with another reset, the limit comes
//!    back little by little. The limit slides if the reset is sooner than half of the time that a
//!    refill of as much would need. A sliding limit is spread over a sixteenth of its window.
//! 9. *A window that is not told* is at least as long as any time to its reset. Such a window is at
//!    most the distance of two resets between which everything came back. The window of a refill is
//!    the time to its reset, times `L`, divided by what is used. Where resets are told to the
//!    second, a report of `L/4` more than the last one shows when a window began.
//! 10. *Clocks.* A reset at a time counts by the service's clock, from the last `Date`. The
//!     difference of the clocks is an interval, and so is every reset. The resets in all reports of
//!     a window are intersected, and the next window begins at the latest time that fits.
//! 11. *A throttle.* Nothing is sent for as long as the service asks, an hour at most. Reports say
//!     too much if the throttle's report left a quarter of the limit or less, and the service asks
//!     to wait until the reset. What was left is then kept back besides, a 256th less in each
//!     window. If more was left, there is another limit that is not declared: for ten windows the
//!     paced law's rate holds where it is lower. The same holds for a throttle without a report, if
//!     the last report is more than a window ago. The other limit may refuse a request that was
//!     sent within rule 5, ten seconds after the last pause. Then rule 5 does not help against that
//!     limit, and no longer holds for it.
//! 12. *Settled costs.* A debit counts as a send of as much now, unless a report of its request or
//!     a later one was taken. Such a report includes the true cost. A credit waits for the next
//!     report.
//! 13. *Reports are believed as far as what is seen agrees with them.* A reset that is past, or
//!     now, frees nothing. If two resets in a row bring nothing back, and resets are always near,
//!     the limit is given up for an hour, and the paced law decides. A time to the reset that falls
//!     by a thousand seconds a second is in milliseconds. If a window of a second or two had not
//!     begun where it was expected, windows begin with their first request, and end a window after
//!     its answer. Where resets are told that roughly, an answer with less than half left shows
//!     that the window has not begun. The window is then expected after as long again as it is
//!     late. Two resets by the service's clock that are a second apart are one, and the later
//!     counts. Requests count by their true costs where these are less than half of the estimates,
//!     this client is alone, and no request was refused because of it.

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

/// The declared law while nothing is declared: rule 1, then the paced law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    otherwise: PacedSettings,
    first: Option<u32>,
    spend: Spend,
    max_pause: Duration,
}

/// The memory before the first answer. No cut of the paced law has this memory.
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

    /// Returns how many requests go before the first report; 0 means all.
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

    /// Returns `true` if the state limits only to [`Rate::MAX`].
    pub(crate) fn is_free(&self, state: State) -> bool {
        self.otherwise.start().is_none() && state.memory() == self.unlimited()
    }

    /// Returns the memory of the paced law at its start. Without a rate to start at, it limits to
    /// [`Rate::MAX`].
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
            // To the paced law this is the first throttle. The paced law did not make a state that
            // limits to [`Rate::MAX`], or by first contact.
            return self.otherwise.decide(State::NONE, event);
        }
        if !is_first_contact {
            return self.otherwise.decide(state, event);
        }
        // The limiter goes on limiting, to [`Rate::MAX`], so that declared limits hold.
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
