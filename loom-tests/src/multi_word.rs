//! Values of several words.

use loom::{sync::Arc, thread};
use paceline_core::modelled::Pair;

use crate::explore;

#[test]
fn a_reader_finds_one_value() {
    explore(Some(3), || {
        let pair = Arc::new(Pair::new());
        let shared = Arc::clone(&pair);
        let reader = thread::spawn(move || {
            let [first, second] = shared.read();
            assert_eq!(first, second, "both words are of one value");
        });
        assert!(pair.step(), "it is alone");
        assert!(pair.step(), "it is alone");
        reader.join().expect("the reader returns");
        assert_eq!(pair.read(), [2, 2]);
    });
}

#[test]
fn no_replacement_is_lost_or_made_twice() {
    explore(Some(2), || {
        let pair = Arc::new(Pair::new());
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&pair);
                thread::spawn(move || u64::from(shared.step()))
            })
            .collect();
        let mut steps = u64::from(pair.step());
        for other in others {
            steps += other.join().expect("the other thread returns");
        }
        assert_eq!(pair.read(), [steps, steps]);
    });
}

/// Two threads that stop within a replacement use up the tickets.
#[test]
fn a_ticket_that_was_called_in_writes_nothing() {
    explore(Some(2), || {
        let pair = Arc::new(Pair::new());
        let stopped: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&pair);
                thread::spawn(move || shared.stop_within())
            })
            .collect();
        let mut steps = 0;
        while steps < 2 {
            steps += u64::from(pair.step());
            let [first, second] = pair.read();
            assert_eq!(
                (first, second),
                (steps, steps),
                "both words are of one value"
            );
        }
        for thread in stopped {
            thread.join().expect("the thread returns");
        }
        assert_eq!(pair.read(), [2, 2]);
        assert!(pair.step(), "stopped threads keep no other from it");
    });
}
