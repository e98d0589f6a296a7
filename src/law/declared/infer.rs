//! What a service leaves untold: how a limit comes back, how long its window is, and when it ends
//! by the limiter's clock (rules 8 to 10).

#![allow(
    clippy::arithmetic_side_effects,
    reason = "amounts and times are below 2⁶², spans below 2⁵⁶, and products are made in 128 bits"
)]

use super::hear::{ResetAt, Told};
use super::ledger::{
    FINE, Kind, LONGEST_SPAN, Ledger, Source, Within, after, amount, signed, to_u64,
};
use crate::fixed::SECOND;

/// Windows that services have.
const USUAL_WINDOWS: [u64; 4] = [SECOND, 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND];
/// A reset that is nearer than this says nothing of the length of a window.
pub(super) const SOON: u64 = 10 * SECOND;
/// So many reports in a row whose reset is none that a window can have say that it is no window.
const MOVED: u8 = 3;
/// A window is a usual one if it is within this part of it.
const NEAR: u64 = 33;
/// A limit of which less than this part is used says little of how long a refill takes.
const LITTLE: u64 = 16;

/// Returns the window among the usual ones that `nanos` is nearly, or itself.
fn snapped(nanos: u64) -> u64 {
    let near = |usual: &&u64| usual.abs_diff(nanos) <= **usual / NEAR;
    USUAL_WINDOWS.iter().find(near).copied().unwrap_or(nanos)
}

/// Returns how exactly a service tells a span: to the second if it is whole seconds.
const fn unit(nanos: u64) -> u64 {
    if nanos % SECOND == 0 { SECOND } else { FINE }
}

impl Ledger {
    pub(super) fn note_date(&mut self, date: u64, told: &Told) {
        self.offset = Within {
            lo: signed(date) - signed(told.now),
            hi: signed(date) + signed(SECOND) - signed(told.sent_at),
        };
        self.offset_known = true;
    }

    /// Returns when the limit is whole by a report, on the limiter's clock. A window without a
    /// reset ends when the service's clock shows a multiple of it.
    pub(super) fn reset_of(&self, told: &Told, window: Option<u64>) -> Option<Within> {
        let window = window.or(self.told_window());
        let aligned = || {
            let (date, window) = (told.date?, window?);
            let whole = told.refills != Some(true) && window % SECOND == 0;
            whole.then(|| ResetAt::At(date - date % window + window))
        };
        match told.reset.or_else(aligned)? {
            // One that is past, or now, says nothing of the next: nothing is back because of it.
            ResetAt::In(nanos) if (1..=LONGEST_SPAN).contains(&nanos) => Some(Within {
                lo: signed(told.sent_at) + signed(nanos) - signed(unit(nanos)),
                hi: signed(told.now) + signed(nanos) + signed(unit(nanos)),
            }),
            ResetAt::At(epoch) if self.offset_known => {
                let here = Within {
                    lo: signed(epoch) - self.offset.hi,
                    hi: signed(epoch) - self.offset.lo,
                };
                // A window that was taken to be over may last a second more.
                let later = if self.fresh && self.window >= SOON {
                    SECOND
                } else {
                    0
                };
                let ahead = |reset: &Within| reset.hi > signed(told.now);
                let near = here.lo - signed(told.now) <= signed(LONGEST_SPAN);
                let reset = [here, here.moved(signed(later))].into_iter().find(ahead);
                reset.filter(|_| near)
            }
            _ => None,
        }
    }

    /// Returns the report as if all its spans were told in seconds.
    pub(super) fn in_seconds(&self, told: &Told) -> Told {
        let reset = told.reset.map(|reset| match reset {
            ResetAt::In(nanos) if self.millis => ResetAt::In(nanos / 1_000),
            reset => reset,
        });
        Told { reset, ..*told }
    }

    /// Returns `true` if the time to the reset falls by a thousand seconds in a second.
    pub(super) fn falls_by_millis(&self, told: &Told) -> bool {
        let Some(ResetAt::In(nanos)) = told.reset.filter(|_| self.reset.is_known()) else {
            return false;
        };
        let passed = i128::from(told.now.saturating_sub(self.at));
        let fallen = i128::from(self.reset.hi) - i128::from(told.now) - i128::from(nanos) + passed;
        let is_sure = passed > i128::from(self.trip) * 16 && passed > i128::from(SECOND) / 4;
        let is_heard = (self.first || !self.fresh) && !self.comes_back();
        !self.millis && is_heard && is_sure && (fallen / 1_000 - passed).abs() <= passed / 16
    }

    /// Returns the reset of a report. A service's clock may be off by a second: of two resets by it
    /// that are so near the later one counts until the window ends, if it is later by half of that.
    /// So no three of a window move it.
    pub(super) fn steadied(&self, told: &Told, reset: Within) -> Within {
        let is_time = matches!(told.reset, Some(ResetAt::At(_))) && self.window >= SOON;
        let is_same = !self.fresh && !self.comes_back();
        let near = Within {
            lo: reset.lo - signed(SECOND / 2),
            hi: reset.hi + signed(SECOND),
        };
        if is_time
            && is_same
            && self.reset.is_known()
            && !self.reset.meets(reset)
            && self.reset.meets(near)
        {
            return self.reset;
        }
        reset
    }

    pub(super) fn note_kind(&mut self, told: &Told) {
        if let Some(refills) = told.refills {
            self.kind_told = true;
            self.kind = match self.kind {
                _ if refills => Kind::Refill,
                Kind::Sliding => Kind::Sliding,
                _ => Kind::Window,
            };
        }
    }

    /// Notes the window that was told, or the least that there can be.
    pub(super) fn note_window(&mut self, window: Option<u64>, reset: Option<Within>, told: &Told) {
        if let Some(window) = window {
            (self.window, self.source) = (window, Source::Told);
            return;
        }
        let Some(reset) = reset else { return };
        if self.source == Source::Told {
            return;
        }
        if self.kind == Kind::Refill {
            self.note_refill(told, reset);
            return;
        }
        // A window is at least as long as any time to its reset.
        let ahead = to_u64(i128::from(reset.lo) - i128::from(told.now));
        let known = self.source == Source::Learned;
        let longer = ahead > self.window + self.window / 16 + 2 * SECOND;
        if self.window == 0 || (longer && !known) || (longer && ahead > self.window * 2) {
            // One that ends soon may be of any length. If it is a refill of which little is used,
            // an exact reset says all.
            let used = self.limit.saturating_sub(told.remaining).max(1);
            let usual = USUAL_WINDOWS.iter().find(|usual| **usual + SECOND >= ahead);
            self.window = match (told.reset, usual) {
                (Some(ResetAt::In(nanos)), _) if ahead < self.trip * 2 && unit(nanos) == FINE => {
                    let all = i128::from(nanos) * i128::from(self.limit) / i128::from(used);
                    snapped(to_u64(all).clamp(ahead.max(1), LONGEST_SPAN))
                }
                (_, Some(usual)) if ahead < SOON => *usual,
                _ => snapped(ahead),
            };
            self.source = Source::Guessed;
        }
    }

    /// Learns how long a refill takes by the time that what is used needs to come back.
    fn note_refill(&mut self, told: &Told, reset: Within) {
        let used = self.limit.saturating_sub(told.remaining).max(1);
        let whole = |nanos: i64| {
            let nanos = i128::from(nanos) - i128::from(told.now);
            let all = nanos.max(0) * i128::from(self.limit) / i128::from(used);
            to_u64(all).clamp(1, LONGEST_SPAN)
        };
        let (least, most) = (whole(reset.lo), whole(reset.hi));
        let fits = |window: &&u64| (least..=most).contains(*window);
        if fits(&&self.window) {
            return;
        }
        if self.window == 0 || (used > self.limit / LITTLE && self.source == Source::Guessed) {
            let usual = USUAL_WINDOWS.iter().find(fits).copied();
            self.window = usual.unwrap_or(least / 2 + most / 2);
            self.source = if used > self.limit / LITTLE {
                Source::Learned
            } else {
                Source::Guessed
            };
        } else if used > self.limit / LITTLE {
            let (own, told) = (self.window, least / 2 + most / 2);
            self.window = snapped(own - own / 4 + told / 4).max(1);
        }
    }

    /// Tests by a report whether the limit has windows: the reset of one is one instant until it is
    /// past, and the next is no sooner than a window later.
    pub(super) fn test(&mut self, told: &Told, reset: Within) {
        if self.kind_told || self.comes_back() || !self.reset.is_known() {
            return;
        }
        // A time may be rounded up.
        let rough = match told.reset {
            Some(ResetAt::At(epoch)) => unit(epoch),
            _ => 0,
        };
        // A report of the window before says nothing of this one.
        let is_last = self.fresh && reset.hi <= signed(self.at) + 2 * signed(rough);
        let begun = is_last || signed(told.now) >= self.reset.lo - signed(rough);
        // One that is a guess may be shorter, and one that was taken for a usual one a little.
        let near = signed(self.window / NEAR);
        let is_sooner = self.source > Source::Guessed && self.reset.is_after(reset.moved(near));
        let moved = !self.reset.meets(reset) && (!self.fresh || is_sooner);
        if begun || !moved {
            let half = signed(self.window / 2);
            if (self.fresh && !moved) || reset.is_after(self.reset.moved(half)) {
                self.moved = 0;
            }
            return;
        }
        self.moved += 1;
        if self.moved < MOVED {
            return;
        }
        self.moved = 0;
        // What a refill needs to be whole is in proportion to what is used.
        let used = self.limit.saturating_sub(told.remaining);
        let ahead = i128::from(reset.hi) - i128::from(told.now);
        let refill = i128::from(self.window) * i128::from(used) / i128::from(self.limit.max(1));
        // A guess may be too long, but the reset of a busy refill moves before it is reached.
        let knows = self.source != Source::Guessed || self.fresh;
        if knows && ahead * 2 < refill {
            self.kind = Kind::Sliding;
            return;
        }
        self.kind = Kind::Refill;
        if self.source != Source::Told {
            self.window = 0;
            self.note_refill(told, reset);
        }
    }

    /// Returns `true` if so much more is left than by the last report that a window must have begun
    /// between the two, of a limit whose resets are told too roughly to show that.
    pub(super) fn has_risen(&self, told: &Told, reset: Option<Within>) -> bool {
        let rough = self.is_rough(reset) && self.source > Source::Guessed;
        let least = amount((self.limit / 4).max(self.heaviest * 2));
        rough && !self.comes_back() && !self.fresh && self.more(told) > least
    }

    /// Takes the time between the last report and one that says much more for the reset.
    pub(super) fn note_rise(&mut self, told: &Told, reset: Within) -> bool {
        if !self.has_risen(told, Some(reset)) {
            return false;
        }
        self.open(told, self.at.saturating_sub(self.trip));
        self.rolled = self.position;
        true
    }

    /// Notes that a window has begun between `from` and a report.
    pub(super) fn open(&mut self, told: &Told, from: u64) {
        self.reset = Within {
            lo: signed(from),
            hi: signed(told.now),
        }
        .moved(signed(self.window));
    }

    /// Returns `true` if resets are told too roughly to show when a window ends.
    pub(super) fn is_rough(&self, reset: Option<Within>) -> bool {
        reset.is_some_and(|reset| reset.width() >= self.window / 8)
    }

    /// Learns the window of a service that declares none by the distance of two resets: it is no
    /// longer than that, if all that was used before the second came back at it.
    pub(super) fn learn_window(&mut self, last: &Self, told: &Told, reset: Within) {
        let is_window = !self.comes_back() && self.reset.is_known();
        if self.source == Source::Told || !is_window {
            return;
        }
        // As it was before the roll, if that went by a guess.
        let before = if last.fresh {
            last.reset.moved(-signed(last.window))
        } else {
            last.reset
        };
        if before.meets(reset) || signed(told.now) < before.lo {
            return;
        }
        let used = self.limit.saturating_sub(told.remaining);
        let since = after(told.order, self.rolled).max(0).unsigned_abs();
        let is_whole = used <= since.saturating_add(self.limit / 8).saturating_add(1);
        let wide = before.width() + reset.width();
        let apart = i128::from(reset.lo) - i128::from(before.hi);
        let distance = to_u64(apart + i128::from(wide / 2));
        // One that begins with a request may be shorter than the distance.
        let ahead = to_u64(i128::from(reset.lo) - i128::from(told.now));
        let longest = if self.source == Source::Guessed {
            ahead * 2 + 2 * SECOND
        } else {
            self.window - self.window / 8
        };
        if is_whole && distance > FINE && distance <= longest {
            let near = |usual: &&u64| usual.abs_diff(distance) <= wide / 2 + **usual / NEAR;
            let usual = USUAL_WINDOWS.iter().find(near).copied();
            self.window = usual.unwrap_or(distance);
            self.source = Source::Learned;
        }
    }
}
