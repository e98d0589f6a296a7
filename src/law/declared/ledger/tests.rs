//! The rules of one limit in plain numbers, at the very edges between the cases.

use super::*;

const S: u64 = SECOND;
const MINUTE: u64 = 60 * S;
/// How far a time that is not whole seconds may be off.
const MILLI: u64 = FINE;

fn tokens(tokens: i64) -> i64 {
    tokens << 20
}

fn per_second(tokens: i64) -> i64 {
    tokens << 32
}

fn between(lo: u64, hi: u64) -> Within {
    Within {
        lo: signed(lo),
        hi: signed(hi),
    }
}

/// The rate that spends `free` in `nanos`.
fn spread(free: i128, nanos: u64) -> Rate {
    Rate::from_raw((u128::try_from(free).expect("something is free") << 44) / u128::from(nanos))
}

/// 600 a minute, of which 300 were left at 50 s, after the send at 100.
fn known(kind: Kind) -> Ledger {
    Ledger {
        limit: 600,
        window: MINUTE,
        kind,
        left: tokens(300),
        position: 100,
        at: 50 * S,
        reset: between(59 * S, 61 * S),
        trip: 2 * S,
        shortest: S,
        heaviest: 1,
        ..Ledger::default()
    }
}

/// A report at 52 s of the send at 110, which left at 51 s: 280 of 600 are left, for 8 s.
fn report() -> Seen {
    Seen {
        now: 52 * S,
        sent_at: 51 * S,
        order: 110,
        weight: 1,
        sent: 110,
        answered: 20,
        dimension: Dimension::Requests,
        policy: LimitName::default(),
        limit: Some(600),
        remaining: 280,
        window: None,
        reset: Some(ResetAt::In(8 * S)),
        refills: None,
        date: None,
    }
}

fn reset_in(nanos: u64) -> Seen {
    Seen {
        reset: Some(ResetAt::In(nanos)),
        ..report()
    }
}

#[test]
fn only_an_interval_of_nothing_but_zero_is_unknown() {
    let is_known = |lo, hi| Within { lo, hi }.is_known();
    assert!(!is_known(0, 0));
    assert!(is_known(0, 1) && is_known(-1, 0) && is_known(-1, 1));
}

#[test]
fn reports_have_stopped_after_two_windows_and_eight_answers() {
    let ledger = Ledger {
        heard_at: 10 * S,
        answers: 10,
        ..known(Kind::Window)
    };
    let late = 130 * S + 1;
    for (now, answered, silent) in [
        (130 * S, 18, false),
        (late, 18, true),
        (late, 17, false),
        // Counted before the report.
        (late, 5, false),
    ] {
        assert_eq!(ledger.is_silent(now, answered), silent, "{now} {answered}");
    }
    assert_eq!(ledger.heard_at(), 10 * S);
}

#[test]
fn what_is_left_is_carried_forward() {
    use Kind::{Refill, Sliding, Unknown, Window};
    // Kind, others per second, settled, now in seconds: tokens left, and milliseconds until whole.
    for (kind, foreign, settled, now, left, rest) in [
        (Refill, 0, 0, 60, 397, 20_300),
        (Refill, 4, 0, 60, 381, 21_900),
        (Refill, 4, 5, 60, 376, 22_400),
        // Others take no more than comes back in two trips.
        (Refill, 50, 0, 60, 357, 24_300),
        (Refill, 0, 0, 90, 597, 300),
        (Sliding, 0, 0, 62, 357, 3_750),
        (Sliding, 4, 0, 62, 341, 3_750),
        (Sliding, 50, 0, 62, 337, 3_750),
        (Window, 4, 0, 55, 277, 4_000),
        (Unknown, 4, 5, 55, 272, 4_000),
        // Others are foreseen for four trips.
        (Window, 4, 0, 60, 265, 0),
    ] {
        let ledger = Ledger {
            foreign: per_second(foreign),
            settled: tokens(settled),
            ..known(kind)
        };
        let (level, until) = ledger.level(now * S, 103);
        let want = (i128::from(tokens(left)), rest * MILLI);
        assert_eq!((level, until), want, "{kind:?} {foreign} {settled} {now}");
    }
    // Nothing is unseen that the report is about.
    let (level, _) = known(Window).level(55 * S, 90);
    assert_eq!(level, amount(300));
}

#[test]
fn the_part_is_taken_to_the_power_of_three_quarters() {
    for (own, foreign, part) in [
        (0, 0, 1 << 32),
        (1, 0, 1 << 32),
        (0, 1, 1 << 30),
        (1, 15, 1 << 29),
    ] {
        let ledger = Ledger {
            own: per_second(own),
            foreign: per_second(foreign),
            ..Ledger::default()
        };
        assert_eq!(ledger.part(), part, "{own} of {foreign} more");
    }
}

#[test]
fn what_is_free_is_spread_over_the_rest() {
    use Spend::{Even, Fast};
    // Kind, spend, and in milliseconds: trip, width of the reset, rest; what 80 are spread over.
    for (kind, spend, trip, unsure, rest, over) in [
        (Kind::Window, Even, 0, 0, 10_000, 10_000),
        (Kind::Window, Even, 250, 0, 10_000, 9_500),
        (Kind::Window, Even, 100, 500, 10_000, 9_300),
        // At most a tenth is left out.
        (Kind::Window, Even, 2_000, 0, 9_000, 8_000),
        (Kind::Window, Fast, 2_000, 0, 9_000, 4_000),
        (Kind::Window, Fast, 100, 0, 9_000, 1_000),
        (Kind::Window, Fast, 100, 0, 300, 170),
        (Kind::Window, Even, 100, 0, 112, 50),
        (Kind::Refill, Even, 2_000, 500, 9_000, 9_000),
        (Kind::Refill, Even, 4_000, 0, 0, 2_000),
        (Kind::Refill, Even, 0, 0, 0, 50),
    ] {
        let ledger = Ledger {
            trip: trip * MILLI,
            reset: between(150 * S, 150 * S + unsure * MILLI),
            ..known(kind)
        };
        let rate = ledger.rate(spend, 100 * S, amount(80), rest * MILLI);
        assert_eq!(
            rate,
            spread(amount(80), over * MILLI),
            "{kind:?} {trip} {rest}"
        );
    }
    // Just before the reset no more than the limit by its window.
    for (trip, rest) in [(0, 0), (100, 0), (100, 111), (4_000, 100)] {
        let ledger = Ledger {
            trip: trip * MILLI,
            reset: between(150 * S, 150 * S),
            ..known(Kind::Window)
        };
        let rates = [Even, Fast].map(|spend| ledger.rate(spend, 100 * S, amount(80), rest * MILLI));
        assert_eq!(rates, [ledger.even(); 2], "{trip} {rest}");
    }
    let slow = known(Kind::Refill).rate(Even, 100 * S, 1, LONGEST_SPAN);
    assert_eq!(slow, Rate::from_ratio(1, 1 << 49));
}

#[test]
fn no_more_than_the_limit_by_its_window_goes_early() {
    let ledger = Ledger {
        first_at: 96 * S,
        ..known(Kind::Refill)
    };
    let even = spread(amount(600), MINUTE);
    let fast = spread(amount(80), 2 * S);
    let rate = |ledger: &Ledger, spend, now| ledger.rate(spend, now, amount(80), 2 * S);
    assert_eq!(ledger.early_until(), 100 * S);
    assert_eq!(rate(&ledger, Spend::Even, 100 * S - 1), even);
    assert_eq!(rate(&ledger, Spend::Even, 100 * S), fast);
    let fresh = Ledger {
        fresh: true,
        ..ledger
    };
    assert_eq!(rate(&fresh, Spend::Even, 100 * S), even);
    assert_eq!(rate(&fresh, Spend::Fast, 100 * S), fast);
}

#[test]
fn what_is_saved_counts_as_taken() {
    let ledger = known(Kind::Window);
    let less = Ledger {
        left: tokens(297),
        ..ledger
    };
    assert_eq!(
        ledger.plan(Spend::Even, 55 * S, 100, 0, 3 << 24),
        less.plan(Spend::Even, 55 * S, 100, 0, 0)
    );
}

#[test]
fn with_less_than_one_left_a_refill_waits_for_it() {
    let ledger = Ledger {
        left: tokens(1) / 4,
        ..known(Kind::Refill)
    };
    let plan = ledger.plan(Spend::Even, 50 * S, 100, 0, 0);
    let want = Plan::Wait {
        until: 50_075 * MILLI,
        then: spread(UNIT, 59_975 * MILLI),
    };
    assert_eq!(plan, Some(want));
}

#[test]
fn with_nothing_left_a_window_waits_for_its_end() {
    let ledger = Ledger {
        left: 0,
        own: per_second(1),
        foreign: per_second(1),
        ..known(Kind::Window)
    };
    let next = ledger.rolled(61 * S, 100).expect("the window has ended");
    // One and an eighth are kept back from 600: others are half as quick as before.
    let free = amount(600) - UNIT * 9 / 8;
    let then = next.rate(Spend::Fast, 61 * S, free, 58 * S);
    let until = 61 * S;
    let plan = ledger.plan(Spend::Fast, 55 * S, 100, 0, 0);
    assert_eq!(plan, Some(Plan::Wait { until, then }));
    // An end that is now is none to wait for; in 50 ms others take a fortieth.
    let until = 61_050 * MILLI;
    let then = next.rate(Spend::Fast, until, free - UNIT / 40, 57_950 * MILLI);
    let plan = ledger.plan_in_window(Spend::Fast, 61 * S, 100, 0);
    assert_eq!(plan, Plan::Wait { until, then });
}

#[test]
fn a_pause_ends_at_its_end_or_with_the_window() {
    let ledger = Ledger {
        pause: 5 * S,
        at: 7 * S,
        ..known(Kind::Window)
    };
    let fresh = Ledger {
        fresh: true,
        ..ledger
    };
    assert_eq!(ledger.resumed_at(10 * S), 5 * S);
    assert_eq!(ledger.resumed_at(3 * S), 3 * S);
    assert_eq!(fresh.resumed_at(10 * S), 7 * S);
    assert_eq!(known(Kind::Window).resumed_at(10 * S), 10 * S);
}

#[test]
fn a_window_begins_where_the_last_one_ended() {
    let ledger = Ledger {
        own: per_second(5),
        foreign: per_second(6),
        settled: tokens(5),
        ..known(Kind::Window)
    };
    let want = Ledger {
        left: tokens(600),
        // Of 140, twenty may be on their way: five a second for two trips.
        position: 120,
        at: 61 * S,
        reset: between(119 * S, 121 * S),
        fresh: true,
        foreign: per_second(3),
        rolled: 140,
        // 300, less 40 sent, five settled and six a second for four trips, were left.
        used_before: 600 - (300 - 40 - 5 - 48),
        settled: 0,
        ..ledger
    };
    assert_eq!(ledger.rolled(61 * S - 1, 140), None);
    assert_eq!(ledger.rolled(61 * S, 140), Some(want));
    let second = Ledger {
        at: 121 * S,
        reset: between(179 * S, 181 * S),
        ..want
    };
    assert_eq!(ledger.rolled(126 * S, 140), Some(second));
    let quick = Ledger {
        own: per_second(100),
        ..ledger
    };
    let flying = |sent| sent - quick.rolled(61 * S, sent).expect("it has ended").position;
    assert_eq!((flying(300), flying(110)), (60, 10));
    for none in [
        known(Kind::Refill),
        known(Kind::Sliding),
        Ledger {
            reset: Within::default(),
            ..ledger
        },
        Ledger {
            window: 0,
            ..ledger
        },
    ] {
        assert_eq!(none.rolled(200 * S, 140), None, "{none:?}");
    }
}

#[test]
fn a_report_of_too_much_is_wrong() {
    let ledger = known(Kind::Window);
    for (limit, remaining, wrong) in [
        (0, 0, true),
        (MOST_TOKENS, MOST_TOKENS, false),
        (MOST_TOKENS + 1, 5, true),
        (600, MOST_TOKENS, false),
        (600, MOST_TOKENS + 1, true),
    ] {
        let seen = Seen {
            limit: Some(limit),
            remaining,
            ..report()
        };
        let (next, heard) = ledger.heard(&seen);
        assert_eq!(heard == Heard::Wrong, wrong, "{limit} {remaining}");
        assert_eq!(next == ledger, wrong, "{limit} {remaining}");
    }
}

#[test]
fn the_heaviest_request_is_forgotten_slowly() {
    for (before, weight, after) in [(640, 1, 630), (640, 635, 635), (0, 3, 3)] {
        let ledger = Ledger {
            heaviest: before,
            ..known(Kind::Window)
        };
        let seen = Seen { weight, ..report() };
        assert_eq!(ledger.heard(&seen).0.heaviest, after, "{before} {weight}");
    }
}

/// Rule 5: an older send's report that says less was answered later.
#[test]
fn an_older_report_only_lowers_the_window_that_it_is_of() {
    let older = |remaining, nanos| Seen {
        order: 90,
        remaining,
        ..reset_in(nanos)
    };
    let window = known(Kind::Window);
    let fresh = Ledger {
        fresh: true,
        rolled: 100,
        ..window
    };
    let (next, heard) = window.heard(&older(299, 8 * S));
    assert_eq!((next.left, heard), (tokens(299), Heard::Taken));
    assert_eq!((next.position, next.at), (window.position, window.at));
    for (ledger, seen) in [
        (window, older(300, 8 * S)),
        (window, older(299, 4 * S)),
        (window, older(299, 30 * S)),
        (known(Kind::Unknown), older(299, 8 * S)),
        (known(Kind::Refill), older(299, 8 * S)),
        (fresh, older(299, 4 * S)),
    ] {
        let (next, heard) = ledger.heard(&seen);
        assert_eq!((next.left, heard), (tokens(300), Heard::Late), "{seen:?}");
    }
}

#[test]
fn what_others_take_is_known_within_one_window_of_one_limit() {
    let rates = |ledger: &Ledger, seen: &Seen| {
        let (next, heard) = ledger.heard(seen);
        (next.own, next.foreign, heard)
    };
    let ledger = Ledger {
        own: per_second(1),
        foreign: per_second(2),
        ..known(Kind::Window)
    };
    // Ten by this client and ten by others in 1.5 s, over a trip of 1.875 s four times.
    let mean = |rate: i128, taken: i128| {
        to_i64((((rate * 7_500) << 32) + ((taken * 1_000) << 32)) / 9_000)
    };
    let counted = (mean(1, 10), mean(2, 10), Heard::Taken);
    assert_eq!(rates(&ledger, &report()), counted);
    let other = Seen {
        limit: Some(700),
        ..report()
    };
    let kept = (ledger.own, ledger.foreign);
    let (own, foreign, heard) = rates(&ledger, &other);
    assert_eq!(((own, foreign), heard), (kept, Heard::Changed));
    // A later reset, once the window may have ended.
    let later = Seen {
        now: 60 * S,
        sent_at: 59 * S,
        ..reset_in(59 * S)
    };
    let (own, foreign, heard) = rates(&ledger, &later);
    assert_eq!(((own, foreign), heard), (kept, Heard::Taken));
}

#[test]
fn a_limit_has_changed_if_its_number_or_declared_window_has() {
    let window_of = |window, limit| Seen {
        window: Some(window),
        limit: Some(limit),
        ..report()
    };
    let undeclared = known(Kind::Window);
    let declared = Ledger {
        window_declared: true,
        ..undeclared
    };
    for (ledger, seen, heard) in [
        (undeclared, report(), Heard::Taken),
        (undeclared, window_of(MINUTE, 600), Heard::Taken),
        (undeclared, window_of(MINUTE, 700), Heard::Changed),
        (declared, window_of(MINUTE, 600), Heard::Taken),
        (declared, window_of(2 * MINUTE, 600), Heard::Changed),
        (Ledger::default(), report(), Heard::Declared),
    ] {
        assert_eq!(ledger.heard(&seen).1, heard, "{ledger:?} {seen:?}");
    }
}

/// Rule 9.
#[test]
fn what_is_settled_counts_from_the_first_of_its_sends() {
    let ledger = known(Kind::Window);
    let settled = |ledger: &Ledger, order, more| {
        let next = ledger.settled(52 * S, 120, order, more)?;
        Some((next.settled, next.settled_from))
    };
    assert_eq!(settled(&ledger, 100, 3), None);
    assert_eq!(settled(&ledger, 101, 3), Some((tokens(3), 101)));
    let once = ledger.settled(52 * S, 120, 110, 3).expect("it is new");
    assert_eq!(settled(&once, 112, 4), Some((tokens(7), 110)));
    assert_eq!(settled(&once, 108, -4), Some((tokens(-1), 108)));
    let report = |order| Seen { order, ..report() };
    assert_eq!(once.settled_by(&report(109)), 0);
    assert_eq!(once.settled_by(&report(110)), tokens(3));
}

#[test]
fn another_limit_is_found_out_anew() {
    let found = |kind| Ledger {
        refuted_window: 1,
        refuted_refill: 2,
        kept: 3,
        pace: between(1, 2),
        bias: 4,
        ..known(kind)
    };
    for (before, after) in [
        (Kind::Sliding, Kind::Unknown),
        (Kind::Refill, Kind::Refill),
        (Kind::Window, Kind::Window),
    ] {
        let mut ledger = found(before);
        ledger.begin(700);
        let want = Ledger {
            limit: 700,
            ..known(after)
        };
        assert_eq!(ledger, want);
    }
}

/// Rule 7.
#[test]
fn the_difference_of_the_clocks_narrows() {
    let dated = |ledger: &Ledger, date, sent_at, now| {
        let mut next = *ledger;
        let seen = Seen {
            now,
            sent_at,
            ..report()
        };
        next.note_date(date, &seen);
        assert!(next.offset_known);
        next
    };
    // Zero is no better known than another number.
    let first = dated(&known(Kind::Window), 52 * S, 51 * S, 52 * S);
    assert_eq!(first.offset, between(0, 2 * S));
    let first = dated(&known(Kind::Window), 50 * S, 51 * S, 52 * S);
    assert_eq!((first.offset.lo, first.offset.hi), (-signed(2 * S), 0));
    let first = dated(&known(Kind::Window), 1_000 * S, 51 * S, 52 * S);
    assert_eq!(first.offset, between(948 * S, 950 * S));
    let second = dated(&first, 1_001 * S, 52 * S, 52_500 * MILLI);
    assert_eq!(second.offset, between(948_500 * MILLI, 950 * S));
    let moved = dated(&second, 2_000 * S, 52 * S, 53 * S);
    assert_eq!(moved.offset, between(1_947 * S, 1_949 * S));
}

#[test]
fn a_reset_is_as_exact_as_it_is_said() {
    let ledger = known(Kind::Window);
    let dated = Ledger {
        offset: between(948 * S, 950 * S),
        offset_known: true,
        ..ledger
    };
    let at = |epoch| Seen {
        reset: Some(ResetAt::At(epoch)),
        ..report()
    };
    let (whole, fine) = (between(58 * S, 61 * S), 8_500 * MILLI);
    let around = between(59_499 * MILLI, 60_501 * MILLI);
    let farthest = LONGEST_SPAN + (52 + 950) * S;
    let last = between(LONGEST_SPAN + 52 * S, LONGEST_SPAN + 54 * S);
    for (ledger, seen, reset) in [
        (ledger, reset_in(8 * S), Some(whole)),
        (ledger, reset_in(fine), Some(around)),
        (ledger, reset_in(LONGEST_SPAN + 1), None),
        (ledger, at(1_010 * S), None),
        (dated, at(1_010 * S), Some(between(60 * S, 62 * S))),
        (dated, at(farthest), Some(last)),
        (dated, at(farthest + 1), None),
    ] {
        assert_eq!(ledger.reset_of(&seen, None), reset, "{seen:?}");
    }
    assert!(ledger.reset_of(&reset_in(LONGEST_SPAN), None).is_some());
}

#[test]
fn a_window_without_a_reset_ends_at_a_multiple_of_it() {
    let ledger = Ledger {
        offset: between(948 * S, 950 * S),
        offset_known: true,
        ..known(Kind::Window)
    };
    let seen = Seen {
        reset: None,
        date: Some(1_000 * S),
        ..report()
    };
    // At 1,020 s by the service's clock.
    let reset = Some(between(70 * S, 72 * S));
    assert_eq!(ledger.reset_of(&seen, Some(MINUTE)), reset);
    assert_eq!(ledger.reset_of(&seen, None), None);
    let declared = Ledger {
        window_declared: true,
        ..ledger
    };
    assert_eq!(declared.reset_of(&seen, None), reset);
    assert_eq!(declared.reset_of(&seen, Some(1_500 * MILLI)), None);
    for (refills, want) in [(Some(true), None), (Some(false), reset)] {
        let seen = Seen { refills, ..seen };
        assert_eq!(ledger.reset_of(&seen, Some(MINUTE)), want);
    }
}

#[test]
fn the_kind_is_what_is_declared_or_what_a_time_says() {
    use Kind::{Refill, Sliding, Unknown, Window};
    let here = Some(between(58 * S, 61 * S));
    let (nearby, date) = (Some(ResetAt::In(8 * S)), Some(ResetAt::At(8 * S)));
    for (before, refills, reset, within, after) in [
        (Sliding, Some(true), nearby, here, Sliding),
        (Unknown, Some(true), nearby, here, Refill),
        (Refill, Some(false), nearby, here, Window),
        (Unknown, None, date, here, Window),
        (Unknown, None, nearby, here, Unknown),
        (Unknown, None, None, here, Window),
        (Unknown, None, None, None, Unknown),
        (Refill, None, None, None, Refill),
    ] {
        let mut ledger = known(before);
        let seen = Seen {
            reset,
            refills,
            ..report()
        };
        ledger.note_window(None, within, &seen);
        assert_eq!(ledger.kind, after, "{before:?} {refills:?} {reset:?}");
    }
}

#[test]
fn another_declared_window_has_another_pace() {
    let before = Ledger {
        pace: between(1, 2),
        ..known(Kind::Window)
    };
    for (window, pace) in [(MINUTE, before.pace), (2 * MINUTE, Within::default())] {
        let mut ledger = before;
        ledger.note_window(Some(window), None, &report());
        let want = Ledger {
            window,
            window_declared: true,
            pace,
            ..before
        };
        assert_eq!(ledger, want);
    }
}

/// Rule 6. Of 600 that many are left, with that many seconds to the reset, which may be a second
/// sooner, of a request sent a second ago.
#[test]
fn the_window_is_guessed_from_the_first_reset() {
    let hour = 60 * MINUTE;
    for (before, remaining, seconds, after) in [
        // The least usual one that holds the reset.
        (0, 280, 8, MINUTE),
        (0, 580, 8, MINUTE),
        (0, 280, 62, MINUTE),
        (0, 280, 64, hour),
        // A reset nearer than two trips counts as a refill's, exactly where little is used.
        (0, 580, 3, 90 * S),
        (0, 580, 5, 150 * S),
        (0, 580, 6, MINUTE),
        (0, 564, 3, 50 * S),
        (0, 563, 3, MINUTE),
        (0, 280, 3, MINUTE),
        // It only grows.
        (MINUTE, 580, 3, MINUTE),
        (MINUTE, 280, 90, hour),
        (90 * S, 280, 92, 90 * S),
        (hour, 280, 8, hour),
        (hour, 280, 3_702, 24 * hour),
    ] {
        let mut ledger = Ledger {
            window: before,
            ..known(Kind::Unknown)
        };
        let seen = Seen {
            remaining,
            ..reset_in(seconds * S)
        };
        let reset = ledger.reset_of(&seen, None);
        ledger.note_window(None, reset, &seen);
        assert_eq!(ledger.window, after, "{before} {remaining} {seconds}");
    }
    let far = reset_in(90 * S);
    let declared = Ledger {
        window_declared: true,
        ..known(Kind::Unknown)
    };
    for before in [known(Kind::Refill), declared] {
        let mut ledger = before;
        ledger.note_window(None, before.reset_of(&far, None), &far);
        assert_eq!(ledger, before);
    }
}

/// Rule 5. The anchor is of the send at 100, and a window that began of the send at 105.
#[test]
fn news_are_of_a_later_send_or_a_later_window() {
    use Kind::{Refill, Sliding, Unknown, Window};
    let ledger = |kind, fresh| Ledger {
        fresh,
        rolled: 105,
        ..known(kind)
    };
    let same = Some(between(58 * S, 60 * S));
    let (later, sooner) = (Some(between(62 * S, 63 * S)), Some(between(1, 2)));
    for (kind, fresh, order, now, reset, news) in [
        (Refill, false, 100, 52, same, None),
        (Refill, false, 101, 52, same, Some(true)),
        (Sliding, false, 101, 52, sooner, Some(true)),
        (Window, false, 100, 52, None, None),
        (Window, false, 101, 52, None, Some(true)),
        (Window, true, 105, 52, None, None),
        (Window, true, 106, 52, None, Some(true)),
        (Window, false, 100, 54, same, None),
        (Window, false, 101, 54, same, Some(true)),
        (Window, true, 100, 54, same, Some(true)),
        // Nearer than two trips, and more than what was left less what was sent.
        (Window, false, 125, 53, same, None),
        (Unknown, false, 125, 53, same, Some(true)),
        // A later reset is a new window's only once this one may have ended.
        (Window, false, 100, 58, later, None),
        (Window, false, 101, 58, later, Some(true)),
        (Window, false, 100, 59, later, Some(false)),
        (Window, false, 101, 59, later, Some(false)),
        (Window, false, 101, 52, sooner, None),
        (Unknown, false, 101, 52, sooner, Some(true)),
        (Unknown, false, 100, 52, sooner, None),
        (Window, true, 105, 52, sooner, None),
        (Window, true, 106, 52, sooner, Some(true)),
    ] {
        let seen = Seen {
            order,
            now: now * S,
            ..report()
        };
        let got = ledger(kind, fresh).is_news(&seen, reset);
        assert_eq!(got, news, "{kind:?} {fresh} {order} {now} {reset:?}");
    }
    let unknown = Ledger {
        reset: Within::default(),
        ..ledger(Window, false)
    };
    assert_eq!(unknown.is_news(&report(), sooner), Some(true));
    let old = Seen {
        order: 99,
        ..report()
    };
    let fresh = Ledger {
        rolled: 90,
        ..ledger(Window, true)
    };
    assert_eq!(fresh.is_news(&old, None), None);
    assert_eq!(fresh.is_news(&old, sooner), None);
}

#[test]
fn a_report_overtakes_for_two_trips_if_it_says_more() {
    let settled = Ledger {
        settled: tokens(5),
        settled_from: 105,
        ..known(Kind::Window)
    };
    let last = 54 * S - 1;
    for (ledger, now, remaining, overtakes) in [
        (known(Kind::Window), last, 290, false),
        (known(Kind::Window), last, 291, true),
        (known(Kind::Window), 54 * S, 291, false),
        (known(Kind::Unknown), last, 291, false),
        (settled, last, 285, false),
        (settled, last, 286, true),
    ] {
        let seen = Seen {
            now,
            remaining,
            ..report()
        };
        assert_eq!(ledger.overtakes(&seen), overtakes, "{now} {remaining}");
    }
}

#[test]
fn a_reset_that_moves_refutes_the_window() {
    let ledger = known(Kind::Window);
    let fresh = Ledger {
        fresh: true,
        ..ledger
    };
    let unknown = Ledger {
        reset: Within::default(),
        ..ledger
    };
    let same = between(60 * S, 62 * S);
    let (later, sooner) = (between(62 * S, 63 * S), between(57 * S, 58 * S));
    for (before, sent_at, reset, refuted) in [
        (ledger, 51 * S, same, 0),
        (ledger, 51 * S, later, 1),
        (ledger, 51 * S, sooner, 1),
        (ledger, 59 * S - 1, later, 1),
        // The window may have begun.
        (ledger, 59 * S, later, 0),
        (fresh, 51 * S, later, 0),
        (fresh, 51 * S, sooner, 1),
        (fresh, 51 * S, same, 0),
        (unknown, 51 * S, later, 0),
    ] {
        let seen = Seen {
            sent_at,
            remaining: 600,
            ..report()
        };
        let mut next = before;
        next.test(&seen, Some(reset));
        let want = Ledger {
            refuted_window: refuted,
            ..before
        };
        assert_eq!(next, want, "{sent_at} {reset:?}");
    }
}

#[test]
fn a_refill_is_whole_in_proportion_to_what_is_used() {
    let same = Some(between(60 * S, 62 * S));
    let tested = |before: &Ledger, remaining, nanos| {
        let mut next = *before;
        let seen = Seen {
            remaining,
            ..reset_in(nanos)
        };
        next.test(&seen, same);
        next
    };
    let ledger = known(Kind::Window);
    // 320 used, give or take 18 and what is rounded; whole seconds and exact ones.
    let coarse = between(7 * S / 339, 2 * 9 * S / 602 + 1);
    let fine = between(8_499 * MILLI / 339, 2 * 8_501 * MILLI / 602 + 1);
    assert_eq!(tested(&ledger, 280, 8 * S).pace, coarse);
    assert_eq!(tested(&ledger, 280, 8_500 * MILLI).pace, fine);
    // Hardly anything used, or nothing left, says nothing.
    assert_eq!(tested(&ledger, 582, 8 * S), ledger);
    assert_eq!(tested(&ledger, 0, 8 * S), ledger);
    let little = between(7 * S / 38, 2 * 9 * S + 1);
    assert_eq!(tested(&ledger, 581, 8 * S).pace, little);
    let last = between(7 * S / 618, 2 * 9 * S / 1_160 + 1);
    assert_eq!(tested(&ledger, 1, 8 * S).pace, last);
    // It narrows, or is refuted.
    let narrowed = tested(&tested(&ledger, 280, 8 * S), 280, 8_500 * MILLI);
    assert_eq!((narrowed.pace, narrowed.refuted_refill), (fine, 0));
    let refuted = tested(&narrowed, 280, 16 * S);
    let other = between(15 * S / 339, 2 * 17 * S / 602 + 1);
    assert_eq!((refuted.pace, refuted.refuted_refill), (other, 1));
}

#[test]
fn what_is_refuted_is_counted_in_a_byte() {
    for (window, refill) in [(255, 100), (100, 255)] {
        let mut ledger = Ledger {
            refuted_window: window,
            refuted_refill: refill,
            ..known(Kind::Sliding)
        };
        let seen = Seen {
            remaining: 600,
            ..report()
        };
        ledger.test(&seen, Some(ledger.reset));
        let halved = (ledger.refuted_window, ledger.refuted_refill);
        assert_eq!(halved, (window / 2, refill / 2));
    }
}

/// Rule 6.
#[test]
fn what_is_refuted_four_times_as_often_is_wrong() {
    use Kind::{Refill, Sliding, Unknown, Window};
    for (window, refill, paced, decided) in [
        (1, 0, true, None),
        (2, 0, true, Some(Refill)),
        (2, 0, false, None),
        (3, 1, true, None),
        (4, 1, true, Some(Refill)),
        (0, 1, true, None),
        (0, 2, true, Some(Window)),
        (1, 1, true, None),
        (1, 3, true, None),
        (1, 4, true, Some(Window)),
        (2, 2, true, Some(Unknown)),
        (7, 2, true, Some(Unknown)),
        (2, 7, true, Some(Unknown)),
        (8, 2, true, Some(Refill)),
        (2, 8, true, Some(Window)),
    ] {
        for before in [Unknown, Refill, Window, Sliding] {
            let mut ledger = Ledger {
                window_declared: true,
                refuted_window: window,
                refuted_refill: refill,
                pace: if paced {
                    between(1, 2)
                } else {
                    Within::default()
                },
                ..known(before)
            };
            let seen = Seen {
                remaining: 600,
                ..report()
            };
            ledger.test(&seen, Some(ledger.reset));
            let after = match before {
                Sliding => Sliding,
                before => decided.unwrap_or(before),
            };
            assert_eq!(ledger.kind, after, "{window} {refill} {before:?}");
        }
    }
}

#[test]
fn the_window_of_a_refill_follows_from_its_pace() {
    let seen = Seen {
        remaining: 600,
        ..report()
    };
    // 0.2 to 0.3 s for one of 600: the harmonic mean is 0.24 s.
    let paced = |kind, window_declared| Ledger {
        window_declared,
        pace: between(200 * MILLI, 300 * MILLI),
        ..known(kind)
    };
    for (before, window) in [
        (paced(Kind::Refill, false), 144 * S),
        (paced(Kind::Refill, true), MINUTE),
        (paced(Kind::Window, false), MINUTE),
    ] {
        let mut ledger = before;
        ledger.test(&seen, Some(ledger.reset));
        assert_eq!(ledger, Ledger { window, ..before });
    }
}

#[test]
fn a_report_is_the_anchor_from_then_on() {
    let before = Ledger {
        fresh: true,
        settled: tokens(5),
        settled_from: 110,
        reset: between(59 * S, 61 * S),
        ..known(Kind::Window)
    };
    let mut ledger = before;
    ledger.anchor(&report(), Some(between(58 * S, 60 * S)), false);
    let want = Ledger {
        left: tokens(280),
        position: 110,
        at: 51_500 * MILLI,
        fresh: false,
        settled: 0,
        reset: between(59 * S, 60 * S),
        ..before
    };
    assert_eq!(ledger, want);
}

#[test]
fn what_was_let_through_with_less_lowers_what_is_taken_off() {
    // What is taken off halves in a hundred windows: eight of sixteen are left then.
    let (before, now) = (tokens(16), 6_000 * S);
    for (remaining, after) in [
        (9, (before, 0)),
        (8, (before, 0)),
        (7, (tokens(7), now)),
        (0, (0, now)),
    ] {
        let mut ledger = Ledger {
            bias: before,
            ..known(Kind::Window)
        };
        let seen = Seen {
            now,
            remaining,
            ..report()
        };
        ledger.anchor(&seen, None, false);
        assert_eq!((ledger.bias, ledger.bias_at), after, "{remaining}");
        let left = tokens(i64::try_from(remaining).expect("few") - 8).max(0);
        assert_eq!(ledger.left, left, "{remaining}");
    }
}

#[test]
fn what_is_taken_off_halves_in_a_hundred_windows() {
    let ledger = Ledger {
        bias: tokens(16),
        bias_at: 50 * S,
        ..known(Kind::Window)
    };
    for (after, left) in [
        (0, 16),
        (3_000, 12),
        (6_000, 8),
        (9_000, 6),
        (12_000, 4),
        (600_000, 0),
    ] {
        assert_eq!(ledger.bias_at((50 + after) * S), tokens(left), "{after}");
    }
}

#[test]
fn the_window_is_learned_from_the_distance_of_two_resets() {
    // Both are two seconds wide: the distance from the end of one to the beginning of the other.
    let learned = |ledger: &Ledger, distance| {
        let mut next = *ledger;
        let lo = 61 * S + distance;
        next.learn_window(between(lo, lo + 2 * S));
        next.window
    };
    let hour = 60 * MINUTE;
    let ledger = Ledger {
        window: hour,
        ..known(Kind::Window)
    };
    for (distance, window) in [
        (1_500 * MILLI, hour),
        (2 * S, hour),
        (2 * S + 1, 4 * S + 1),
        (39 * S, 41 * S),
        (55 * S, MINUTE),
        (59 * S, MINUTE),
        (61_500 * MILLI, MINUTE),
        (64 * S, 66 * S),
    ] {
        assert_eq!(learned(&ledger, distance), window, "{distance}");
    }
    let other = |kind| Ledger {
        window: hour,
        ..known(kind)
    };
    for known in [
        Ledger {
            window_declared: true,
            ..ledger
        },
        Ledger {
            reset: Within::default(),
            ..ledger
        },
        other(Kind::Unknown),
        other(Kind::Refill),
    ] {
        assert_eq!(learned(&known, 59 * S), hour, "{known:?}");
    }
    // A report of another reset teaches it.
    let mut next = ledger;
    next.anchor(&report(), Some(between(120 * S, 122 * S)), false);
    let reset = between(120 * S, 122 * S);
    assert_eq!((next.window, next.reset), (MINUTE, reset));
}

/// Rule 6.
#[test]
fn a_reset_that_twice_gave_nothing_back_is_of_a_sliding_window() {
    let late = 56 * S + 1;
    // Now, used before and now, resets that gave nothing back before and after; whether it slides.
    for (now, before, used, refuted, kept, after, slides) in [
        (56 * S, 8, 5, 1, 0, 1, false),
        (56 * S, 8, 5, 1, 1, 2, true),
        (56 * S, 8, 5, 0, 1, 2, false),
        (56 * S, 8, 5, 1, 2, 3, true),
        (56 * S, 8, 4, 1, 2, 0, false),
        (56 * S, 9, 4, 1, 2, 0, false),
        (56 * S, 7, 5, 1, 2, 2, false),
        (late, 8, 5, 1, 2, 2, false),
        (52 * S, 8, 5, 1, 1, 2, true),
    ] {
        let mut ledger = Ledger {
            used_before: before,
            refuted_refill: refuted,
            kept,
            ..known(Kind::Window)
        };
        let seen = Seen {
            now,
            remaining: 600 - used,
            ..report()
        };
        ledger.test_sliding(&seen);
        let got = (ledger.kept, ledger.kind == Kind::Sliding);
        assert_eq!(got, (after, slides), "{now} {before} {used} {kept}");
    }
}

#[test]
fn the_last_report_is_told_of_its_send_alone() {
    let told = Ledger {
        told: true,
        told_order: 110,
        told_left: 5,
        ..known(Kind::Window)
    };
    assert_eq!((told.told_left(110), told.told_left(111)), (Some(5), None));
    let silent = Ledger {
        told: false,
        ..told
    };
    let undeclared = Ledger { limit: 0, ..told };
    assert_eq!(silent.told_left(110), None);
    assert_eq!(undeclared.told_left(110), None);
}

/// Rule 8.
#[test]
fn a_throttle_in_spite_of_the_reports() {
    let told = |left, heaviest| Ledger {
        told: true,
        told_order: 110,
        told_left: left,
        heaviest,
        bias: tokens(3),
        throttled_at: 50 * S,
        ..known(Kind::Window)
    };
    let refused = |order| Refused {
        now: 52 * S,
        sent_at: 51 * S,
        order,
        until: 52 * S,
        blamed: true,
    };
    let throttled = |before: Ledger| Ledger {
        pause: 52 * S,
        throttled_at: 52 * S,
        ..before
    };
    let learned = |before: Ledger, left| Ledger {
        bias: tokens(left),
        bias_at: 52 * S,
        left: 0,
        ..throttled(before)
    };
    for (before, order, want, contradicts) in [
        // Of an unknown send after the anchor, and before it.
        (
            told(400, 1),
            101,
            Ledger {
                left: 0,
                position: 101,
                at: 52 * S,
                ..throttled(told(400, 1))
            },
            false,
        ),
        (told(400, 1), 100, throttled(told(400, 1)), false),
        // It explains itself, even of one that was too heavy for what was left.
        (told(0, 1), 110, throttled(told(0, 1)), false),
        (told(0, 0), 110, throttled(told(0, 0)), false),
        (told(4, 5), 110, throttled(told(4, 5)), false),
        // Reports say too much.
        (told(5, 5), 110, learned(told(5, 5), 5), true),
        (told(150, 1), 110, learned(told(150, 1), 150), true),
        // Another limit is not declared.
        (
            told(151, 1),
            110,
            Ledger {
                contradicted: 652 * S,
                ..throttled(told(151, 1))
            },
            true,
        ),
    ] {
        let refused = refused(order);
        assert_eq!(before.refused(&refused), want, "{order}");
        assert_eq!(before.is_contradicted_by(&refused), contradicts, "{order}");
        assert!(!want.is_contradicted(want.contradicted));
        let pause = Ledger {
            pause: 52 * S,
            ..before
        };
        for other in [
            Refused {
                blamed: false,
                ..refused
            },
            Refused {
                sent_at: 50 * S - 1,
                ..refused
            },
        ] {
            assert_eq!(before.refused(&other), pause, "{order}");
            assert!(!before.is_contradicted_by(&other), "{order}");
        }
    }
    // A second's window: the paced law has a say for a minute, and a pause lasts no longer.
    let second = Ledger {
        window: S,
        ..told(151, 1)
    };
    let long = Refused {
        until: 200 * S,
        ..refused(110)
    };
    let next = second.refused(&long);
    assert_eq!((next.pause, next.contradicted), (112 * S, 112 * S));
    assert_eq!(next.throttled_at, 112 * S);
}

#[test]
fn a_ledger_is_its_words() {
    let full = Ledger {
        dimension: Dimension::Named(LimitName::new("a-name-of-sixteen")),
        policy: LimitName::new("another-of-sixteen"),
        limit: 1,
        window: 2,
        kind: Kind::Sliding,
        window_declared: true,
        fresh: true,
        refuted_window: 0xa3,
        refuted_refill: 0x5c,
        kept: 0x96,
        left: -3,
        position: 4,
        at: 5,
        reset: Within { lo: -6, hi: 7 },
        pace: Within { lo: -8, hi: 9 },
        offset: Within { lo: -10, hi: 11 },
        offset_known: true,
        foreign: -12,
        own: 13,
        bias: -14,
        bias_at: 15,
        contradicted: 16,
        pause: 17,
        throttled_at: 18,
        first_at: 19,
        trip: 20,
        shortest: 21,
        heaviest: 22,
        heard_at: 23,
        answers: 24,
        told: true,
        told_order: 25,
        told_left: 26,
        rolled: 27,
        used_before: 28,
        settled: -29,
        settled_from: 30,
    };
    let none = Ledger::default();
    for ledger in [
        full,
        none,
        Ledger {
            dimension: Dimension::Tokens,
            ..none
        },
        Ledger {
            kind: Kind::Refill,
            ..none
        },
        Ledger {
            kind: Kind::Window,
            ..none
        },
        Ledger {
            window_declared: true,
            ..none
        },
        Ledger {
            fresh: true,
            ..none
        },
        Ledger {
            offset_known: true,
            ..none
        },
        Ledger { told: true, ..none },
        Ledger {
            refuted_window: 255,
            ..none
        },
        Ledger {
            refuted_refill: 255,
            ..none
        },
        Ledger { kept: 255, ..none },
    ] {
        assert_eq!(Ledger::from_words(&ledger.to_words()), ledger);
    }
}
