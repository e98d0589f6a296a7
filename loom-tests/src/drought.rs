//! Models of the word that knows how long nothing has been delivered.
//!
//! Claim: a delivery ends what came before it, whatever is throttled beside it.

use loom::{sync::Arc, thread};
use paceline::modelled::Drought;

use crate::explore;

/// Longer than all times here are apart.
const LONGEST: u64 = 1_000;

/// A delivery beside a throttle, after another one.
#[test]
fn a_delivery_ends_what_came_before_it() {
    explore(None, || {
        let drought = Arc::new(Drought::new());
        assert_eq!(drought.throttled(1, LONGEST), 0);
        let beside = Arc::clone(&drought);
        let delivery = thread::spawn(move || beside.delivered());
        let dry = drought.throttled(5, LONGEST);
        delivery.join().expect("the thread returns");
        assert!(dry == 4 || dry == 0, "{dry}");
        let since = drought.length(9);
        assert!(
            since.is_none_or(|since| since == 4),
            "it goes on: {since:?}"
        );
    });
}

/// Two throttles of a drought that has not begun: it begins once, and goes on.
#[test]
fn a_drought_begins_once() {
    explore(None, || {
        let drought = Arc::new(Drought::new());
        let beside = Arc::clone(&drought);
        let other = thread::spawn(move || beside.throttled(3, LONGEST));
        let dry = drought.throttled(3, LONGEST);
        assert_eq!(dry + other.join().expect("the thread returns"), 0);
        assert_eq!(drought.length(9), Some(6));
    });
}

/// A request that comes after a silence, beside a delivery and a throttle: what went before is
/// over.
#[test]
fn a_silence_ends_what_came_before_it() {
    explore(None, || {
        let drought = Arc::new(Drought::new());
        assert_eq!(drought.throttled(1, LONGEST), 0);
        let now = 2 + LONGEST;
        let beside = Arc::clone(&drought);
        let other = thread::spawn(move || {
            beside.delivered();
            beside.throttled(now, LONGEST)
        });
        drought.resumed(now, LONGEST);
        assert_eq!(other.join().expect("the thread returns"), 0, "it goes on");
        assert!(drought.length(now + 1).is_none_or(|since| since == 1));
    });
}

mod twin {
    //! The same, with the mistake one is tempted to make. It must fail.

    use loom::{
        model,
        sync::atomic::{AtomicU64, Ordering::SeqCst},
    };

    use super::*;

    /// A throttle that stores what it has made of what it has seen.
    #[test]
    #[should_panic(expected = "it goes on")]
    fn a_throttle_that_stores_goes_on_after_a_delivery() {
        model(|| {
            let since = Arc::new(AtomicU64::new(1));
            let beside = Arc::clone(&since);
            let delivery = thread::spawn(move || beside.store(0, SeqCst));
            let seen = since.load(SeqCst);
            since.store(if seen == 0 { 5 } else { seen }, SeqCst);
            delivery.join().expect("the thread returns");
            assert_ne!(since.load(SeqCst), 1, "it goes on");
        });
    }
}
