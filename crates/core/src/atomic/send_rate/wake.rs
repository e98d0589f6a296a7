//! When a waiter has to look at the line again, and how it is woken if its timer is too late for
//! that.
//!
//! Only a waiter whose timer is late has to be woken. A walk wakes the waiters that are due, and
//! those whose timer is over twice too late, in order. The walk also looks at the first two other
//! waiters, and each of these two walks when it leaves. The walk passes over a waiter that was
//! woken and has not looked since. So a waiter that is never polled holds up no other. After
//! `set_paced`, `reset` and `forget_throttles` the walk wakes all waiters whose timers are late.
//!
//! | waiter | is woken if its timer comes after its turn by more than | else looks |
//! |---|---|---|
//! | first | 10 ms | by its timer, every 25 ms at most while the law's curve rises |
//! | second | 40 ms, or a quarter of its wait | by its timer |
//! | another | by the rows above, once it is among the first two | by its timer |
//!
//! A call that only moves the line along the law's curve walks nothing. There the first waiter
//! looks by its timer. A response walks unless the gate is quiet, which it is for 50 ms at most.

use core::ops::Deref;

use super::SendRate;
use super::acquire::Engaged;
use super::waiters::{LATE, Look};
use crate::Timestamp;
use crate::fixed::SECOND;

/// How late the timer of the second waiter may be. This matters only if the first waiter never
/// looks again.
const SECOND_LATE: u64 = SECOND.wrapping_div(25);

/// How many nanoseconds the first waiter may lose by not looking all the time at a rising curve.
const LOSS: u64 = SECOND.wrapping_div(200);

/// The least time between two looks of the first waiter, in nanoseconds.
const LEAST: u64 = SECOND.wrapping_div(40);

/// A walk looks after so many waiters whose turn has not come. So a waiter that never looks again
/// holds up no other.
const FIRST: usize = 2;

/// The view of a limiter that wakes its waiters.
#[derive(Clone, Copy)]
pub(super) struct Waking<'a>(&'a Engaged<'a>);

impl<'a> Deref for Waking<'a> {
    type Target = Engaged<'a>;

    fn deref(&self) -> &Engaged<'a> {
        self.0
    }
}

impl Engaged<'_> {
    /// Returns what wakes waiters.
    pub(super) const fn waking(&self) -> Waking<'_> {
        Waking(self)
    }
}

impl Waking<'_> {
    /// Wakes the waiters whose timers are too late.
    ///
    /// Called by a thread that has raised the rate or left the line. The call looks after the
    /// waiters whose turn has come, and after the first few others. Each of these does the same
    /// when it leaves, and so on down the line.
    pub(super) fn due(self, elapsed: u64) {
        self.wake(elapsed, FIRST);
    }

    /// Wakes all waiters whose timers are too late, after a change that perhaps no other call
    /// follows.
    pub(super) fn all(self, elapsed: u64) {
        self.wake(elapsed, usize::MAX);
    }

    fn wake(self, elapsed: u64, most: usize) {
        let second = || self.second_line_if_made();
        second().inspect(|second| second.release(elapsed));
        second().inspect(|second| second.wake(elapsed, most));
        if let Some(line) = self.line_at(elapsed) {
            self.line().retire(&line, elapsed);
        }
        self.line().waiters.walk(most, |ahead, rank, timer| {
            // A declared limit may still hold back a waiter whose token is there.
            let nanos = self.nanos_until_rank(|_| rank, elapsed);
            let Some(nanos) = nanos.or_else(|| self.reports().may_go(elapsed, 1).err()) else {
                return Look::Due;
            };
            let left = timer.saturating_sub(elapsed);
            let (sleep, may_be_late) = match ahead {
                0 => (self.next_look(elapsed, nanos), LATE),
                _ => (nanos, SECOND_LATE.max(nanos / 4)),
            };
            if left / 2 > nanos.max(SECOND_LATE) {
                Look::Due // soon, by comparison
            } else if left > sleep.saturating_add(may_be_late) {
                Look::Late
            } else if left > nanos {
                Look::LateEnough
            } else {
                Look::InTime
            }
        });
    }

    /// Returns the nanoseconds until the first waiter looks again, if its turn comes in `nanos`.
    ///
    /// The curve of the paced law rises with time, but its line only at a look. The next look may
    /// wait until the curve has risen by the fraction that 5 ms are of the wait. However many such
    /// looks there are, down to the least time between looks, the first waiter loses at most these
    /// 5 ms in all.
    pub(super) fn next_look(self, elapsed: u64, nanos: u64) -> u64 {
        if !self.law.moves_with_time() {
            return nanos; // only what is recorded moves the rate
        }
        let (law, state) = (self.law.get(), self.state.load());
        if !state.is_engaged() {
            return nanos;
        }
        let from = elapsed.max(state.since());
        let reading = self.meter.reading();
        let rate = |at| u128::from(law.rate(state, at, Some(reading)).raw());
        let today = rate(from);
        let mut sleep = nanos;
        while sleep > LEAST {
            let risen = rate(elapsed.saturating_add(sleep).max(from)).saturating_sub(today);
            if risen.saturating_mul(u128::from(nanos)) <= today.saturating_mul(u128::from(LOSS)) {
                break;
            }
            sleep >>= 1;
        }
        sleep.max(nanos.min(LEAST))
    }
}

impl SendRate {
    /// Wakes the waiters in line whose timers are too late for their turn.
    pub(crate) fn wake_due(&self, now: Timestamp) {
        if let Some(engaged) = self.engaged() {
            engaged.waking().due(engaged.law.elapsed(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, task::Wake};
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use core::{task::Waker, time::Duration};

    use super::*;
    use crate::atomic::send_rate::ask::Turn;
    use crate::law::paced::PacedSettings;
    use crate::{Class, ControlLaw, Outcome, SendPermit};

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    const ZERO: Timestamp = Timestamp::ZERO;

    /// How often each of three waiters with these timers is woken. Their turns come in 2, 4 and 6
    /// s.
    fn woken(timers: [u64; 3]) -> [u32; 3] {
        woken_by(timers, |rate| rate.wake_due(ZERO))
    }

    fn woken_by(timers: [u64; 3], walk: impl FnOnce(&SendRate)) -> [u32; 3] {
        let rate = SendRate::new(ControlLaw::Aws, ZERO);
        rate.record(ZERO, SendPermit::sent_at(ZERO), Outcome::Throttled);
        let engaged = rate.about_to_limit();
        let places = timers.map(|timer| {
            let Ok(Turn::Placed { place, slot }) =
                rate.ask(ZERO, 1, Class::Foreground).queue_up_anyhow()
            else {
                panic!("there is a line");
            };
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let slot = slot.expect("there is room");
            engaged.line().waiters.stand(slot, timer, &waker);
            (place, woken)
        });
        walk(&rate);
        places.map(|(_, woken)| woken.0.load(Relaxed))
    }

    #[test]
    fn a_waiter_is_woken_if_its_timer_is_too_late() {
        let in_time = [2, 4, 6].map(|seconds| seconds * SECOND);
        let of = |number: usize, timer| {
            let mut timers = in_time;
            timers[number] = timer;
            woken(timers)
        };
        assert_eq!(woken(in_time), [0; 3]);
        assert_eq!(of(0, 2 * SECOND + LATE), [0; 3], "late enough");
        assert_eq!(of(0, 2 * SECOND + LATE + 1), [1, 0, 0]);
        assert_eq!(of(1, 5 * SECOND), [0; 3], "a quarter of its wait");
        assert_eq!(of(1, 5 * SECOND + 1), [0, 1, 0]);
        assert_eq!(of(2, 60 * SECOND), [0; 3], "two are looked after");
        // A waiter over twice too late is due, and the waiters behind are looked after as well.
        let late = |first| woken([first, in_time[1], 60 * SECOND]);
        assert_eq!(late(4 * SECOND), [1, 0, 0]);
        assert_eq!(late(4 * SECOND + 2), [1, 0, 1]);
    }

    #[test]
    fn the_first_sleeps_by_halves_until_the_curve_costs_it_little() {
        let settings = PacedSettings::builder().initial_rate(100, Duration::from_secs(1));
        let rate = SendRate::paced(settings.build().expect("in range"), ZERO);
        let now = Timestamp::from_nanos(SECOND);
        rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
        let engaged = rate.about_to_limit();
        let looks =
            [100, 160, 200, 1_600].map(|ms| engaged.waking().next_look(SECOND, ms * LATE / 10));
        assert_eq!(looks, [100, 40, 50, 25].map(|ms| ms * LATE / 10));
    }
}
