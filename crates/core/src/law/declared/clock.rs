//! The times that a service tells (rule 10).

use super::hear::{ResetAt, Told};
use super::ledger::{FINE, LONGEST_SPAN, Within, signed};
use crate::fixed::SECOND;

/// What is known about the clock of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The service's clock less the limiter's, if the service has told the time.
    pub(super) offset: Option<Within>,
    /// Whether the service tells spans in milliseconds rather than seconds.
    pub(super) millis: bool,
}

/// Returns the precision of a told span: a second if the span is whole seconds.
pub(super) const fn unit(nanos: u64) -> u64 {
    if nanos % SECOND == 0 { SECOND } else { FINE }
}

impl Clock {
    /// Notes the time of a report by the service's clock.
    pub(super) fn note(&mut self, told: &Told) {
        if let Some(date) = told.date {
            self.offset = Some(Within {
                lo: signed(date) - signed(told.now),
                hi: signed(date) + signed(SECOND) - signed(told.sent_at),
            });
        }
    }

    /// Returns the report with its time to the reset read in the service's unit.
    pub(super) fn in_seconds(&self, told: &Told) -> Told {
        let reset = told.reset.map(|reset| match reset {
            ResetAt::In(nanos) if self.millis => ResetAt::In(nanos / 1_000),
            reset => reset,
        });
        Told { reset, ..*told }
    }

    /// Returns when the limit is whole by a report, on the limiter's clock. A `window` without a
    /// reset ends when the service's clock shows a multiple of the window. A reset that is past may
    /// be later by `later`.
    pub(super) fn reset_of(&self, told: &Told, window: Option<u64>, later: u64) -> Option<Within> {
        let aligned = || {
            let (date, window) = (told.date?, window?);
            let whole = told.refills != Some(true) && window % SECOND == 0;
            whole.then(|| ResetAt::At(date - date % window + window))
        };
        match told.reset.or_else(aligned)? {
            // A reset that is past, or now, says nothing about the next one, and brings nothing
            // back.
            ResetAt::In(nanos) => (1..=LONGEST_SPAN).contains(&nanos).then(|| Within {
                lo: signed(told.sent_at) + signed(nanos) - signed(unit(nanos)),
                hi: signed(told.now) + signed(nanos) + signed(unit(nanos)),
            }),
            ResetAt::At(epoch) => {
                let offset = self.offset?;
                let here = Within {
                    lo: signed(epoch) - offset.hi,
                    hi: signed(epoch) - offset.lo,
                };
                let near = here.lo - signed(told.now) <= signed(LONGEST_SPAN);
                let resets = [here, here.moved(signed(later))].into_iter();
                let mut ahead = resets.filter(|reset| near && reset.hi > signed(told.now));
                ahead.next()
            }
        }
    }
}
