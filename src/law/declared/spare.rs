//! What a declared limit leaves over for background: what an even pace would have used and the
//! foreground did not.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "amounts and times are below 2⁶², spans below 2⁵⁶, and products are made in 128 bits"
)]

use super::ledger::{Kind, Ledger, UNIT, amount, to_u64};

/// Of a limit that comes back all the time this part is left alone, in eighths. A client alone
/// comes to rest at a half of it: above that background would starve.
const LEFT_ALONE: i128 = 3;

impl Ledger {
    /// Returns the whole tokens that background may have at `now` with `sent` sent, if `promised`
    /// tokens belong to requests that have not gone yet.
    pub(crate) fn spare(&self, now: u64, sent: u64, promised: u64) -> u64 {
        if now < self.pause {
            return 0;
        }
        let this = self.rolled(now, sent).unwrap_or(*self);
        to_u64((this.free(now, sent, promised) - this.left_alone(now)) / UNIT)
    }

    /// Returns the nanoseconds until background may have `tokens`, if the foreground sends nothing
    /// meanwhile; 0 if it may.
    pub(crate) fn until_spare(&self, now: u64, sent: u64, promised: u64, tokens: u64) -> u64 {
        let paused = self.pause.saturating_sub(now);
        let this = self.rolled(now, sent).unwrap_or(*self);
        let (limit, window) = (amount(this.limit).max(1), i128::from(this.window));
        let free = this.free(now, sent, promised) - amount(tokens);
        // The even line falls by the limit in a window, and goes on where the next one begins.
        let even = this.resets_at() - i128::from(now) - free * window / limit;
        let back = (this.refill_left() - free) * window / limit;
        let wait = match this.kind {
            Kind::Window => even,
            Kind::Refill | Kind::Sliding => back,
            Kind::Unknown => even.min(if back > 0 { even } else { 0 }),
        };
        to_u64(wait).max(paused)
    }

    /// Returns what is left and promised to no request.
    fn free(&self, now: u64, sent: u64, promised: u64) -> i128 {
        let (level, _) = self.level(now, sent);
        level - self.kept_back() - amount(promised)
    }

    /// Returns what background leaves alone. Of a limit whose kind is not found out yet it is the
    /// lesser of the two: what is hardly used is never found out.
    fn left_alone(&self, now: u64) -> i128 {
        match self.kind {
            Kind::Window => self.even_line(now),
            Kind::Refill | Kind::Sliding => self.refill_left(),
            Kind::Unknown => self.even_line(now).min(self.refill_left()),
        }
    }

    fn refill_left(&self) -> i128 {
        amount(self.limit) * LEFT_ALONE / 8
    }

    /// Returns what would be left of the window at an even pace.
    fn even_line(&self, now: u64) -> i128 {
        let rest = (self.resets_at() - i128::from(now)).clamp(0, i128::from(self.window));
        amount(self.limit) * rest / i128::from(self.window.max(1))
    }

    fn resets_at(&self) -> i128 {
        if self.reset.is_known() {
            i128::from(self.reset.lo)
        } else {
            i128::from(self.at) + i128::from(self.window)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;
    use crate::law::declared::ledger::{Source, Within};

    /// 600 a minute, of which `left` are left at 0.
    fn ledger(kind: Kind, left: u64) -> Ledger {
        let end = 60 * 1_000_000_000;
        Ledger {
            limit: 600,
            window: 60 * SECOND,
            source: Source::Told,
            kind,
            left: i64::try_from(amount(left)).unwrap_or(0),
            reset: Within { lo: end, hi: end },
            ..Ledger::default()
        }
    }

    #[test]
    fn of_a_window_the_even_line_is_left_alone() {
        let window = ledger(Kind::Window, 600);
        let spare = |seconds, sent, promised| window.spare(seconds * SECOND, sent, promised);
        assert_eq!([0, 6, 30].map(|at| spare(at, 0, 0)), [0, 60, 300]);
        assert_eq!(spare(30, 100, 50), 150, "sent, and promised to others");
        assert_eq!(spare(30, 400, 0), 0);
        assert_eq!(spare(59, 0, 0), 590);
        assert_eq!(spare(60, 600, 0), 0, "the next window begins");
    }

    #[test]
    fn a_wait_ends_where_the_even_line_has_fallen_far_enough() {
        let window = ledger(Kind::Window, 600);
        let until = |sent, tokens| window.until_spare(0, sent, 0, tokens);
        assert_eq!(until(0, 1), SECOND / 10);
        assert_eq!(until(300, 0), 30 * SECOND);
        assert_eq!(
            until(600, 1),
            60 * SECOND + SECOND / 10,
            "in the next window"
        );
        let later = until(100, 50);
        assert!(window.spare(later, 100, 0) >= 50 && window.spare(later - SECOND, 100, 0) < 50);
    }

    #[test]
    fn of_a_refill_three_eighths_are_left_alone() {
        for kind in [Kind::Refill, Kind::Sliding] {
            let refill = ledger(kind, 300);
            assert_eq!(refill.spare(0, 0, 0), 75);
            assert_eq!(refill.spare(0, 50, 25), 0);
            assert_eq!(refill.until_spare(0, 75, 0, 1), SECOND / 10);
        }
    }

    #[test]
    fn what_is_hardly_used_is_found_out() {
        let unknown = ledger(Kind::Unknown, 599);
        assert_eq!(unknown.spare(0, 0, 0), 374, "the lesser of the two");
        let late = ledger(Kind::Unknown, 100);
        assert_eq!(late.spare(57 * SECOND, 0, 0), 70);
    }

    #[test]
    fn a_pause_leaves_nothing_over() {
        let paused = Ledger {
            pause: SECOND,
            ..ledger(Kind::Window, 600)
        };
        assert_eq!(paused.spare(SECOND - 1, 0, 0), 0);
        assert_eq!(paused.spare(SECOND, 0, 0), 10);
        assert_eq!(paused.until_spare(0, 0, 0, 1), SECOND);
    }
}
