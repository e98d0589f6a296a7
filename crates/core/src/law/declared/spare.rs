//! What a declared limit leaves for background: what an even pace would have used, but foreground
//! did not.

use super::ledger::{Kind, Ledger, UNIT, amount, to_u64};
use super::level::{NEARLY, Standing};

/// The part of a refill that background leaves alone, in sixteenths. A client alone comes to rest
/// at half of the limit, so a part above half would starve background.
const OF_A_REFILL: i128 = 6;
/// The part of a sliding window that background leaves alone, in sixteenths. This part goes unused,
/// because a token comes back a window after it was spent.
const OF_A_SLIDING_WINDOW: i128 = 1;
/// In this last part of a window, in sixteenths, one request may go if all of the limit is left.
const LAST_OF_A_WINDOW: i128 = 4;

impl Standing {
    /// Returns the whole tokens that background may have, if `promised` tokens belong to requests
    /// that have not gone yet.
    pub(crate) fn spare(&self, promised: u64) -> u64 {
        if self.now < self.ledger.pause {
            return 0;
        }
        let spare = to_u64((self.free(promised) - self.left_alone()) / UNIT);
        let is_whole = || promised == 0 && self.until_whole() <= 0;
        spare.max(u64::from(spare == 0 && is_whole()))
    }

    /// Returns the nanoseconds until background may have `tokens`, if foreground sends nothing
    /// meanwhile; 0 if it may have them now.
    pub(crate) fn until_spare(&self, promised: u64, tokens: u64) -> u64 {
        let Self { ledger, now, .. } = self;
        let (limit, window) = (amount(ledger.limit).max(1), i128::from(ledger.window));
        let free = self.free(promised) - amount(tokens);
        let wait = match ledger.kind {
            // The even line falls by the limit in a window, and starts again with the next window.
            Kind::Window | Kind::Unknown => {
                self.resets_at() - i128::from(*now) - free * window / limit
            }
            Kind::Refill | Kind::Sliding => (self.left_alone() - free) * window / limit,
        };
        let wait = if tokens == 1 && promised == 0 {
            wait.min(self.until_whole())
        } else {
            wait
        };
        to_u64(wait).max(ledger.pause.saturating_sub(*now))
    }

    /// Returns the nanoseconds until one request may go because all of the limit is left and no
    /// request waits. Without this, a limit of one or two tokens would never let background go.
    fn until_whole(&self) -> i128 {
        let Self { ledger, now, .. } = self;
        let whole = amount(ledger.limit).max(1);
        let lacking = (whole - whole / NEARLY - self.level().0).max(0);
        let window = i128::from(ledger.window);
        match ledger.kind {
            Kind::Refill | Kind::Sliding => (lacking * window + whole - 1) / whole,
            Kind::Window | Kind::Unknown => {
                let next = if lacking > 0 { window } else { 0 };
                self.resets_at() + next - i128::from(*now) - window * LAST_OF_A_WINDOW / 16
            }
        }
    }

    /// Returns what is left, not kept back, and not promised.
    fn free(&self, promised: u64) -> i128 {
        let (level, _) = self.level();
        level - self.ledger.kept_back() - amount(promised)
    }

    /// Returns what background leaves alone: for a window, what would be left at an even pace. A
    /// limit of unknown kind counts as a window, because the reports of many services never show
    /// the kind.
    fn left_alone(&self) -> i128 {
        let Self { ledger, now, .. } = self;
        let whole = amount(ledger.limit);
        match ledger.kind {
            Kind::Window | Kind::Unknown => {
                let window = i128::from(ledger.window);
                let rest = (self.resets_at() - i128::from(*now)).clamp(0, window);
                whole * rest / window.max(1)
            }
            Kind::Refill => whole * OF_A_REFILL / 16,
            Kind::Sliding => whole * OF_A_SLIDING_WINDOW / 16,
        }
    }

    fn resets_at(&self) -> i128 {
        let Ledger {
            reset, at, window, ..
        } = self.ledger;
        if reset.is_known() {
            i128::from(reset.lo)
        } else {
            i128::from(at) + i128::from(window)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;
    use crate::law::declared::ledger::{Source, Within};

    /// A limit of 600 a minute, of which `left` are left at time 0.
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
        let spare =
            |seconds, sent, promised| window.standing(seconds * SECOND, sent).spare(promised);
        assert_eq!([0, 6, 30].map(|at| spare(at, 0, 0)), [0, 60, 300]);
        assert_eq!(spare(30, 100, 50), 150, "sent, and promised to others");
        assert_eq!(spare(30, 400, 0), 0);
        assert_eq!(spare(59, 0, 0), 590);
        assert_eq!(spare(60, 600, 0), 0, "the next window begins");
    }

    #[test]
    fn a_wait_ends_where_the_even_line_has_fallen_far_enough() {
        let window = ledger(Kind::Window, 600);
        let until = |sent, tokens| window.standing(0, sent).until_spare(0, tokens);
        assert_eq!(until(0, 1), SECOND / 10);
        assert_eq!(until(300, 0), 30 * SECOND);
        assert_eq!(
            until(600, 1),
            60 * SECOND + SECOND / 10,
            "in the next window"
        );
        let later = until(100, 50);
        assert!(
            window.standing(later, 100).spare(0) >= 50
                && window.standing(later - SECOND, 100).spare(0) < 50
        );
    }

    #[test]
    fn of_a_refill_three_eighths_are_left_alone() {
        let refill = ledger(Kind::Refill, 300);
        assert_eq!(refill.standing(0, 0).spare(0), 75);
        assert_eq!(refill.standing(0, 50).spare(25), 0);
        assert_eq!(refill.standing(0, 75).until_spare(0, 1), SECOND / 10);
    }

    #[test]
    fn of_a_sliding_window_little_is_left_alone() {
        let sliding = ledger(Kind::Sliding, 300);
        let (spare, left) = (sliding.standing(0, 0).spare(0), 600 / 16);
        assert!((300 - left - 1..=300 - left).contains(&spare), "{spare}");
        assert_eq!(sliding.standing(0, spare).spare(0), 0);
    }

    #[test]
    fn the_last_of_a_whole_limit_is_left_to_background_alone() {
        let of = |kind, left| Ledger {
            limit: 1,
            ..ledger(kind, left)
        };
        for kind in [Kind::Refill, Kind::Sliding] {
            let whole = of(kind, 1);
            assert_eq!(
                [0, 1].map(|promised| whole.standing(0, 0).spare(promised)),
                [1, 0]
            );
            let used = of(kind, 0);
            let wait = used.standing(0, 0).until_spare(0, 1);
            assert_eq!(wait, 60 * SECOND * 31 / 32, "all but a 32nd is whole");
            assert_eq!(
                [wait - 1, wait].map(|at| used.standing(at, 0).spare(0)),
                [0, 1]
            );
        }
        let window = of(Kind::Window, 1);
        assert_eq!(window.standing(0, 0).until_spare(0, 1), 45 * SECOND);
        assert_eq!(
            [44, 45].map(|at| window.standing(at * SECOND, 0).spare(0)),
            [0, 1]
        );
        let used = of(Kind::Window, 0);
        assert_eq!(used.standing(0, 0).until_spare(0, 1), 105 * SECOND);
    }

    #[test]
    fn a_limit_of_an_unknown_kind_is_a_window() {
        for (left, seconds) in [(599, 0), (599, 6), (100, 57)] {
            let [unknown, window] = [Kind::Unknown, Kind::Window].map(|kind| ledger(kind, left));
            let now = seconds * SECOND;
            assert_eq!(
                unknown.standing(now, 0).spare(0),
                window.standing(now, 0).spare(0)
            );
            let until = |of: &Ledger| of.standing(now, 50).until_spare(0, 10);
            assert_eq!(until(&unknown), until(&window));
        }
        assert_eq!(ledger(Kind::Unknown, 599).standing(0, 0).spare(0), 0);
    }

    #[test]
    fn a_pause_leaves_nothing_over() {
        let paused = Ledger {
            pause: SECOND,
            ..ledger(Kind::Window, 600)
        };
        assert_eq!(paused.standing(SECOND - 1, 0).spare(0), 0);
        assert_eq!(paused.standing(SECOND, 0).spare(0), 10);
        assert_eq!(paused.standing(0, 0).until_spare(0, 1), SECOND);
    }
}
