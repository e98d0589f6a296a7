//! Models of the word that decides whether a state is used again or retired, over every
//! interleaving.
//!
//! Claim: what is in use is not retired, and what is retired was as the look at it found it.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
};
use paceline::modelled::Usage;

use crate::explore;

/// A state that is not in use, and whether it is idle. Its word is relaxed, as those of the buckets
/// are.
struct State {
    usage: Usage,
    engaged: AtomicU32,
    /// Set by the thread that retires it.
    gone: AtomicU32,
}

impl State {
    /// Creates a state in the hands of its maker.
    fn new() -> Arc<Self> {
        let state = Self::unplaced();
        assert!(state.usage.place());
        state
    }

    /// Creates a state in the hands of its maker, without a place.
    fn unplaced() -> Arc<Self> {
        Arc::new(Self {
            usage: Usage::entered(),
            engaged: AtomicU32::new(0),
            gone: AtomicU32::new(0),
        })
    }

    fn idle() -> Arc<Self> {
        let state = Self::new();
        state.usage.leave();
        state
    }

    /// Comes, engages the limiter or not, and goes; or finds it retired, and returns false.
    fn visit(&self, engage: bool) -> bool {
        let entered = self.usage.enter();
        if entered {
            self.engage_and_leave(engage);
        }
        entered
    }

    fn engage_and_leave(&self, engage: bool) {
        assert_eq!(self.gone.load(Relaxed), 0, "retired while in use");
        if engage {
            self.engaged.store(1, Relaxed);
        }
        assert_eq!(self.gone.load(Relaxed), 0, "retired while in use");
        self.usage.leave();
    }

    /// Retires it if it is idle.
    fn evict(&self) -> bool {
        let idle = self.usage.look().is_some() && self.engaged.load(Relaxed) == 0;
        let retired = idle && self.usage.retire();
        if retired {
            self.gone.store(1, Relaxed);
        }
        retired
    }
}

/// Either the user is there first, and the state stays; or it is retired, and the user finds no
/// entrance.
#[test]
fn what_is_used_is_never_retired() {
    explore(None, || {
        let state = State::idle();
        let user = {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                let entered = state.usage.enter();
                // It stays for good.
                assert!(!entered || !state.usage.is_retired());
                entered
            })
        };
        let retired = state.usage.look().is_some() && state.usage.retire();
        assert_ne!(user.join().unwrap(), retired, "one of the two");
        assert_eq!(state.usage.is_retired(), retired);
    });
}

/// A user who engages the limiter between the look and the retirement, and is gone by then,
/// prevents it.
#[test]
fn a_user_in_between_is_noticed() {
    explore(None, || {
        let state = State::idle();
        let user = {
            let state = Arc::clone(&state);
            thread::spawn(move || [state.visit(false), state.visit(true)])
        };
        let retired = state.evict();
        let [first, second] = user.join().unwrap();
        assert_ne!(second, retired, "an engaged limiter is kept");
        assert!(first || retired, "no other user keeps out the first");
        assert!(!state.usage.is_used(), "all have left");
    });
}

/// What a user did before it left is seen by the look that finds it gone.
#[test]
fn what_a_user_did_is_seen_before_it_is_retired() {
    explore(None, || {
        let state = State::idle();
        let user = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.visit(true))
        };
        // Two looks: the second finds no mark, as the first has cleared it.
        let retired = state.evict() || state.evict();
        assert_ne!(user.join().unwrap(), retired, "an engaged limiter is kept");
        assert!(retired || !state.evict(), "and stays");
    });
}

/// The first user is the maker, who has not entered and leaves no mark.
#[test]
fn what_its_maker_did_is_seen_too() {
    explore(None, || {
        let state = State::new();
        let maker = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.engage_and_leave(true))
        };
        assert!(!state.evict(), "in use, or engaged");
        maker.join().unwrap();
        assert!(!state.evict());
    });
}

/// Of one who evicts and one who removes by force, one retires it, and no user in between is hurt.
#[test]
fn it_is_retired_once() {
    explore(None, || {
        let state = State::idle();
        let by_force = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.usage.retire_unlooked())
        };
        let user = {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                let entered = state.usage.enter();
                assert!(!entered || !state.usage.is_retired());
                entered
            })
        };
        let evicted = state.usage.look().is_some() && state.usage.retire();
        let (removed, entered) = (by_force.join().unwrap(), user.join().unwrap());
        assert!(!(evicted && removed), "twice");
        assert!(!(entered && (evicted || removed)), "while in use");
        assert_eq!(state.usage.is_retired(), evicted || removed);
    });
}

/// Its maker gives up a state for want of a place, while another thread has found one for it:
/// either that comes too late, or the state stays with all that was done to it.
#[test]
fn what_has_its_place_is_not_withdrawn() {
    explore(None, || {
        let state = State::unplaced();
        let user = {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                let entered = state.usage.enter();
                if entered {
                    assert!(state.usage.place(), "once");
                    state.engage_and_leave(true);
                }
                entered
            })
        };
        let withdrawn = state.usage.leave_unplaced();
        if withdrawn {
            state.gone.store(1, Relaxed);
        }
        assert_ne!(user.join().unwrap(), withdrawn, "one of the two");
        assert_eq!(state.usage.is_retired(), withdrawn);
        assert!(!state.usage.is_used(), "all have left");
    });
}

/// Of two users that got no place, the last withdraws the state.
#[test]
fn the_last_user_withdraws_what_has_no_place() {
    explore(None, || {
        let state = State::unplaced();
        assert!(state.usage.enter());
        let other = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.usage.leave_unplaced())
        };
        let ours = state.usage.leave_unplaced();
        assert_ne!(other.join().unwrap(), ours, "one of the two");
        assert!(state.usage.is_retired());
    });
}

mod twin {
    //! The same, with the mistakes one is tempted to make. Each model must fail.

    use loom::{model, sync::atomic::Ordering::SeqCst};

    use super::*;

    /// A count of users, and what stands for a retired thing.
    const RETIRED: u32 = 1 << 31;

    /// Counts users; asks, and then retires; nothing tells of who has come and gone. Not even
    /// `SeqCst` helps.
    struct Broken {
        users: AtomicU32,
        engaged: AtomicU32,
    }

    impl Broken {
        fn idle() -> Arc<Self> {
            Arc::new(Self {
                users: AtomicU32::new(0),
                engaged: AtomicU32::new(0),
            })
        }

        fn enter(&self) -> bool {
            self.users.fetch_add(1, SeqCst) & RETIRED == 0
        }

        /// Between the look and the store a user may enter.
        fn check_then_retire(&self) -> bool {
            let unused = self.users.load(SeqCst) == 0;
            if unused {
                self.users.store(RETIRED, SeqCst);
            }
            unused
        }

        /// A swap of an unused state: but a user may have come and gone since the look.
        fn retire_unmarked(&self) -> bool {
            let idle = self.users.load(SeqCst) == 0 && self.engaged.load(SeqCst) == 0;
            let swapped = self.users.compare_exchange(0, RETIRED, SeqCst, SeqCst);
            idle && swapped.is_ok()
        }

        fn visit(&self) -> bool {
            let entered = self.enter();
            if entered {
                self.engaged.store(1, SeqCst);
                self.users.fetch_sub(1, SeqCst);
            }
            entered
        }
    }

    #[test]
    #[should_panic(expected = "one of the two")]
    fn a_usage_that_checks_then_retires_retires_what_is_used() {
        model(|| {
            let state = Broken::idle();
            let user = {
                let state = Arc::clone(&state);
                thread::spawn(move || state.enter())
            };
            let retired = state.check_then_retire();
            assert_ne!(user.join().unwrap(), retired, "one of the two");
        });
    }

    #[test]
    #[should_panic(expected = "an engaged limiter is kept")]
    fn a_usage_without_a_mark_misses_who_has_come_and_gone() {
        model(|| {
            let state = Broken::idle();
            let user = {
                let state = Arc::clone(&state);
                thread::spawn(move || state.visit())
            };
            let retired = state.retire_unmarked();
            assert_ne!(user.join().unwrap(), retired, "an engaged limiter is kept");
        });
    }
}
