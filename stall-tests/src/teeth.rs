//! Twins with mistakes made on purpose: each test here must fail.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use crate::hook::{MOST, bounded, step, stopped_at};

/// A quota with a flag that a writer holds while it writes.
#[derive(Default)]
struct LockedQuota {
    writing: AtomicBool,
    available: AtomicU32,
}

impl LockedQuota {
    fn credit(&self, amount: u32) {
        while self.swap(true) {
            spin_loop();
        }
        step();
        let available = self.available.load(SeqCst);
        step();
        self.available.store(available + amount, SeqCst);
        self.swap(false);
    }

    /// As `credit`, but writes even if it has waited in vain for the flag.
    fn impatient_credit(&self, amount: u32) {
        for _ in 0..10 {
            if !self.swap(true) {
                break;
            }
        }
        step();
        let available = self.available.swap(0, SeqCst);
        step();
        self.available.store(available + amount, SeqCst);
        self.swap(false);
    }

    fn swap(&self, writing: bool) -> bool {
        step();
        self.writing.swap(writing, SeqCst)
    }
}

/// Stops `credit` everywhere, and then runs all of it: what was there must still be there.
fn stop_everywhere(credit: impl Fn(&LockedQuota)) {
    for step in 0..4 {
        let quota = LockedQuota::default();
        bounded(MOST, || credit(&quota));
        assert!(stopped_at(step, || credit(&quota)).is_none(), "four steps");
        bounded(MOST, || credit(&quota));
        assert!(quota.available.load(SeqCst) >= 4, "nothing is lost");
    }
}

#[test]
#[should_panic(expected = "not finished after 200 steps")]
fn a_flag_that_a_stopped_writer_holds_stops_everybody() {
    stop_everywhere(|quota| quota.credit(2));
}

#[test]
#[should_panic(expected = "nothing is lost")]
fn a_word_that_is_empty_while_it_is_written_loses_tokens() {
    stop_everywhere(|quota| quota.impatient_credit(2));
}
