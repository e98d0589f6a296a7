//! Several limits on one request: all of them or none, and which one binds.

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{
    AcquireError, ControlLaw, Outcome, SendPermit, SendRate, SendSet, Timestamp, WeightError,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, Reset},
    set::{Binding, SetError, Weights},
};

use crate::support::{fixed, ms, wait};

fn not_in_time(limit: usize, millis: u64) -> SetError {
    let wait = wait(millis);
    let error = AcquireError::NotInTime { wait };
    SetError::Limit { limit, error }
}

/// Returns how many tokens `rate` has at `now`.
fn held(rate: &SendRate, now: Timestamp) -> u64 {
    format!("{:.0}", rate.snapshot(now).available)
        .parse()
        .expect("whole")
}

#[test]
fn a_request_takes_from_every_limit_or_from_none() {
    let (requests, tokens) = (fixed(8), fixed(1_000));
    let set = SendSet::new([&requests, &tokens]);
    let permit = set.try_acquire(ms(0), &[1, 600]).expect("both are full");
    assert_eq!(permit.get(0).map(SendPermit::weight), Some(1));
    assert_eq!(permit.get(1).map(SendPermit::weight), Some(600));
    assert_eq!(permit.get(2), None);
    assert_eq!(format!("{permit:?}"), "SetPermit(0: 1, 1: 600)");

    let refused = set.try_acquire(ms(0), &[1, 600]);
    assert_eq!(refused, Err(not_in_time(1, 200)));
    assert_eq!((held(&requests, ms(0)), held(&tokens, ms(0))), (7, 400));
    assert!(set.try_acquire(ms(199), &[1, 600]).is_err());
    assert!(set.try_acquire(ms(200), &[1, 600]).is_ok());
    assert_eq!((held(&requests, ms(200)), held(&tokens, ms(200))), (7, 0));
}

#[test]
fn a_refusal_names_the_limit_with_the_longest_wait() {
    for slow_one in [0, 1] {
        let (slow, fast) = (fixed(8), fixed(1_000));
        let set = SendSet::new(if slow_one == 0 {
            [&slow, &fast]
        } else {
            [&fast, &slow]
        });
        assert!(set.try_acquire(ms(0), &[8, 8]).is_ok());
        let weights = if slow_one == 0 {
            [1, 1_000]
        } else {
            [1_000, 1]
        };
        // 125 ms for the one, and 8 for the other, of which 992 are left.
        assert_eq!(
            set.try_acquire(ms(0), &weights),
            Err(not_in_time(slow_one, 125))
        );
    }
}

#[test]
fn of_equal_waits_the_first_limit_is_named() {
    let rates = [fixed(5), fixed(5)];
    let set = SendSet::new([&rates[0], &rates[1]]);
    let permit = set.try_acquire(ms(0), &[5, 5]).expect("both are full");
    assert_eq!(permit.get(1).map(SendPermit::weight), Some(5));
    assert_eq!(set.try_acquire(ms(0), &[1, 1]), Err(not_in_time(0, 200)));
}

#[test]
fn weights_are_one_to_eight() {
    for given in [0, 9] {
        let refused = Weights::of(&[1; 9][..given]);
        assert_eq!(refused.err(), Some(SetError::Rates { given }));
    }
    let eight = Weights::of(&[1; 8]).expect("as many as a set has");
    assert_eq!(eight.as_slice(), [1; 8]);
}

#[test]
fn a_set_prints_its_laws() {
    let (requests, tokens) = (fixed(8), fixed(1_000));
    let set = SendSet::new([&requests, &tokens]);
    assert_eq!(format!("{set:?}"), "SendSet(0: Paced, 1: Paced)");
}

#[test]
fn bad_weights_are_refused_and_change_nothing() {
    let (requests, tokens) = (fixed(8), fixed(1_000));
    let set = SendSet::new([&requests, &tokens]);
    let (given, rates) = (1, 2);
    assert_eq!(
        set.try_acquire(ms(0), &[1]),
        Err(SetError::Weights { given, rates })
    );
    let error = WeightError::Zero;
    assert_eq!(
        set.try_acquire(ms(0), &[0, 0]),
        Err(SetError::Limit {
            limit: 0,
            error: error.into()
        })
    );
    let (weight, capacity) = (1_001, 1_000);
    let error = WeightError::AboveCapacity { weight, capacity };
    let above = SetError::Limit {
        limit: 1,
        error: error.into(),
    };
    assert_eq!(set.try_acquire(ms(0), &[1, 1_001]), Err(above));
    assert_eq!(set.reserve(ms(0), &[1, 1_001]).map(drop), Err(above));
    assert_eq!((above.limit(), above.wait()), (Some(1), None));
    assert_eq!((held(&requests, ms(0)), held(&tokens, ms(0))), (8, 1_000));
    let permit = set.try_acquire(ms(0), &[1, 10]).expect("full");
    let (given, rates) = (3, 2);
    assert_eq!(
        set.settle(ms(0), permit, &[1, 2, 3]),
        Err(SetError::Weights { given, rates })
    );
    assert_eq!(held(&tokens, ms(0)), 990);
}

#[test]
fn a_weight_of_nothing_leaves_a_limit_alone() {
    let (requests, tokens) = (fixed(8), fixed(1_000));
    let set = SendSet::new([&requests, &tokens]);
    let permit = set.try_acquire(ms(0), &[0, 100]).expect("full");
    assert_eq!(permit.get(0), None);
    let mut place = set.reserve(ms(0), &[8, 0]).expect("full");
    assert!(place.claim(ms(0)).is_ok());
    assert_eq!((held(&requests, ms(0)), held(&tokens, ms(0))), (0, 900));
}

#[test]
fn a_set_has_one_to_eight_rates() {
    let rates: Vec<_> = (0..9).map(|_| Arc::new(fixed(5))).collect();
    let (given, none) = (9, 0);
    assert_eq!(
        SendSet::of(rates.clone()).map(drop),
        Err(SetError::Rates { given })
    );
    assert_eq!(
        SendSet::<&SendRate>::of([]).map(drop),
        Err(SetError::Rates { given: none })
    );
    let eight = SendSet::of(rates.into_iter().take(8)).expect("eight");
    assert!(eight.try_acquire(ms(0), &[5; 8]).is_ok());
    assert_eq!(eight.rates().count(), 8);
    assert_eq!(
        eight.try_acquire(ms(0), &[1, 1, 1, 2, 1, 1, 1, 1]),
        Err(not_in_time(3, 400))
    );
}

#[test]
fn a_request_is_due_when_its_last_place_is() {
    let (requests, tokens) = (fixed(8), fixed(1_000));
    let set = SendSet::new([&requests, &tokens]);
    let mut first = set.reserve(ms(0), &[8, 1_000]).expect("full");
    assert!(first.claim(ms(0)).is_ok());
    let mut second = set.reserve(ms(0), &[1, 500]).expect("in range");
    // It waits for 500 ms in the second line. In the first one it would be 125.
    assert_eq!(
        second.claim(ms(0)).map(drop),
        Err(Binding {
            limit: 1,
            wait: wait(375)
        })
    );
    assert_eq!(requests.snapshot(ms(0)).waiting, 0, "that place can wait");
    assert_eq!(second.claim(ms(375)).expect_err("not yet").wait, wait(125));
    let permit = second.claim(ms(500)).expect("its turn");
    assert_eq!(permit.get(0).map(SendPermit::time), Some(ms(500)));
    assert_eq!(second.claim(ms(9_000)), Ok(permit), "the same ever after");
}

/// A request that waits long in one line holds up no other in the lines that both have to pass.
#[test]
fn a_waiter_stands_in_no_line_before_it_has_to() {
    let (shared, slow) = (fixed(10), fixed(1));
    let tenant = SendSet::new([&shared, &slow]);
    let (now, later) = (ms(0), ms(1));
    let mut first = tenant.reserve(now, &[1, 1]).expect("in range");
    assert!(first.claim(now).is_ok());
    let mut waiters: Vec<_> = (0..100)
        .map(|_| tenant.reserve(now, &[1, 1]).expect("in range"))
        .collect();
    for waiter in &mut waiters {
        assert!(waiter.claim(later).is_err());
    }
    let mut quiet = shared.reserve(later);
    assert!(
        quiet.claim(later).is_ok(),
        "no place of the hundred is before it"
    );
}

#[test]
fn a_dropped_request_gives_back_every_place() {
    let (requests, tokens) = (fixed(8), fixed(1_000));
    let set = SendSet::new([&requests, &tokens]);
    assert!(set.try_acquire(ms(0), &[1, 1_000]).is_ok());
    let mut early = set.reserve(ms(0), &[7, 500]).expect("in range");
    let mut behind = set.reserve(ms(0), &[3, 100]).expect("in range");
    // Their requests are there: they take nothing of them before they go.
    assert_eq!(early.claim(ms(0)).expect_err("not yet").limit, 1);
    assert_eq!(behind.claim(ms(0)).expect_err("not yet").wait, wait(600));
    assert_eq!(held(&requests, ms(0)), 7);
    drop(early);
    assert_eq!(behind.claim(ms(0)).expect_err("not yet").wait, wait(100));
    drop(behind);
    assert_eq!((held(&requests, ms(0)), held(&tokens, ms(0))), (7, 0));
    assert!(set.try_acquire(ms(1), &[7, 1]).is_ok());
}

#[test]
fn a_place_that_cannot_be_had_gives_back_the_others() {
    let (requests, tokens) = (fixed(8), fixed(1_000));
    let set = SendSet::new([&requests, &tokens]);
    let refused = set.reserve(ms(0), &[5, 2_000]).expect_err("too much");
    assert_eq!(refused.limit(), Some(1));
    assert_eq!(requests.snapshot(ms(0)).waiting, 0);
    assert!(set.try_acquire(ms(0), &[8, 1_000]).is_ok());
}

#[test]
fn a_set_stands_in_line_with_single_requests_and_other_sets() {
    let (one, two, three) = (fixed(8), fixed(8), fixed(8));
    let ab = SendSet::new([&one, &two]);
    let cba = SendSet::new([&three, &two, &one]);
    let mut first = ab.reserve(ms(0), &[8, 8]).expect("full");
    let mut second = cba.reserve(ms(0), &[1, 4, 1]).expect("in range");
    let mut single = two.reserve(ms(0));
    assert!(first.claim(ms(0)).is_ok());
    let binding = second.claim(ms(0)).expect_err("not yet");
    assert_eq!((binding.limit, binding.wait), (1, wait(375)));
    assert_eq!(single.claim(ms(0)), Err(wait(625)));
    assert!(second.claim(ms(375)).is_err(), "its other places are taken");
    assert!(second.claim(ms(500)).is_ok());
    assert!(single.claim(ms(625)).is_ok());
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn one_limit_of_a_request_is_settled_in_a_later_task() {
    let rates = [8, 1_000].map(|tokens| Arc::new(fixed(tokens)));
    let set = SendSet::new(rates.clone());
    let permit = set.try_acquire(ms(0), &[1, 1_000]).expect("full");
    let (rate, taken) = (
        Arc::clone(&rates[1]),
        permit.get(1).expect("it took tokens"),
    );
    let task = std::thread::spawn(move || rate.settle(ms(0), taken, 150));
    task.join().expect("it returns").expect("a credit");
    assert_eq!(held(&rates[1], ms(0)), 850);
    set.settle(ms(0), permit, &[1, 2_000]).expect("room");
    assert_eq!(
        set.try_acquire(ms(0), &[1, 1]),
        Err(not_in_time(1, 151)),
        "150 below zero"
    );
}

#[test]
fn a_limit_that_limits_nothing_holds_nothing_back() {
    let free = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let tokens = fixed(8);
    let set = SendSet::new([&free, &tokens]);
    assert!(set.try_acquire(ms(0), &[1_000_000, 8]).is_ok());
    assert_eq!(set.try_acquire(ms(0), &[1, 1]), Err(not_in_time(1, 125)));
    let mut place = set.reserve(ms(0), &[1, 1]).expect("in range");
    assert_eq!(place.claim(ms(0)).expect_err("not yet").limit, 1);
    assert!(place.claim(ms(125)).is_ok());
}

#[test]
fn a_throttle_cuts_the_limits_that_it_is_attributed_to() {
    let paced = || SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let cut = |rate: &SendRate| rate.snapshot(ms(1_000)).enabled;
    let (one, two) = (paced(), paced());
    let set = SendSet::new([&one, &two]);
    let permit = set.try_acquire(ms(0), &[1, 50]).expect("nothing limits");
    set.record_by(ms(1_000), &permit, Outcome::Throttled, &[1, 7]);
    assert_eq!((cut(&one), cut(&two)), (false, true));

    let (one, two) = (paced(), paced());
    let set = SendSet::new([&one, &two]);
    set.record(ms(1_000), &permit, Outcome::NotThrottled);
    assert_eq!((cut(&one), cut(&two)), (false, false));
    set.record(ms(1_000), &permit, Outcome::Throttled);
    assert_eq!((cut(&one), cut(&two)), (true, true));
}

/// A rate that obeys declared limits of `dimension`, all of whose first requests go.
fn declared(dimension: Dimension) -> SendRate {
    let settings = DeclaredSettings::new().first_burst(0).dimension(dimension);
    SendRate::declared(settings, Timestamp::ZERO)
}

#[test]
fn a_set_sends_one_request_of_any_weight_before_a_report() {
    let rates = || {
        [Dimension::Requests, Dimension::Tokens].map(|dimension| {
            let settings = DeclaredSettings::new().dimension(dimension);
            SendRate::declared(settings, Timestamp::ZERO)
        })
    };
    let times = [0, 1, 9_000, 11_000, 12_000].map(ms);
    let (one, two) = (rates(), rates());
    let [set, other] = [&one, &two].map(|rates| SendSet::new(rates.each_ref()));
    let tried = times.map(|now| set.try_acquire(now, &[1, 50_000]).is_ok());
    let mut first = other.reserve(ms(0), &[1, 50_000]).expect("in range");
    assert!(first.claim(ms(0)).is_ok());
    let mut second = other.reserve(ms(0), &[1, 50_000]).expect("in range");
    let waited = times.map(|now| second.claim(now).is_ok());
    assert_eq!(tried, [true, false, false, true, false]);
    assert_eq!(waited, [false, false, false, true, true]);
}

fn report(dimension: Dimension, remaining: u64, limit: u64) -> LimitReport {
    LimitReport::new(remaining)
        .dimension(dimension)
        .limit(limit)
        .window(Duration::from_secs(60))
        .reset(Reset::In(Duration::from_secs(60)))
        .refills(false)
}

fn reports(requests: u64, tokens: u64) -> LimitReports {
    let mut reports = LimitReports::from(report(Dimension::Requests, requests, 100));
    reports.push(report(Dimension::Tokens, tokens, 10_000));
    reports
}

#[test]
fn a_report_goes_to_the_rate_of_its_dimension() {
    let (requests, tokens) = (declared(Dimension::Requests), declared(Dimension::Tokens));
    let set = SendSet::new([&requests, &tokens]);
    let permit = set.try_acquire(ms(0), &[1, 500]).expect("it goes");
    let _ = set.observe(ms(100), &permit, &reports(60, 9_000));
    let limits = [&requests, &tokens].map(|rate| {
        let limit = rate.snapshot(ms(100)).declared.expect("it is declared");
        (
            limit.dimension,
            limit.limit,
            format!("{:.0}", limit.remaining),
        )
    });
    assert_eq!(limits[0], (Dimension::Requests, 100, "60".to_owned()));
    assert_eq!(limits[1], (Dimension::Tokens, 10_000, "9000".to_owned()));
}

#[test]
fn a_throttle_that_a_report_explains_is_no_undeclared_limits() {
    let requests = declared(Dimension::Requests);
    let other = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let set = SendSet::new([&requests, &other]);
    let permit = set.try_acquire(ms(0), &[1, 1]).expect("it goes");
    let _ = set.observe(ms(100), &permit, &reports(0, 200));
    set.record(ms(100), &permit, Outcome::Throttled);
    assert!(!other.snapshot(ms(100)).enabled);
}

#[test]
fn a_throttle_is_attributed_to_the_declared_limit_that_explains_it() {
    let (requests, tokens) = (declared(Dimension::Requests), declared(Dimension::Tokens));
    let set = SendSet::new([&requests, &tokens]);
    let permit = set.try_acquire(ms(0), &[1, 500]).expect("it goes");
    let _ = set.observe(ms(100), &permit, &reports(60, 200));
    let minute = Outcome::ThrottledFor(Duration::from_secs(30));
    set.record(ms(100), &permit, minute);
    let stopped = |rate: &SendRate| rate.snapshot(ms(100)).fill_rate.to_bits() == 0;
    assert_eq!((stopped(&requests), stopped(&tokens)), (false, true));
    let contradicted = |rate: &SendRate| {
        rate.snapshot(ms(100))
            .declared
            .is_some_and(|limit| limit.contradicted)
    };
    assert_eq!(
        (contradicted(&requests), contradicted(&tokens)),
        (false, false)
    );
}

#[test]
fn a_throttle_that_no_report_explains_is_the_least_declared_limits() {
    let (requests, tokens) = (declared(Dimension::Requests), declared(Dimension::Tokens));
    let paced = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let set = SendSet::new([&requests, &tokens, &paced]);
    let permit = set.try_acquire(ms(0), &[1, 500, 1]).expect("it goes");
    let _ = set.observe(ms(100), &permit, &reports(60, 9_000));
    set.record(ms(100), &permit, Outcome::Throttled);
    let contradicted = |rate: &SendRate| {
        rate.snapshot(ms(100))
            .declared
            .is_some_and(|limit| limit.contradicted)
    };
    assert_eq!(
        (contradicted(&requests), contradicted(&tokens)),
        (true, false)
    );
    assert!(paced.snapshot(ms(100)).enabled, "it may have been that one");
}

/// Tokens that a set waits with count when they are sent, and not before: a report of what was sent
/// meanwhile does not have them in it.
#[test]
fn tokens_that_a_set_waits_with_count_when_they_are_sent() {
    let tokens = declared(Dimension::Tokens);
    let slow = fixed(1);
    let first = tokens.try_acquire_n(ms(0), 100).expect("it goes");
    let report = |left| report(Dimension::Tokens, left, 10_000).into();
    let _ = tokens.observe(ms(0), first, &report(9_000));
    let left = |now| {
        let limit = tokens.snapshot(ms(now)).declared.expect("it is declared");
        format!("{:.0}", limit.remaining)
    };
    // Its turn comes after six seconds, and that of 600 tokens after four.
    let _taken = slow.try_acquire(ms(0)).expect("it is full");
    let _ahead: Vec<_> = (0..5).map(|_| slow.reserve(ms(0))).collect();
    let set = SendSet::new([&tokens, &slow]);
    let mut place = set.reserve(ms(0), &[600, 1]).expect("in range");
    let mut other = tokens.reserve_n(ms(0), 100).expect("there is room");
    let again = place.claim(ms(0)).expect_err("six seconds").wait;
    assert!(place.claim(ms(0).saturating_add(again)).is_err());
    assert!(place.claim(ms(5_000)).is_err());
    let other = other.claim(ms(5_000)).expect("its turn");
    let _ = tokens.observe(ms(5_050), other, &report(8_900));
    assert_eq!(left(5_050), "8900");
    let permit = place.claim(ms(12_000)).expect("the last turn");
    assert_eq!(permit.get(0).map(SendPermit::weight), Some(600));
    assert_eq!(left(12_000), "8300");
}

/// Tokens of a declared limit whose turn has come before the last one, and that are not sent: the
/// service has not counted them. Whatever report comes in between, what is left is as if they
/// had not been asked for, and so is the rate.
#[test]
fn tokens_that_a_set_waits_with_and_gives_back_are_left_of_a_declared_limit() {
    // A report of an earlier send, of a later one, or none.
    for by in [None, Some(0), Some(1)] {
        let state = |is_claimed: bool| {
            let tokens = declared(Dimension::Tokens);
            let first = tokens.try_acquire_n(ms(0), 100).expect("it goes");
            let report = |left| report(Dimension::Tokens, left, 10_000).into();
            let _ = tokens.observe(ms(0), first, &report(9_000));
            let send = |now, weight| {
                let place = tokens.reserve_n(ms(now - 1_000), weight);
                let permit = place.expect("there is room").claim(ms(now));
                permit.expect("150 a second are minted")
            };
            let earlier = send(1_000, 100);
            // The other limit has its turn after eleven seconds.
            let (slow, now) = (fixed(1), ms(5_800));
            let _taken = slow.try_acquire(ms(0)).expect("it is full");
            let ahead: Vec<_> = (0..10).map(|_| slow.reserve(ms(0))).collect();
            let set = SendSet::new([&tokens, &slow]);
            let mut place =
                is_claimed.then(|| set.reserve(ms(1_000), &[600, 1]).expect("in range"));
            // It stands in both lines, and its tokens are there after ten seconds.
            let early = place.as_mut().map(|place| place.claim(now));
            assert!(early.is_none_or(|early| early.is_err_and(|binding| binding.limit == 1)));
            let left = |at| {
                let limit = tokens.snapshot(at).declared.expect("it is declared");
                format!("{:.0}", limit.remaining)
            };
            assert_eq!(left(now), "8900");
            let later = tokens.reserve_n(now, 600).expect("there is room");
            let later = { later }.claim(ms(15_000)).expect("its turn");
            if let Some(by) = by {
                // By the later one others have sent nothing.
                let heard = [8_500, 8_300][by];
                let _ = tokens.observe(ms(15_000), [earlier, later][by], &report(heard));
            }
            drop((place, ahead));
            (left(ms(15_000)), tokens.snapshot(ms(15_000)).fill_rate)
        };
        let (claimed, rate) = state(true);
        let (never, same) = state(false);
        assert_eq!(claimed, never, "{by:?}");
        assert!(
            (rate / same - 1.0).abs() < 0.01,
            "{by:?}: {rate}, not {same}"
        );
    }
}

/// A limit that holds nothing back yet is asked when all others have let the request go: what it
/// declares meanwhile holds for requests that wait.
#[test]
fn a_limit_declared_meanwhile_holds_for_those_in_line() {
    let (slow, tokens) = (fixed(1), declared(Dimension::Tokens));
    let set = SendSet::new([&slow, &tokens]);
    let first = set.try_acquire(ms(0), &[1, 900]).expect("it is full");
    let mut second = set.reserve(ms(0), &[1, 900]).expect("in range");
    let mut third = set.reserve(ms(0), &[1, 900]).expect("in range");
    let waits = |limit, millis| {
        Err(Binding {
            limit,
            wait: wait(millis),
        })
    };
    assert_eq!(second.claim(ms(0)), waits(0, 1_000));
    // 1,000 a minute, of which 100 are left: what the second and the third take comes with the next
    // window.
    let _ = set.observe(
        ms(100),
        &first,
        &report(Dimension::Tokens, 100, 1_000).into(),
    );
    let refused = second.claim(ms(1_000)).expect_err("900 are not left");
    assert_eq!(refused.limit, 1, "{refused:?}");
    assert!(third.claim(ms(59_000)).is_err() && second.claim(ms(59_000)).is_err());
    let left = tokens
        .snapshot(ms(59_000))
        .declared
        .expect("it is declared");
    assert_eq!(
        format!("{:.0}", left.remaining),
        "100",
        "nothing was taken for them"
    );
}

/// The same where it is a throttle that begins to limit.
#[test]
fn a_throttle_meanwhile_holds_for_those_in_line() {
    let (slow, other) = (fixed(1), SendRate::new(ControlLaw::Aws, ms(0)));
    let set = SendSet::new([&slow, &other]);
    let _first = set.try_acquire(ms(0), &[1, 1]).expect("it is full");
    let mut second = set.reserve(ms(0), &[1, 1]).expect("in range");
    assert!(second.claim(ms(0)).is_err());
    let _ = other.record(ms(500), SendPermit::sent_at(ms(0)), Outcome::Throttled);
    let refused = second.claim(ms(1_000)).expect_err("the other limits now");
    assert_eq!(refused.limit, 1, "{refused:?}");
}

#[test]
fn errors_say_what_is_wrong() {
    let text = |error: SetError| error.to_string();
    assert_eq!(
        text(SetError::Rates { given: 9 }),
        "9 rates: a set has one to 8"
    );
    let (given, rates) = (1, 2);
    assert_eq!(
        text(SetError::Weights { given, rates }),
        "1 weights for 2 rates: each has one"
    );
    assert_eq!(
        text(not_in_time(3, 1_500)),
        "limit 3: not in time: the send rate asks for a wait of 1.5s"
    );
    let error = WeightError::Zero;
    assert_eq!(
        text(SetError::Limit {
            limit: 2,
            error: error.into()
        }),
        "limit 2: the request asks for no token"
    );
    assert_eq!(
        AcquireError::from(error).to_string(),
        "the request asks for no token"
    );
}
