//! What is left, and which requests may go (rules 2, 3 and 7).

use super::super::ledger::{Kind, Ledger, Source, Within, amount, to_i64};
use super::ledgers::{refill, window};
use crate::fixed::SECOND;

/// A rate of whole tokens per second.
fn per_second(count: i64) -> i64 {
    count << 32
}

/// The ledger with these rates of this client and of others.
fn taken(ledger: Ledger, own: i64, others: i64) -> Ledger {
    let mut ledger = ledger;
    ledger.seen.own = per_second(own);
    ledger.seen.others = per_second(others);
    ledger
}

/// The ledger with others who take twice as much as this client.
fn among_others(ledger: Ledger) -> Ledger {
    taken(ledger, 1, 2)
}

#[test]
fn what_was_sent_since_the_report_is_gone() {
    let (left, rest) = window(50).as_told(2 * SECOND, 15).level();
    assert_eq!((left, rest), (amount(45), 7 * SECOND));
    // A refill gets ten a second back, and is whole when the other 45 are back.
    let (left, rest) = refill(50).as_told(2 * SECOND, 15).level();
    assert_eq!((left, rest), (amount(55), 4_500_000_000));
    // The refill is full by then, and what was sent is taken from that.
    let (left, rest) = refill(90).as_told(3 * SECOND, 25).level();
    assert_eq!((left, rest), (amount(85), 1_500_000_000));
    // Half of a sliding window was used, and comes back as if used evenly.
    let sliding = Ledger {
        kind: Kind::Sliding,
        ..window(50)
    };
    let (left, rest) = sliding.as_told(2 * SECOND, 15).level();
    assert_eq!((left, rest), (amount(50), 625_000_000));
}

#[test]
fn others_are_foreseen_for_a_while() {
    let others = |ledger| taken(ledger, 10, 10);
    // Others are foreseen for four trips of 100 ms, on a refill for two.
    assert_eq!(
        others(window(50)).as_told(2 * SECOND, 10).level().0,
        amount(46)
    );
    assert_eq!(
        others(window(50))
            .as_told(SECOND + SECOND / 5, 10)
            .level()
            .0,
        amount(48)
    );
    assert_eq!(
        others(refill(50)).as_told(2 * SECOND, 10).level().0,
        amount(58)
    );
    // Others take no more than comes back.
    let greedy = taken(refill(50), 10, 30);
    assert_eq!(greedy.as_told(2 * SECOND, 10).level().0, amount(58));
    // Less than a tenth may be this client's own, in flight over a reset.
    let alone = taken(window(50), 101, 10);
    assert_eq!(alone.as_told(2 * SECOND, 10).level().0, amount(50));
}

#[test]
fn a_request_goes_if_so_much_is_left() {
    for left in [1_u8, 5, 80, 96] {
        let (ledger, weight) = (window(left.into()), left.into());
        assert_eq!(ledger.standing(2 * SECOND, 10).barred(weight), None);
        let wait = Some(7 * SECOND);
        assert_eq!(ledger.standing(2 * SECOND, 10).barred(weight + 1), wait);
        assert_eq!(ledger.standing(2 * SECOND, 11).barred(weight), wait);
    }
    let ledger = window(5);
    // A refill has a token back after a tenth of a second.
    assert_eq!(refill(5).standing(SECOND, 10).barred(6), Some(SECOND / 10));
    let quick = Ledger {
        limit: 1 << 31,
        window: SECOND,
        ..refill(5)
    };
    assert_eq!(
        quick.standing(SECOND, 10).barred(6),
        Some(1),
        "never at once"
    );
    assert_eq!(Ledger::default().standing(0, 0).barred(u32::MAX), None);
    let paused = Ledger {
        pause: 4 * SECOND,
        ..ledger
    };
    assert_eq!(paused.standing(2 * SECOND, 10).barred(1), Some(2 * SECOND));
}

#[test]
fn a_heavy_one_goes_when_nearly_all_is_left() {
    let ledger = among_others(window(97));
    // One is kept back, and one for two others, but 31/32 of the limit are enough for a request of
    // that weight.
    assert_eq!(ledger.kept_back(), amount(2));
    assert_eq!(ledger.standing(SECOND, 10).barred(95), None);
    assert_eq!(
        ledger.standing(SECOND, 10).barred(97),
        None,
        "nothing is kept back"
    );
    assert_eq!(
        ledger.standing(SECOND, 10).barred(98),
        Some(8 * SECOND),
        "more"
    );
    let less = among_others(window(96));
    assert_eq!(less.standing(SECOND, 10).barred(94), None);
    assert_eq!(less.standing(SECOND, 10).barred(95), Some(8 * SECOND));
    let whole = among_others(window(100));
    assert_eq!(whole.standing(SECOND, 10).barred(100), None);
    assert_eq!(
        whole.standing(SECOND, 10).barred(101),
        None,
        "the limit has shrunk"
    );
}

#[test]
fn no_more_than_a_quarter_is_kept_back() {
    let mut heavy = among_others(window(100));
    heavy.seen.heaviest = 20;
    assert_eq!(heavy.kept_back(), amount(25));
    let wary = Ledger {
        kept: to_i64(amount(1_000)),
        ..window(100)
    };
    assert_eq!(wary.kept_back(), amount(25));
    assert_eq!(window(100).kept_back(), 0);
}

#[test]
fn a_window_begins_at_its_reset() {
    let ledger = window(50);
    assert_eq!(ledger.rolled(9 * SECOND - 1, 15), None);
    let next = ledger.rolled(9 * SECOND, 15).expect("one has begun");
    assert_eq!((next.left, next.position), (to_i64(amount(100)), 15));
    assert_eq!((next.at, next.reset.hi), (9 * SECOND, 19_000_000_000));
    assert!(next.fresh);
    // Three windows later, the reset is the end of the fourth.
    let later = ledger.rolled(39 * SECOND, 15).expect("one has begun");
    assert_eq!((later.at, later.reset.hi), (39 * SECOND, 49_000_000_000));
}

#[test]
fn a_silent_window_brings_back_what_went_before_it() {
    let ledger = refill(50);
    assert_eq!(ledger.rolled(11 * SECOND - 1, 15), None);
    let next = ledger.rolled(11 * SECOND, 15).expect("one has passed");
    assert_eq!((next.left, next.position), (to_i64(amount(95)), 15));
    let again = next.rolled(21 * SECOND, 15).expect("another one has");
    assert_eq!(again.left, to_i64(amount(100)));
}

#[test]
fn what_comes_back_is_counted_from_the_last_report() {
    for told in [false, true] {
        let ledger = Ledger { told, ..refill(50) };
        let next = ledger.rolled(11 * SECOND, 15).expect("one has passed");
        assert_eq!(next.rolled, 10);
    }
    let next = window(50).rolled(9 * SECOND, 15).expect("one has begun");
    assert_eq!(next.rolled, 15);
}

#[test]
fn a_limit_is_old_after_a_window_or_ten_seconds() {
    for (window_of, after) in [(SECOND, SECOND), (60 * SECOND, 10 * SECOND)] {
        let ledger = Ledger {
            window: window_of,
            ..window(50)
        };
        let at = ledger.heard_at + after;
        assert_eq!([at, at + 1].map(|now| ledger.is_old(now)), [false, true]);
    }
}

#[test]
fn others_are_forgotten_in_silence() {
    let once = among_others(window(50)).rolled(9 * SECOND, 10);
    let once = once.expect("one has begun");
    assert_eq!(once.seen.others, per_second(1));
    let twice = once.rolled(19 * SECOND, 10).expect("another one has");
    assert_eq!(twice.seen.others, 0);
}

#[test]
fn a_report_stops_a_client_for_an_hour() {
    const HOUR: u64 = 3_600 * SECOND;
    let year = Ledger {
        window: 365 * 24 * HOUR,
        reset: Within {
            lo: 1 << 56,
            hi: 1 << 56,
        },
        ..window(0)
    };
    assert_eq!(year.standing(SECOND, 10).barred(1), Some(HOUR));
    assert_eq!(year.standing(SECOND + HOUR, 10).barred(1), None);
    // Two hours do not allow two requests.
    for hours in [1, 2] {
        let now = SECOND + hours * HOUR;
        let probed = year.rolled(now, 10).expect("an hour has passed");
        assert_eq!(probed.left, to_i64(amount(1)));
        assert_eq!(probed.standing(now, 10).barred(1), None);
        assert_eq!(probed.standing(now, 11).barred(1), Some(HOUR));
    }
    // A spent window of a month, which was told, is believed until its reset.
    let month = Ledger {
        source: Source::Told,
        window: 31 * 24 * HOUR,
        reset: Within {
            lo: to_i64(i128::from(30 * 24 * HOUR)),
            hi: to_i64(i128::from(30 * 24 * HOUR)),
        },
        ..year
    };
    assert_eq!(
        month.standing(SECOND, 10).barred(1),
        Some(30 * 24 * HOUR - SECOND)
    );
    assert_eq!(month.rolled(SECOND + HOUR, 10), None);
    // What is kept back comes on top; otherwise the heaviest request could not go.
    let mut wary = Ledger {
        kept: to_i64(amount(2)),
        ..year
    };
    wary.seen.heaviest = 3;
    let probed = wary.rolled(SECOND + HOUR, 10).expect("an hour has passed");
    assert_eq!(probed.left, to_i64(amount(5)));
}

#[test]
fn the_edge_is_where_the_bar_falls() {
    for left in [1, 5, 80, 100] {
        assert_eq!(window(left).standing(2 * SECOND, 10).edge(), 10 + left);
    }
    assert_eq!(among_others(window(5)).standing(2 * SECOND, 10).edge(), 12);
    // At the report, others are foreseen for four trips: 0.8 tokens.
    assert_eq!(among_others(window(5)).standing(SECOND, 10).edge(), 12);
    let paused = Ledger {
        pause: 3 * SECOND,
        ..window(5)
    };
    assert_eq!(paused.standing(2 * SECOND, 10).edge(), 10);
}
