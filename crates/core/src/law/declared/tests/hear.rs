//! The effects of a report (rule 6).

use super::super::hear::{ResetAt, Told};
use super::super::ledger::{Ledger, MOST_TOKENS, amount, to_i64};
use super::super::report::Observed;
use super::ledgers::{after_all, last, of_ten_seconds, refill, report, window};
use crate::fixed::SECOND;

fn left(ledger: &Ledger) -> (i64, u64) {
    (ledger.left, ledger.position)
}

fn tokens(count: u64) -> i64 {
    to_i64(amount(count))
}

#[test]
fn the_first_report_declares() {
    let first = of_ten_seconds(SECOND, 1, 99, 9 * SECOND);
    assert_eq!(last(&[first]), Some(Observed::Declared));
    let ledger = after_all(&[first]);
    assert_eq!((ledger.limit, ledger.window), (100, 10 * SECOND));
    assert_eq!(left(&ledger), (tokens(99), 1));
    assert_eq!(ledger.at, SECOND);
}

#[test]
fn what_cannot_be_changes_nothing() {
    let good = of_ten_seconds(SECOND, 1, 99, 9 * SECOND);
    let no_limit = Told {
        limit: Some(0),
        ..good
    };
    let too_much = Told {
        limit: Some(MOST_TOKENS + 1),
        ..good
    };
    let left_too_much = Told {
        remaining: MOST_TOKENS + 1,
        ..good
    };
    // Without a window and a reset, nothing says when the limit comes back.
    for wrong in [no_limit, too_much, left_too_much, report(SECOND, 1, 99)] {
        let (ledger, heard) = Ledger::default().report(&wrong);
        assert_eq!((ledger, heard), (Ledger::default(), None));
    }
}

#[test]
fn what_was_sent_in_a_silent_window_is_heard_of_later() {
    let begun = refill(50).rolled(11 * SECOND, 15).expect("one has passed");
    assert_eq!(left(&begun), (tokens(95), 15));
    let told = |now, order, left| Told {
        refills: Some(true),
        ..of_ten_seconds(now, order, left, SECOND)
    };
    // A part of the limit is not back yet.
    let (next, heard) = begun.report(&told(11 * SECOND, 15, 98));
    assert_eq!(
        (left(&next), heard),
        ((tokens(98), 15), Some(Observed::Taken))
    );
    let again = told(11 * SECOND, 15, 99);
    assert_eq!(next.report(&again).1, Some(Observed::Nothing), "once");
    // A heavy request reached the service after the last one, whose report does not include it.
    let (next, heard) = begun.report(&told(11 * SECOND, 12, 8));
    assert_eq!(
        (left(&next), heard),
        ((tokens(8), 12), Some(Observed::Taken))
    );
    let (next, _) = next.report(&told(11 * SECOND + 1, 15, 98));
    assert_eq!(left(&next), (tokens(8), 15));
    // What was sent before the last report is back.
    let before = told(11 * SECOND, 10, 8);
    assert_eq!(begun.report(&before).1, Some(Observed::Nothing));
    // After a second silent window the last send is known.
    let silent = begun.rolled(21 * SECOND, 15).expect("another one");
    assert_eq!(
        silent.report(&told(21 * SECOND, 12, 8)).1,
        Some(Observed::Nothing)
    );
    assert_eq!(
        silent.report(&told(21 * SECOND, 15, 8)).1,
        Some(Observed::Taken)
    );
}

#[test]
fn a_send_in_flight_over_a_reset_is_no_others() {
    // This client is alone, so what is missing in the new window is its own request.
    let begun = window(50).rolled(10 * SECOND, 20).expect("one has begun");
    let (next, heard) = begun.report(&of_ten_seconds(10 * SECOND, 15, 99, 9 * SECOND));
    assert_eq!((heard, next.seen.others), (Some(Observed::Taken), 0));
}

#[test]
fn an_older_send_counts_if_it_says_less() {
    let reports = |left| {
        [
            of_ten_seconds(SECOND, 5, 95, 9 * SECOND),
            of_ten_seconds(SECOND + 1, 6, 94, 9 * SECOND),
            of_ten_seconds(2 * SECOND, 5, left, 8 * SECOND),
        ]
    };
    assert_eq!(last(&reports(94)), Some(Observed::Nothing));
    assert_eq!(left(&after_all(&reports(95))), (tokens(94), 6));
    // The older request reached the service after the later request.
    assert_eq!(last(&reports(93)), Some(Observed::Taken));
    assert_eq!(left(&after_all(&reports(93))), (tokens(93), 6));
    // A report of the window before says nothing about this window.
    let begun = window(50).rolled(10 * SECOND, 20).expect("one has begun");
    let since = begun
        .report(&of_ten_seconds(11 * SECOND, 21, 99, 8 * SECOND))
        .0;
    let of_before = of_ten_seconds(11 * SECOND, 15, 40, 8 * SECOND);
    assert_eq!(left(&since.report(&of_before).0), (tokens(99), 21));
    // What a refill has left counts in any order.
    let refills = |told| Told {
        refills: Some(true),
        ..told
    };
    let of_later = of_ten_seconds(2 * SECOND, 12, 40, 6 * SECOND);
    let busy = refill(50).report(&refills(of_later)).0;
    let overtaken = of_ten_seconds(2 * SECOND, 11, 30, 7 * SECOND);
    assert_eq!(left(&busy.report(&refills(overtaken)).0), (tokens(30), 12));
}

#[test]
fn one_that_says_more_waits_for_two_trips() {
    let ledger = window(50);
    let soon = SECOND + SECOND / 5 - 1;
    // The request before came later, and the last report includes both.
    let more = of_ten_seconds(soon, 11, 60, 9 * SECOND - soon);
    assert_eq!(left(&ledger.report(&more).0), (tokens(50), 11));
    let less = of_ten_seconds(soon, 11, 49, 9 * SECOND - soon);
    assert_eq!(left(&ledger.report(&less).0), (tokens(49), 11));
    let later = soon + 1;
    let more = of_ten_seconds(later, 11, 60, 9 * SECOND - later);
    let (ledger, heard) = ledger.report(&more);
    assert_eq!(
        (heard, left(&ledger)),
        (Some(Observed::Taken), (tokens(60), 11))
    );
    // Not quite two tokens of a refill have come back meanwhile.
    let at = |remaining| {
        let told = of_ten_seconds(soon, 11, remaining, 5 * SECOND);
        let refills = Some(true);
        let (ledger, _) = refill(50).report(&Told { refills, ..told });
        (left(&ledger), ledger.at)
    };
    assert_eq!(at(52), ((tokens(50), 11), SECOND));
    assert_eq!(at(51), ((tokens(51), 11), soon));
}

#[test]
fn more_than_the_limit_is_never_left() {
    let ledger = after_all(&[of_ten_seconds(SECOND, 1, 1_000, 9 * SECOND)]);
    assert_eq!(left(&ledger), (tokens(100), 1));
}

#[test]
fn an_answer_of_the_window_before_is_late() {
    // At 10 s the window before has ended, with 20 sent.
    let begun = window(50).rolled(10 * SECOND, 20).expect("one has begun");
    assert_eq!(left(&begun), (tokens(100), 20));
    let of_before = of_ten_seconds(10 * SECOND, 15, 45, 0);
    assert_eq!(begun.report(&of_before).1, Some(Observed::Nothing));
    // A report of a request sent since opens the window, and so does a later reset.
    let since = of_ten_seconds(10 * SECOND, 21, 99, 9 * SECOND);
    assert_eq!(begun.report(&since).1, Some(Observed::Taken));
    let older_of_this = of_ten_seconds(10 * SECOND, 15, 99, 9 * SECOND);
    assert_eq!(begun.report(&older_of_this).1, Some(Observed::Taken));
    // A later reset before the known one says nothing with an older send.
    let far = of_ten_seconds(2 * SECOND, 9, 99, 60 * SECOND);
    assert_eq!(window(50).report(&far).1, Some(Observed::Nothing));
}

/// The next request overtakes one that reaches the service after the reset.
#[test]
fn an_overtaker_that_came_before_the_reset_is_late() {
    let before = of_ten_seconds(SECOND, 1, 50, SECOND);
    let overtaken = of_ten_seconds(2_200_000_000, 2, 99, 9_900_000_000);
    let next = Told {
        sent_at: 1_900_000_000,
        ..of_ten_seconds(2_300_000_000, 3, 49, SECOND / 10)
    };
    let reports = [before, overtaken, next];
    assert_eq!(last(&reports), Some(Observed::Nothing));
    let ledger = after_all(&reports);
    assert_eq!((left(&ledger), ledger.seen.others), ((tokens(99), 2), 0));
    // A reset that is sooner, but not by a window, belongs to this window.
    let sooner = of_ten_seconds(2_300_000_000, 3, 49, 5 * SECOND);
    assert_eq!(last(&[before, overtaken, sooner]), Some(Observed::Taken));
}

#[test]
fn another_limit_is_a_change() {
    let mut kept = window(50);
    kept.kept = tokens(7);
    let more = Told {
        limit: Some(200),
        ..of_ten_seconds(2 * SECOND, 11, 149, 7 * SECOND)
    };
    let (ledger, heard) = kept.report(&more);
    assert_eq!(heard, Some(Observed::Changed));
    assert_eq!((ledger.limit, ledger.kept), (200, 0));
    assert_eq!(left(&ledger), (tokens(149), 11));
    // A late report changes the limit as well, and no more than the new limit is left.
    let less = Told {
        limit: Some(20),
        ..of_ten_seconds(2 * SECOND, 10, 60, 7 * SECOND)
    };
    let (ledger, _) = window(50).report(&less);
    assert_eq!((ledger.limit, left(&ledger)), (20, (tokens(20), 10)));
}

#[test]
fn what_others_took_is_averaged_over_five_seconds() {
    // In a second 10 tokens went, of which this client took 4.
    let told = Told {
        sent_at: 2 * SECOND,
        ..of_ten_seconds(2 * SECOND, 14, 40, 7 * SECOND)
    };
    let mut before = window(50);
    before.seen.trip = 0;
    let (ledger, _) = before.report(&told);
    let mean = |count: i64| (count << 32) / 6;
    assert_eq!((ledger.seen.own, ledger.seen.others), (mean(4), mean(6)));
    // Ten tokens of a refill came back in that time.
    let mut before = refill(50);
    before.seen.trip = 0;
    let refills = Told {
        refills: Some(true),
        ..told
    };
    let (ledger, _) = before.report(&refills);
    assert_eq!((ledger.seen.own, ledger.seen.others), (mean(4), mean(16)));
}

#[test]
fn the_heaviest_of_late_is_kept() {
    let heavy = Told {
        weight: 64,
        ..of_ten_seconds(SECOND, 64, 36, 9 * SECOND)
    };
    let light = of_ten_seconds(2 * SECOND, 65, 35, 8 * SECOND);
    assert_eq!(after_all(&[heavy]).seen.heaviest, 64);
    assert_eq!(after_all(&[heavy, light]).seen.heaviest, 63);
}

#[test]
fn a_reset_gets_narrower() {
    let at = |now, nanos| Told {
        reset: Some(ResetAt::In(nanos)),
        ..of_ten_seconds(now, now / SECOND, 90, 0)
    };
    // Told to the second, and to the millisecond.
    let ledger = after_all(&[at(SECOND, 8 * SECOND)]);
    assert_eq!(
        (ledger.reset.lo, ledger.reset.hi),
        (7_900_000_000, 10_000_000_000)
    );
    let ledger = after_all(&[at(SECOND, 8 * SECOND), at(2 * SECOND, 6_500_000_000)]);
    assert_eq!(
        (ledger.reset.lo, ledger.reset.hi),
        (8_399_000_000, 8_501_000_000)
    );
}
