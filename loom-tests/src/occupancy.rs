//! Models of the places of a bounded store: over every interleaving of two threads, and of three
//! with two preemptions.
//!
//! Claim: there are never more things with a place than places, and no thing takes two, whichever
//! threads take one for it.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
};
use paceline::modelled::Places;

use crate::explore;

/// Places, and a note for each thing that it has one. The notes are relaxed, as those of the scopes
/// are.
struct Store {
    places: Places,
    notes: [AtomicU32; 3],
}

impl Store {
    fn of(most: u64) -> Arc<Self> {
        Arc::new(Self {
            places: Places::new(most),
            notes: [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)],
        })
    }

    /// Takes a place for the thing with `number`, from 1.
    fn place(&self, number: u64) -> bool {
        let note = |number: u64| &self.notes[usize::try_from(number).expect("small") - 1];
        self.places.place(
            number,
            || note(number).load(Relaxed) == 1,
            |other| {
                if other > 0 {
                    note(other).store(1, Relaxed);
                }
            },
        )
    }
}

fn on_another(
    store: &Arc<Store>,
    work: impl FnOnce(&Store) -> bool + 'static,
) -> thread::JoinHandle<bool> {
    let shared = Arc::clone(store);
    thread::spawn(move || work(&shared))
}

/// Of two things that want the one place, one gets it.
#[test]
fn two_things_never_share_a_place() {
    explore(None, || {
        let store = Store::of(1);
        let other = on_another(&store, |store| store.place(1));
        let ours = store.place(2);
        let theirs = other.join().expect("the thread returns");
        assert!(theirs != ours, "one place");
        assert_eq!(store.places.counts(), [1, 0, 1, 1]);
    });
}

/// Two threads take a place for one thing, which takes one; and a third takes one for another.
#[test]
fn a_thing_takes_one_place() {
    explore(Some(2), || {
        let store = Store::of(3);
        let same = on_another(&store, |store| store.place(1));
        let other = on_another(&store, |store| store.place(2));
        assert!(store.place(1), "there is room");
        assert!(same.join().expect("the thread returns"), "there is room");
        assert!(other.join().expect("the thread returns"), "there is room");
        assert_eq!(
            store.places.counts(),
            [2, 0, 0, 3],
            "two things, two places"
        );
    });
}

/// Where there is room for one thing, no thread that wants it is refused.
#[test]
fn the_last_place_is_not_refused_to_its_thing() {
    explore(Some(2), || {
        let store = Store::of(1);
        let first = on_another(&store, |store| store.place(1));
        let second = on_another(&store, |store| store.place(1));
        assert!(store.place(1), "it has the place");
        assert!(
            first.join().expect("the thread returns"),
            "it has the place"
        );
        assert!(
            second.join().expect("the thread returns"),
            "it has the place"
        );
        assert_eq!(store.places.counts(), [1, 0, 0, 1]);
    });
}

/// Places that are given back and taken at once are all there in the end.
#[test]
fn no_place_is_lost() {
    explore(None, || {
        let store = Store::of(3);
        assert!(store.place(1) && store.place(2));
        let other = on_another(&store, |store| {
            store.places.give_back();
            store.place(3)
        });
        store.places.give_back();
        assert!(other.join().expect("the thread returns"), "there is room");
        assert_eq!(store.places.counts(), [1, 2, 0, 3], "3 taken, 2 given back");
    });
}

mod twin {
    //! The same, with the mistakes one is tempted to make. Each model must fail.

    use loom::{model, sync::atomic::Ordering::SeqCst};

    use super::*;

    /// A count of places, and a note of the thing's: two words.
    struct CountThenNote {
        taken: AtomicU32,
        noted: AtomicU32,
    }

    impl CountThenNote {
        fn place(&self) -> bool {
            if self.noted.load(SeqCst) == 1 {
                return true;
            }
            let free = |taken: u32| Some(taken + 1).filter(|next| *next <= 1);
            let taken = self.taken.fetch_update(SeqCst, SeqCst, free).is_ok();
            if taken {
                self.noted.store(1, SeqCst);
            }
            taken || self.noted.load(SeqCst) == 1
        }
    }

    #[test]
    #[should_panic(expected = "it has the place")]
    fn a_place_that_names_no_thing_is_refused_to_it() {
        model(|| {
            let store = Arc::new(CountThenNote {
                taken: AtomicU32::new(0),
                noted: AtomicU32::new(0),
            });
            let shared = Arc::clone(&store);
            let other = thread::spawn(move || shared.place());
            assert!(store.place(), "it has the place");
            assert!(other.join().expect("it returns"), "it has the place");
        });
    }
}
