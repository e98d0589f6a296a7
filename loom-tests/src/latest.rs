//! Models of the word of a clock that threads keep up to date.
//!
//! Claim: no thread sees it go back, however many set it.

use loom::{sync::Arc, thread};
use paceline::modelled::Latest;

use crate::explore;

/// Two threads set it, the later one first or last; a third sees it rise.
#[test]
fn no_thread_sets_it_back() {
    explore(None, || {
        let word = Arc::new(Latest::new(1));
        let set = |value| {
            let word = Arc::clone(&word);
            thread::spawn(move || (word.raise(value), word.get()))
        };
        let (two, three) = (set(2), set(3));
        let seen = [word.get(), word.get()];
        assert!(seen.is_sorted(), "it went back: {seen:?}");
        let two = two.join().expect("the thread returns");
        assert!(two.0 <= two.1, "it went back: {two:?}");
        assert_eq!(three.join().expect("the thread returns"), (3, 3));
        assert_eq!(word.get(), 3, "it went back");
    });
}

mod twin {
    //! The same, with the mistake one is tempted to make. It must fail.

    use loom::{
        model,
        sync::atomic::{AtomicU32, Ordering::SeqCst},
    };

    use super::*;

    #[test]
    #[should_panic(expected = "it went back")]
    fn a_word_that_is_stored_goes_back() {
        model(|| {
            let word = Arc::new(AtomicU32::new(1));
            let shared = Arc::clone(&word);
            let other = thread::spawn(move || shared.store(2, SeqCst));
            word.store(3, SeqCst);
            other.join().expect("the other thread returns");
            assert_eq!(word.load(SeqCst), 3, "it went back");
        });
    }
}
