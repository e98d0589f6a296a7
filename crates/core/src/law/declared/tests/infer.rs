//! What the law infers (rules 8 to 10).

use super::super::hear::{ResetAt, Told};
use super::super::ledger::{Kind, Ledger, Source, Within};
use super::ledgers::{after_all, hearing, of_ten_seconds, report, window};
use crate::fixed::SECOND;

const MILLI: u64 = 1_000_000;

/// A report that tells when the limit is whole.
fn reset_in(now: u64, order: u64, remaining: u64, nanos: u64) -> Told {
    Told {
        reset: Some(ResetAt::In(nanos)),
        ..report(now, order, remaining)
    }
}

fn learned(ledger: &Ledger) -> (Kind, u64, Source) {
    (ledger.kind, ledger.window, ledger.source)
}

#[test]
fn what_is_told_is_not_guessed() {
    let told = Told {
        window: Some(7 * SECOND),
        refills: Some(true),
        ..reset_in(SECOND, 1, 99, 123 * MILLI)
    };
    let expected = (Kind::Refill, 7 * SECOND, Source::Told);
    assert_eq!(learned(&after_all(&[told])), expected);
    let window = Told {
        refills: Some(false),
        ..told
    };
    let expected = (Kind::Window, 7 * SECOND, Source::Told);
    assert_eq!(learned(&after_all(&[window])), expected);
}

#[test]
fn a_sliding_window_that_is_told_as_one_stays_sliding() {
    let told = of_ten_seconds(2 * SECOND, 11, 49, 8 * SECOND);
    for (kind, expected) in [
        (Kind::Sliding, Kind::Sliding),
        (Kind::Unknown, Kind::Window),
    ] {
        let ledger = Ledger { kind, ..window(50) };
        let mut hearing = hearing(&ledger, &told, None);
        hearing.note_kind();
        assert_eq!(hearing.next.kind, expected);
    }
}

#[test]
fn no_window_has_begun_unseen_if_one_has_just_begun() {
    let reset = Within {
        lo: 9_000_000_000,
        hi: 12_000_000_000,
    };
    let rough = Ledger {
        source: Source::Told,
        reset,
        ..window(20)
    };
    let more = report(2 * SECOND, 11, 90);
    assert!(hearing(&rough, &more, Some(reset)).has_risen());
    let fresh = Ledger {
        fresh: true,
        ..rough
    };
    assert!(!hearing(&fresh, &more, Some(reset)).has_risen());
}

#[test]
fn a_window_is_one_that_services_have() {
    // 59.5 s to the reset: the window is at least a minute.
    let first = reset_in(SECOND, 1, 99, 59_500 * MILLI);
    let expected = (Kind::Unknown, 60 * SECOND, Source::Guessed);
    assert_eq!(learned(&after_all(&[first])), expected);
    let odd = reset_in(SECOND, 1, 99, 50 * SECOND + MILLI);
    let (_, window, source) = learned(&after_all(&[odd]));
    assert_eq!(
        (window, source),
        (50 * SECOND - SECOND / 10, Source::Guessed)
    );
}

#[test]
fn two_resets_tell_a_window() {
    // 100 in 5 s: the first ends at 5 s, the second at 10 s.
    let reports = [
        reset_in(SECOND, 1, 99, 4_001 * MILLI),
        reset_in(2 * SECOND, 2, 98, 3_001 * MILLI),
    ];
    let first = after_all(&reports);
    assert_eq!(
        learned(&first),
        (Kind::Unknown, 60 * SECOND, Source::Guessed)
    );
    let begun = first.rolled(5_100 * MILLI, 2).expect("it is past");
    let (second, _) = begun.report(&reset_in(5_200 * MILLI, 3, 99, 4_801 * MILLI));
    // Each reset is known to a trip.
    assert_eq!(
        learned(&second),
        (Kind::Unknown, 5 * SECOND, Source::Learned)
    );
}

#[test]
fn a_reset_at_which_little_came_back_tells_no_window() {
    let begun = after_all(&[reset_in(SECOND, 60, 40, 4_001 * MILLI)])
        .rolled(5_100 * MILLI, 60)
        .expect("it is past");
    let told = |left| {
        begun
            .report(&reset_in(5_200 * MILLI, 61, left, 4_801 * MILLI))
            .0
    };
    // A new window lacks an eighth at most, besides what was sent in it.
    assert_eq!(learned(&told(86)).2, Source::Learned);
    assert_eq!(learned(&told(85)).2, Source::Guessed);
}

#[test]
fn a_window_that_is_nearly_a_usual_one_stays_a_window() {
    // 100 in 59 s, which the law takes for a minute. Each reset comes a second too soon.
    let mut ledger = Ledger::default();
    for window in 0..20 {
        let begun = window * 59 * SECOND;
        for (index, at) in [200 * MILLI, 30 * SECOND].into_iter().enumerate() {
            let (now, order) = (begun + at, window * 2 + 1 + index as u64);
            ledger = ledger.rolled(now, order - 1).unwrap_or(ledger);
            let told = reset_in(now, order, 99 - index as u64, 59 * SECOND + MILLI - at);
            ledger = ledger.report(&told).0;
        }
    }
    let expected = (Kind::Unknown, 60 * SECOND, Source::Learned);
    assert_eq!(learned(&ledger), expected);
}

#[test]
fn a_reset_that_moves_three_times_is_that_of_a_refill() {
    // 100 in a minute. In each 0.6 s three are sent, and one comes back.
    let reports: [Told; 6] = core::array::from_fn(|index| {
        let (index, used) = (index as u64, index as u64 * 2 + 1);
        let now = SECOND + index * 600 * MILLI;
        reset_in(now, index * 3 + 1, 100 - used, used * 600 * MILLI)
    });
    let kinds: [Kind; 6] = core::array::from_fn(|count| after_all(&reports[..=count]).kind);
    assert_eq!(kinds[..4], [Kind::Unknown; 4]);
    assert_eq!(kinds[4..], [Kind::Refill; 2]);
    assert_eq!(after_all(&reports).window, 60 * SECOND);
}

#[test]
fn a_reset_that_is_too_near_is_that_of_a_sliding_window() {
    // Most of a minute's hundred are used, and the oldest come back soon.
    let of_a_minute = |told| Told {
        window: Some(60 * SECOND),
        ..told
    };
    let begun = of_a_minute(reset_in(SECOND, 50, 50, 59 * SECOND));
    let soon = |index: u64| {
        let nanos = SECOND + index * 400 * MILLI;
        of_a_minute(reset_in((20 + index) * SECOND, 60 + index, 20, nanos))
    };
    let reports = [begun, soon(0), soon(1), soon(2), soon(3)];
    assert_eq!(after_all(&reports[..4]).kind, Kind::Unknown);
    assert_eq!(after_all(&reports).kind, Kind::Sliding);
}

#[test]
fn a_time_counts_by_the_clock_of_the_service() {
    // The service's clock shows 1,000 s at the limiter's first second. The difference is known to a
    // second.
    let told = Told {
        date: Some(1_000 * SECOND),
        reset: Some(ResetAt::At(1_030 * SECOND)),
        ..report(SECOND, 1, 99)
    };
    let ledger = after_all(&[told]);
    let offset = |ledger: &Ledger| ledger.clock.offset.expect("the time was told");
    assert_eq!(
        (offset(&ledger).lo, offset(&ledger).hi),
        (999_000_000_000, 1_000_100_000_000)
    );
    assert_eq!(
        (ledger.reset.lo, ledger.reset.hi),
        (29_900_000_000, 31_000_000_000)
    );
    // A window without a reset ends when the service's clock shows a multiple of the window.
    let aligned = Told {
        date: Some(1_000 * SECOND),
        window: Some(60 * SECOND),
        ..report(SECOND, 1, 99)
    };
    let ledger = after_all(&[aligned]);
    assert_eq!(
        (ledger.reset.lo, ledger.reset.hi),
        (
            1_020 * 1_000_000_000 - offset(&ledger).hi,
            1_020 * 1_000_000_000 - offset(&ledger).lo
        )
    );
    // Without a date the report says nothing.
    let told = Told { date: None, ..told };
    assert_eq!(after_all(&[told]), Ledger::default());
}

#[test]
fn a_rise_begins_a_window_whose_resets_are_told_roughly() {
    // Windows of two seconds, told to the second.
    let told = |now, order, remaining, seconds| Told {
        window: Some(2 * SECOND),
        refills: Some(false),
        ..reset_in(now, order, remaining, seconds * SECOND)
    };
    let ledger = after_all(&[told(SECOND, 60, 40, 2), told(1_500 * MILLI, 61, 39, 1)]);
    assert!(!ledger.fresh);
    let (risen, _) = ledger.report(&told(2_400 * MILLI, 62, 99, 2));
    // The window began between the last report and this one.
    assert_eq!(risen.rolled, 61);
    assert_eq!(
        risen.seen.own, ledger.seen.own,
        "the time between is of two windows"
    );
    assert!(risen.reset.lo >= 3_300_000_000 && risen.reset.hi <= 4_400_000_000);
}
