//! The effects of a throttle (rule 11).

use super::super::ledger::{Ledger, amount, to_i64};
use super::super::throttle::Refused;
use super::ledgers::{refused, window};
use crate::fixed::SECOND;

/// A ledger: the last send's report said `left`.
fn told(left: u64) -> Ledger {
    Ledger {
        told: true,
        told_order: 10,
        told_left: left,
        ..window(left)
    }
}

#[test]
fn a_pause_is_kept_and_never_shortened() {
    let (paused, doubt) = told(0).throttle(&refused(10));
    assert_eq!((paused.pause, doubt), (3 * SECOND, false));
    let shorter = Refused {
        until: 2 * SECOND,
        ..refused(10)
    };
    assert_eq!(paused.throttle(&shorter).0.pause, 3 * SECOND);
}

#[test]
fn another_limit_is_to_blame() {
    let other = Refused {
        blamed: false,
        ..refused(11)
    };
    let (paused, doubt) = told(50).throttle(&other);
    let expected = Ledger {
        pause: 3 * SECOND,
        ..told(50)
    };
    assert_eq!((paused, doubt), (expected, false));
}

#[test]
fn one_without_a_report_says_nothing_of_what_is_left() {
    let (paused, doubt) = told(50).throttle(&refused(11));
    let expected = Ledger {
        pause: 3 * SECOND,
        ..told(50)
    };
    assert_eq!((paused, doubt), (expected, false));
    // A service that declares nothing for a window may have another limit.
    let silent = |now| Refused { now, ..refused(11) };
    assert!(!told(50).throttle(&silent(11 * SECOND)).1);
    let (changed, doubt) = told(50).throttle(&silent(11 * SECOND + 1));
    assert!(doubt && changed.is_contradicted(13 * SECOND));
}

#[test]
fn if_more_than_a_quarter_was_left_there_is_another_limit() {
    let (ledger, doubt) = told(26).throttle(&refused(10));
    assert!(doubt && ledger.is_contradicted(102 * SECOND - 1));
    assert!(!ledger.is_contradicted(102 * SECOND));
    assert_eq!((ledger.left, ledger.kept), (to_i64(amount(26)), 0));
    let (ledger, doubt) = told(25).throttle(&refused(10));
    assert!(doubt && !ledger.is_contradicted(2 * SECOND));
}

#[test]
fn a_heavy_request_is_refused_though_something_is_left() {
    let heaviest = |heaviest| {
        let mut ledger = Ledger {
            limit: 8,
            ..told(4)
        };
        ledger.seen.heaviest = heaviest;
        ledger
    };
    assert!(!heaviest(5).throttle(&refused(10)).1);
    assert!(heaviest(4).throttle(&refused(10)).1);
}

#[test]
fn reports_are_doubted_for_a_minute_at_least() {
    let short = Ledger {
        window: SECOND,
        ..told(26)
    };
    let (ledger, doubt) = short.throttle(&refused(10));
    assert!(doubt && ledger.is_contradicted(62 * SECOND - 1));
    assert!(!ledger.is_contradicted(62 * SECOND));
}

#[test]
fn reports_that_say_too_much_keep_more_back() {
    // Only a wait until the reset shows a refusal by this limit.
    let until = |until| Refused {
        until,
        ..refused(10)
    };
    let (before, _) = told(6).throttle(&until(9 * SECOND - 1));
    assert_eq!(before.kept, 0);
    let (ledger, _) = told(6).throttle(&until(9 * SECOND));
    assert_eq!(ledger.kept, to_i64(amount(7)));
    // What is kept back shrinks in each window.
    let next = ledger.rolled(9 * SECOND, 10).expect("one has begun");
    assert_eq!(next.kept, to_i64(amount(7)) / 256 * 255);
}
