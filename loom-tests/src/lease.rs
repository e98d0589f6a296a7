//! Models of leases: tokens that a thread has taken ahead.

use core::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::thread;
use paceline_core::law::PacedSettings;
use paceline_core::modelled::{Numbers, go_by};
use paceline_core::{Outcome, SendPermit, SendRate, Timestamp};

use crate::explore;

/// When everything happens.
const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000);

/// Takes up to `most` tokens, as the thread with `number`.
fn take(rate: &SendRate, number: usize, most: usize) -> usize {
    go_by(number);
    let grants = (0..most).take_while(|_| rate.try_acquire(NOW).is_ok());
    grants.count()
}

/// A rate, and a bucket that holds the tokens of so many microseconds.
fn settings(per_second: u32, micros: u32) -> PacedSettings {
    let settings = PacedSettings::fixed(per_second, Duration::from_secs(1)).expect("in range");
    let burst = Duration::from_micros(micros.into());
    let settings = settings.to_builder().burst(burst).build();
    settings.expect("in range")
}

/// A limiter whose bucket held so many tokens, of which each of two threads has taken three: one
/// alone, and a lease of two.
fn held(tokens: u32) -> SendRate {
    let rate = SendRate::paced(settings(1_000_000, tokens), Timestamp::ZERO);
    assert_eq!(take(&rate, 0, 3) + take(&rate, 1, 3), 6);
    rate
}

/// As a throttle after which nothing is granted.
fn pause(rate: &SendRate) {
    let hint = Outcome::ThrottledFor(Duration::from_secs(1));
    rate.record(NOW, SendPermit::sent_at(NOW), hint);
}

/// Who has learned of a pause spends nothing more of a lease, and no lease that is taken beside it
/// outlives it.
#[test]
fn a_cut_ends_the_lease_of_another_thread() {
    explore(Some(2), || {
        let rate = held(100);
        // The next one of the first thread takes a lease of four, of which three are left.
        assert_eq!(take(&rate, 0, 1), 1);
        let rate = Arc::new(rate);
        let paused = Arc::new(AtomicU64::new(0));
        let cut = {
            let (rate, paused) = (Arc::clone(&rate), Arc::clone(&paused));
            thread::spawn(move || {
                pause(&rate);
                paused.store(1, Release);
            })
        };
        let owner = {
            let (rate, paused) = (Arc::clone(&rate), Arc::clone(&paused));
            thread::spawn(move || {
                let knows = paused.load(Acquire) == 1;
                let taken = take(&rate, 0, 1);
                assert!(!knows || taken == 0, "granted in a pause");
            })
        };
        cut.join().expect("the thread returns");
        owner.join().expect("the thread returns");
        assert_eq!(take(&rate, 0, 1), 0, "granted in a pause");
    });
}

/// A lease that is taken beside a pause, at whatever step that is, ends with it.
#[test]
fn a_lease_taken_beside_a_pause_ends_with_it() {
    explore(Some(2), || {
        let rate = Arc::new(held(100));
        let cut = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || pause(&rate))
        };
        // One token of a lease of four.
        let beside = take(&rate, 0, 1);
        cut.join().expect("the thread returns");
        assert!(beside <= 1);
        assert_eq!(take(&rate, 0, 1), 0, "granted in a pause");
    });
}

/// A lease that is taken beside two changes of the settings, at whatever step that is, is not spent
/// after them, though the second one brings back the settings of the first.
#[test]
fn a_lease_taken_beside_two_changes_ends_with_them() {
    explore(Some(2), || {
        let rate = Arc::new(held(100));
        let changes = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || {
                // At the first of them the bucket holds one token.
                for per_second in [10_000, 1_000_000] {
                    let changed = rate.set_paced(settings(per_second, 100), NOW);
                    changed.expect("in range");
                }
            })
        };
        let beside = take(&rate, 0, 1);
        changes.join().expect("the thread returns");
        assert!(beside <= 1);
        let granted = take(&rate, 0, 100) + take(&rate, 1, 100);
        assert!(granted <= 1, "{granted} of a bucket that was emptied");
    });
}

/// Leases that are taken, spent and given back at once: every token of the bucket is granted once.
#[test]
fn leases_that_come_and_go_grant_each_token_once() {
    explore(Some(2), || {
        let rate = Arc::new(held(60));
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || {
                let granted = take(&rate, 1, 2);
                // What is left goes back.
                drop(rate.reserve(NOW));
                granted
            })
        };
        let mut granted = take(&rate, 0, 1);
        drop(rate.reserve(NOW));
        granted += other.join().expect("the thread returns");
        granted += 6 + take(&rate, 0, 100) + take(&rate, 1, 100);
        assert_eq!(granted, 60);
    });
}

/// A lease goes back beside the take of one behind it, which goes back later: at once, or when so
/// much has been minted that the bucket has overflowed.
#[test]
fn leases_given_back_out_of_order_bring_what_fits() {
    for (later, left) in [(0, 57), (6, 60)] {
        explore(Some(2), move || {
            let rate = held(60);
            // Full again, but for the first token of a lease of four.
            let full = Timestamp::from_nanos(NOW.as_nanos() + 6_000);
            let take = |rate: &SendRate, number, now, most| {
                go_by(number);
                (0..most)
                    .take_while(|_| rate.try_acquire(now).is_ok())
                    .count()
            };
            let give_back = |rate: &SendRate, number, now| {
                go_by(number);
                assert!(rate.try_acquire_n(now, 100).is_err());
            };
            assert_eq!(take(&rate, 0, full, 1), 1);
            let rate = Arc::new(rate);
            let first = {
                let rate = Arc::clone(&rate);
                thread::spawn(move || give_back(&rate, 0, full))
            };
            // A lease of four, and a token behind it.
            assert_eq!(take(&rate, 1, full, 1) + take(&rate, 2, full, 1), 2);
            if later == 0 {
                give_back(&rate, 1, full);
            }
            first.join().expect("the thread returns");
            let now = Timestamp::from_nanos(full.as_nanos() + later * 1_000);
            let mut granted = take(&rate, 2, now, 100);
            give_back(&rate, 1, now);
            granted += take(&rate, 2, now, 100);
            assert!(granted <= left, "{granted} of {left}");
            assert!(later > 0 || granted == left, "{granted} of {left}");
        });
    }
}

/// Takes a token by the number that `numbers` gives, which it gives back as a thread does that
/// ends.
fn take_and_end(numbers: &Numbers, rate: &SendRate) -> usize {
    let Some(number) = numbers.take() else {
        return 0;
    };
    let granted = take(rate, number, 1);
    numbers.give_back(number);
    granted
}

/// A lease goes on with its number: to the next thread that has it, or to one that gives back what
/// is left.
#[test]
fn a_lease_goes_from_thread_to_thread_and_is_spent_once() {
    for collects in [false, true] {
        explore(Some(2), move || {
            let rate = held(60);
            // A lease of four, of which three are left.
            assert_eq!(take(&rate, 0, 1), 1);
            let (rate, numbers) = (Arc::new(rate), Arc::new(Numbers::new()));
            let other = {
                let (rate, numbers) = (Arc::clone(&rate), Arc::clone(&numbers));
                thread::spawn(move || {
                    if !collects {
                        return take_and_end(&numbers, &rate);
                    }
                    if numbers.take_this(0) {
                        go_by(0);
                        drop(rate.reserve(NOW));
                        numbers.give_back(0);
                    }
                    0
                })
            };
            let mut granted = take_and_end(&numbers, &rate);
            granted += other.join().expect("the thread returns");
            granted += 7 + take(&rate, 0, 100) + take(&rate, 1, 100);
            assert_eq!(granted, 60);
        });
    }
}

/// The mistakes that the models above are there for.
mod teeth {
    use super::*;

    /// A limiter of one word, of which leases are taken until a pause has set it to 0.
    struct Broken {
        bucket: AtomicU64,
        paused: AtomicU64,
        changes: AtomicU64,
    }

    impl Broken {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                bucket: AtomicU64::new(8),
                paused: AtomicU64::new(0),
                changes: AtomicU64::new(0),
            })
        }

        /// Takes a lease, and returns how often leases had been ended before it.
        fn lease(&self, looks: bool) -> Option<u64> {
            let changes = self.changes.load(Acquire);
            let seen = self.bucket.load(Relaxed);
            if seen < 2 || (looks && self.paused.load(Acquire) == 1) {
                return None;
            }
            let taken = self
                .bucket
                .compare_exchange(seen, seen - 2, Relaxed, Relaxed);
            taken.is_ok().then_some(changes)
        }

        fn pause(&self, ends_before: bool, ends_after: bool) {
            if ends_before {
                self.changes.fetch_add(1, Release);
            }
            self.paused.store(1, Release);
            if ends_after {
                self.changes.fetch_add(1, Release);
            }
            self.bucket.store(0, Relaxed);
        }
    }

    fn lease_beside_a_pause(looks: bool, ends_after: bool) {
        explore(None, move || {
            let rate = Broken::new();
            let other = Arc::clone(&rate);
            let pause = thread::spawn(move || other.pause(true, ends_after));
            let lease = rate.lease(looks);
            pause.join().expect("the thread returns");
            let outlives = lease == Some(rate.changes.load(Relaxed));
            assert!(!outlives, "granted in a pause");
        });
    }

    #[test]
    fn a_lease_that_is_ended_twice_and_looks_ends_with_the_pause() {
        lease_beside_a_pause(true, true);
    }

    #[test]
    #[should_panic(expected = "granted in a pause")]
    fn a_lease_that_is_ended_only_before_the_state_outlives_it() {
        lease_beside_a_pause(true, false);
    }

    #[test]
    #[should_panic(expected = "granted in a pause")]
    fn a_lease_of_a_line_that_does_not_follow_the_state_outlives_it() {
        lease_beside_a_pause(false, true);
    }

    /// A lease that knows only one bit of how often the settings were changed is as good as new
    /// after two changes.
    #[test]
    #[should_panic(expected = "granted of a bucket that was emptied")]
    fn a_lease_that_knows_one_bit_of_the_changes_outlives_two() {
        explore(None, || {
            let rate = Broken::new();
            let other = Arc::clone(&rate);
            let changes = thread::spawn(move || {
                for _ in 0..2 {
                    other.changes.fetch_xor(1, Release);
                    other.bucket.store(0, Relaxed);
                }
            });
            let lease = rate.lease(false);
            changes.join().expect("the thread returns");
            let outlives = lease == Some(rate.changes.load(Relaxed));
            assert!(!outlives, "granted of a bucket that was emptied");
        });
    }

    /// A lease that goes back by a load and a store grants what another thread has taken meanwhile.
    #[test]
    #[should_panic(expected = "granted twice")]
    fn a_lease_put_back_in_two_steps_grants_tokens_twice() {
        explore(None, || {
            // Of eight tokens one thread has a lease of two.
            let issued = Arc::new(AtomicU64::new(2));
            let other = Arc::clone(&issued);
            let taker = thread::spawn(move || other.fetch_add(1, Relaxed));
            if issued.load(Relaxed) == 2 {
                issued.store(0, Relaxed);
            }
            let token = taker.join().expect("the thread returns");
            assert!(issued.load(Relaxed) > token || token == 0, "granted twice");
        });
    }

    /// What was given up is counted in one word, and what of it is of leases in another one: a
    /// lease that is taken between the two takes tokens before it for tokens behind it.
    #[test]
    #[should_panic(expected = "more than fits")]
    fn two_counts_of_what_is_given_back_bring_more_than_fits() {
        explore(None, || {
            let (all, of_leases) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let other = {
                let (all, of_leases) = (Arc::clone(&all), Arc::clone(&of_leases));
                thread::spawn(move || {
                    all.fetch_add(3, Release);
                    of_leases.fetch_add(3, Release);
                })
            };
            // Four tokens stand before a lease of a bucket that would be full without them.
            let (seen, of_leases_seen) = (all.load(Acquire), of_leases.load(Relaxed));
            let before = 4 - seen;
            other.join().expect("the thread returns");
            let given_back = of_leases.load(Relaxed) - of_leases_seen;
            let behind = given_back.saturating_sub(before);
            assert_eq!(behind, 0, "more than fits");
        });
    }

    /// A lease that is handed on without what was written with it.
    #[test]
    #[should_panic(expected = "spent twice")]
    fn a_lease_handed_on_without_release_is_spent_twice() {
        explore(None, || {
            let (taken, left) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(1)));
            let run = |taken: &AtomicU64, left: &AtomicU64| {
                if taken.compare_exchange(0, 1, Relaxed, Relaxed).is_err() {
                    return 0;
                }
                let spent = left.load(Relaxed);
                left.store(0, Relaxed);
                taken.store(0, Relaxed);
                spent
            };
            let other = {
                let (taken, left) = (Arc::clone(&taken), Arc::clone(&left));
                thread::spawn(move || run(&taken, &left))
            };
            let mine = run(&taken, &left);
            let theirs = other.join().expect("the thread returns");
            assert!(mine + theirs <= 1, "spent twice");
        });
    }
}
