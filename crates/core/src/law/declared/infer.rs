//! What a service leaves untold: how a limit comes back, the length of its window, and the window's
//! end by the limiter's clock (rules 8 to 10).

use super::clock::unit;
use super::hear::{Hearing, ResetAt};
use super::ledger::{FINE, Kind, LONGEST_SPAN, Source, Within, amount, signed, to_u64};
use crate::fixed::SECOND;

/// The windows that services usually have.
const USUAL_WINDOWS: [u64; 4] = [SECOND, 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND];
/// A reset nearer than this says nothing about the length of a window.
pub(super) const SOON: u64 = 10 * SECOND;
/// After so many reports in a row whose reset no window can have, the limit is no window.
const MOVED: u8 = 3;
/// A window within `1 / NEAR` of a usual window is taken for the usual one.
const NEAR: u64 = 33;
/// With less than `1 / LITTLE` of a limit used, a report says little about the time that a refill
/// takes.
const LITTLE: u64 = 16;

/// Returns the usual window that is near `nanos`, or else `nanos`.
fn snapped(nanos: u64) -> u64 {
    let near = |usual: &&u64| usual.abs_diff(nanos) <= **usual / NEAR;
    USUAL_WINDOWS.iter().find(near).copied().unwrap_or(nanos)
}

impl Hearing<'_> {
    /// Returns when the limit is whole by the report.
    ///
    /// A service's clock may be off by a second. Of two resets so near, the later one counts until
    /// the window ends, if it is later by half a second. So three resets of a window do not make
    /// the window a refill.
    pub(super) fn reset_of(&self, window: Option<u64>) -> Option<Within> {
        let Self { told, next, .. } = self;
        // A window that was taken for over may last a second more.
        let later = if next.fresh && next.window >= SOON {
            SECOND
        } else {
            0
        };
        let window = window.or(next.told_window());
        let reset = next.clock.reset_of(told, window, later)?;
        let is_time = matches!(told.reset, Some(ResetAt::At(_))) && next.window >= SOON;
        let is_same = !next.fresh && next.resets();
        let near = Within {
            lo: reset.lo - signed(SECOND / 2),
            hi: reset.hi + signed(SECOND),
        };
        if is_time && is_same && !next.reset.meets(reset) && next.reset.meets(near) {
            return Some(next.reset);
        }
        Some(reset)
    }

    /// Returns `true` if the time to the reset falls by a thousand seconds in a second.
    pub(super) fn falls_by_millis(&self) -> bool {
        let Self { told, last, .. } = self;
        let Some(ResetAt::In(nanos)) = told.reset.filter(|_| last.resets()) else {
            return false;
        };
        let passed = i128::from(told.now.saturating_sub(last.at));
        let fallen = i128::from(last.reset.hi) - i128::from(told.now) - i128::from(nanos) + passed;
        let is_sure = passed > i128::from(last.seen.trip) * 16 && passed > i128::from(SECOND) / 4;
        let is_heard = last.first || !last.fresh;
        !last.clock.millis && is_heard && is_sure && (fallen / 1_000 - passed).abs() <= passed / 16
    }

    pub(super) const fn note_kind(&mut self) {
        let next = &mut self.next;
        if let Some(refills) = self.told.refills {
            next.kind_told = true;
            next.kind = match next.kind {
                _ if refills => Kind::Refill,
                Kind::Sliding => Kind::Sliding,
                _ => Kind::Window,
            };
        }
    }

    /// Notes the window that was told, or the shortest possible one.
    pub(super) fn note_window(&mut self, window: Option<u64>) {
        let (told, next) = (self.told, &mut self.next);
        if let Some(window) = window {
            (next.window, next.source) = (window, Source::Told);
            return;
        }
        let Some(reset) = self.reset.filter(|_| next.source != Source::Told) else {
            return;
        };
        if next.kind == Kind::Refill {
            return self.note_refill(reset);
        }
        // A window is at least as long as any time to its reset.
        let ahead = to_u64(i128::from(reset.lo) - i128::from(told.now));
        let known = next.source == Source::Learned;
        let longer = ahead > next.window + next.window / 16 + 2 * SECOND;
        if next.window == 0 || (longer && !known) || (longer && ahead > next.window * 2) {
            // A window that ends soon may have any length. For a refill of which little is used, an
            // exact reset gives the length.
            let used = next.limit.saturating_sub(told.remaining).max(1);
            let usual = USUAL_WINDOWS.iter().find(|usual| **usual + SECOND >= ahead);
            next.window = match (told.reset, usual) {
                (Some(ResetAt::In(nanos)), _)
                    if ahead < next.seen.trip * 2 && unit(nanos) == FINE =>
                {
                    let all = i128::from(nanos) * i128::from(next.limit) / i128::from(used);
                    snapped(to_u64(all).clamp(ahead.max(1), LONGEST_SPAN))
                }
                (_, Some(usual)) if ahead < SOON => *usual,
                _ => snapped(ahead),
            };
            next.source = Source::Guessed;
        }
    }

    /// Learns the window of a refill from the time that the used part needs to come back.
    fn note_refill(&mut self, reset: Within) {
        let (told, next) = (self.told, &mut self.next);
        let used = next.limit.saturating_sub(told.remaining).max(1);
        let whole = |nanos: i64| {
            let nanos = i128::from(nanos) - i128::from(told.now);
            let all = nanos.max(0) * i128::from(next.limit) / i128::from(used);
            to_u64(all).clamp(1, LONGEST_SPAN)
        };
        let (least, most) = (whole(reset.lo), whole(reset.hi));
        let fits = |window: &&u64| (least..=most).contains(*window);
        if fits(&&next.window) {
            return;
        }
        let is_much = used > next.limit / LITTLE;
        let mean = least / 2 + most / 2;
        if next.window == 0 || (is_much && next.source == Source::Guessed) {
            let usual = USUAL_WINDOWS.iter().find(fits).copied();
            next.window = usual.unwrap_or(mean);
            next.source = if is_much {
                Source::Learned
            } else {
                Source::Guessed
            };
        } else if is_much {
            let own = next.window;
            next.window = snapped(own - own / 4 + mean / 4).max(1);
        }
    }

    /// Tests whether the limit has windows. A window's reset is one instant until it is past, and
    /// the next is no sooner than a window later.
    pub(super) fn test(&mut self, reset: Within) {
        let (told, next) = (self.told, &mut self.next);
        if next.kind_told || !next.resets() {
            return;
        }
        // The reset may be a rounded time.
        let rough = match told.reset {
            Some(ResetAt::At(epoch)) => unit(epoch),
            _ => 0,
        };
        // A report of the window before says nothing about this window.
        let is_last = next.fresh && reset.hi <= signed(next.at) + 2 * signed(rough);
        let begun = is_last || signed(told.now) >= next.reset.lo - signed(rough);
        // A guessed window may be shorter, and so may one that was taken for a usual window, a
        // little.
        let near = signed(next.window / NEAR);
        let is_sooner = next.source > Source::Guessed && next.reset.is_after(reset.moved(near));
        let moved = !next.reset.meets(reset) && (!next.fresh || is_sooner);
        if begun || !moved {
            let half = signed(next.window / 2);
            if (next.fresh && !moved) || reset.is_after(next.reset.moved(half)) {
                next.moved = 0;
            }
            return;
        }
        next.moved += 1;
        if next.moved < MOVED {
            return;
        }
        next.moved = 0;
        // The time that a refill needs to be whole is in proportion to what is used.
        let used = next.limit.saturating_sub(told.remaining);
        let ahead = i128::from(reset.hi) - i128::from(told.now);
        let refill = i128::from(next.window) * i128::from(used) / i128::from(next.limit.max(1));
        // A guess may be too long, but the reset of a busy refill moves before it is reached.
        let knows = next.source != Source::Guessed || next.fresh;
        if knows && ahead * 2 < refill {
            next.kind = Kind::Sliding;
            return;
        }
        next.kind = Kind::Refill;
        if next.source != Source::Told {
            next.window = 0;
            self.note_refill(reset);
        }
    }

    /// Returns `true` if so much more is left than by the last report that a window must have begun
    /// in between. Only for limits whose resets are told too roughly to show this.
    pub(super) fn has_risen(&self) -> bool {
        let Self { told, next, .. } = self;
        let rough = self.is_rough() && next.source > Source::Guessed;
        let least = amount((next.limit / 4).max(next.seen.heaviest * 2));
        let sent = amount(self.sent_after(next.position).max(0).unsigned_abs());
        let more = amount(told.remaining) - i128::from(next.left) + sent;
        rough && !next.comes_back() && !next.fresh && more > least
    }

    /// If much more is left than by the last report, takes the time between the two for the reset.
    pub(super) fn note_rise(&mut self) -> bool {
        let risen = self.has_risen();
        if risen {
            self.open(self.next.at.saturating_sub(self.next.seen.trip));
            self.next.rolled = self.next.position;
        }
        risen
    }

    /// Notes that a window has begun between `from` and the report.
    pub(super) fn open(&mut self, from: u64) {
        let begun = Within {
            lo: signed(from),
            hi: signed(self.told.now),
        };
        self.next.reset = begun.moved(signed(self.next.window));
    }

    /// Returns `true` if resets are told too roughly to show when a window ends.
    pub(super) fn is_rough(&self) -> bool {
        let is_wide = |reset: Within| reset.width() >= self.next.window / 8;
        self.reset.is_some_and(is_wide)
    }

    /// Learns the window of a service that declares none from the distance of two resets. The
    /// window is no longer than that distance, if the second reset brought back all that was used.
    pub(super) fn learn_window(&mut self, reset: Within) {
        let since = self.sent_after(self.next.rolled).max(0).unsigned_abs();
        let Self {
            told, next, last, ..
        } = self;
        let is_window = next.resets();
        if next.source == Source::Told || !is_window {
            return;
        }
        // The reset as it was before the roll, which may have gone by a guess.
        let before = if last.fresh {
            last.reset.moved(-signed(last.window))
        } else {
            last.reset
        };
        if before.meets(reset) || signed(told.now) < before.lo {
            return;
        }
        let used = next.limit.saturating_sub(told.remaining);
        let is_whole = used <= since.saturating_add(next.limit / 8).saturating_add(1);
        let wide = before.width() + reset.width();
        let apart = i128::from(reset.lo) - i128::from(before.hi);
        let distance = to_u64(apart + i128::from(wide / 2));
        // A window that begins with a request may be shorter than the distance.
        let ahead = to_u64(i128::from(reset.lo) - i128::from(told.now));
        let longest = if next.source == Source::Guessed {
            ahead * 2 + 2 * SECOND
        } else {
            next.window - next.window / 8
        };
        if is_whole && distance > FINE && distance <= longest {
            let near = |usual: &&u64| usual.abs_diff(distance) <= wide / 2 + **usual / NEAR;
            let usual = USUAL_WINDOWS.iter().find(near).copied();
            next.window = usual.unwrap_or(distance);
            next.source = Source::Learned;
        }
    }
}
