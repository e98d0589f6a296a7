//! Models of [`SendRate`]: the line of tokens, the throttles that move it, and the meter.
//!
//! Claim: whatever the interleaving, no more is granted than was minted, every throttle takes
//! effect, nothing that a throttle ended comes back, and places go in order. Time moves inside the
//! models, words start next to their wrap. Two threads, exhaustive unless a model says otherwise.

use crate::explore;
use loom::{sync::Arc, thread};
use paceline_core::modelled::Gate;
use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};

const MILLI: u64 = 1_000_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * MILLI)
}

fn record(rate: &SendRate, millis: u64, outcome: Outcome) {
    rate.record(at(millis), SendPermit::sent_at(at(millis)), outcome);
}

/// A limiter that has measured 32/s and was never throttled.
fn measured() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for _ in 0..19 {
        record(&rate, 0, Outcome::NotThrottled);
    }
    record(&rate, 600, Outcome::NotThrottled);
    rate
}

/// A limiter that was throttled at 0 with nothing measured: 0.5 tokens/s, at most one.
fn at_the_floor() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, 0, Outcome::Throttled);
    rate
}

/// Runs `one` and `two` on a thread each, and returns both results.
fn beside<A: 'static, B: 'static>(
    rate: &Arc<SendRate>,
    one: impl FnOnce(&SendRate) -> A + 'static,
    two: impl FnOnce(&SendRate) -> B + 'static,
) -> (A, B) {
    let (first, second) = (Arc::clone(rate), Arc::clone(rate));
    let one = thread::spawn(move || one(&first));
    let two = thread::spawn(move || two(&second));
    (
        one.join().expect("the thread returns"),
        two.join().expect("the thread returns"),
    )
}

fn close(got: f64, want: f64) -> bool {
    (got - want).abs() < 1e-6
}

/// Of two callers at `millis` for the one token that there is, one gets it.
fn one_of_two_takes(millis: u64) {
    explore(None, move || {
        let rate = Arc::new(at_the_floor());
        let take = move |rate: &SendRate| rate.try_acquire(at(millis)).is_ok();
        let (first, second) = beside(&rate, take, take);
        assert!(first != second, "one token makes one grant");
    });
}

#[test]
fn two_takers_never_share_a_token() {
    one_of_two_takes(2_000);
}

/// The bucket has been full for seven seconds.
#[test]
fn two_takers_never_share_the_token_of_a_full_bucket() {
    one_of_two_takes(9_000);
}

/// A caller with an older clock mints nothing: between them they get what the newer one sees.
#[test]
fn an_older_clock_mints_nothing() {
    explore(None, || {
        let rate = Arc::new(at_the_floor());
        let (theirs, ours) = beside(
            &rate,
            |rate| rate.try_acquire(at(2_000)).is_ok(),
            |rate| rate.try_acquire(at(3_999)).is_ok(),
        );
        assert!(theirs || ours, "there is a token");
        assert!(!(theirs && ours), "there is one token until 4 s");
    });
}

/// Of two throttles at the same time both cut, one after the other.
#[test]
fn two_throttles_both_cut() {
    explore(Some(2), || {
        let rate = Arc::new(measured());
        let cut = |rate: &SendRate| record(rate, 700, Outcome::Throttled);
        beside(&rate, cut, cut);
        let snapshot = rate.snapshot(at(700));
        // 20 requests and one window: 0.8 × 40/s. The second throttle came at 0.7 of that.
        assert!(close(snapshot.last_max_rate, 0.7 * 32.0), "{snapshot:?}");
        assert!(close(snapshot.fill_rate, 0.49 * 32.0), "{snapshot:?}");
    });
}

/// A success that computed the curve before a throttle does not undo it.
#[test]
fn a_stale_success_never_undoes_a_throttle() {
    explore(Some(2), || {
        let rate = measured();
        record(&rate, 600, Outcome::Throttled);
        let rate = Arc::new(rate);
        beside(
            &rate,
            |rate| record(rate, 900, Outcome::NotThrottled),
            |rate| record(rate, 900, Outcome::Throttled),
        );
        let snapshot = rate.snapshot(at(900));
        // Either the throttle met the rate of the first cut, or the one that the success had
        // raised.
        let raised = {
            let k = (32.0_f64 * 0.75).cbrt();
            0.4 * (0.3 - k).powi(3) + 32.0
        };
        let peaks = [0.7 * 32.0, raised];
        assert!(
            peaks
                .iter()
                .any(|peak| close(snapshot.last_max_rate, *peak)),
            "{snapshot:?}"
        );
        assert!(
            close(snapshot.fill_rate, 0.7 * snapshot.last_max_rate),
            "{snapshot:?}"
        );
    });
}

/// While the rate is cut, takers get no more than the old rate had minted.
#[test]
fn grants_never_exceed_what_was_minted() {
    explore(Some(3), || {
        let rate = measured();
        record(&rate, 600, Outcome::Throttled); // 22.4/s from 0.6 s
        let rate = Arc::new(rate);
        let ((), granted) = beside(
            &rate,
            |rate| record(rate, 650, Outcome::Throttled),
            |rate| (0..3).filter(|_| rate.try_acquire(at(700)).is_ok()).count(),
        );
        // 2.24 tokens at the old rate, 1.904 if the cut at 0.65 s was seen.
        assert!((1..=2).contains(&granted), "granted {granted}");
        let later = rate.try_acquire(at(700)).is_ok();
        assert!(
            granted + usize::from(later) <= 2,
            "granted {granted}, and one more"
        );
    });
}

/// A thread that has learned of a throttle from another one is limited by it.
#[test]
fn a_throttle_seen_elsewhere_is_obeyed() {
    use loom::sync::atomic::{AtomicBool, Ordering};
    explore(Some(3), || {
        let rate = Arc::new(SendRate::new(ControlLaw::Aws, Timestamp::ZERO));
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        beside(
            &rate,
            move |rate| {
                record(rate, 0, Outcome::Throttled);
                tell.store(true, Ordering::Release);
            },
            move |rate| {
                if told.load(Ordering::Acquire) {
                    assert!(
                        rate.try_acquire(at(1)).is_err(),
                        "it is limited to 0.5/s from 0 on"
                    );
                }
            },
        );
    });
}

/// A throttle beside a change of what requests get: all look from then on, and what was looked up
/// before is void.
#[test]
fn a_throttle_beside_a_change_takes_nothing_of_it_back() {
    explore(None, || {
        let gate = Arc::new(Gate::quiet_until(1 << 20));
        let shared = Arc::clone(&gate);
        let other = thread::spawn(move || shared.disturb());
        gate.engage();
        other.join().expect("the thread returns");
        assert_eq!(gate.read(0), (true, false, 1), "engaged, quiet, version");
    });
}

/// The request that is counted when a window turns is in exactly one window.
#[test]
fn no_count_is_lost_at_a_turn() {
    explore(Some(3), || {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        record(&rate, 0, Outcome::NotThrottled);
        let rate = Arc::new(rate);
        let turn = |rate: &SendRate| record(rate, 600, Outcome::NotThrottled);
        beside(&rate, turn, turn);
        let first = rate.snapshot(at(600)).measured_rate;
        record(&rate, 1_100, Outcome::NotThrottled);
        let second = rate.snapshot(at(1_100)).measured_rate;
        // Four requests: two or three in the first window, the others in the second.
        let windows =
            |a: f64, b: f64| close(first, 1.6 * a) && close(second, 1.6 * b + 0.2 * first);
        assert!(
            windows(2.0, 2.0) || windows(3.0, 1.0),
            "{first} then {second}"
        );
    });
}

/// Three throttles, two of them of one thread, all cut, however late the one that learns of the
/// others.
#[test]
fn three_throttles_all_cut() {
    explore(Some(1), || {
        let rate = Arc::new(measured());
        let cut = |rate: &SendRate| record(rate, 700, Outcome::Throttled);
        beside(
            &rate,
            move |rate| {
                cut(rate);
                cut(rate);
            },
            cut,
        );
        let snapshot = rate.snapshot(at(700));
        assert!(close(snapshot.last_max_rate, 0.49 * 32.0), "{snapshot:?}");
        assert!(close(snapshot.fill_rate, 0.343 * 32.0), "{snapshot:?}");
    });
}

/// While a window turns, the gate keeps saying that there has been a throttle.
#[test]
#[ignore = "takes over 15 seconds: `ci/check.sh models` runs it"]
fn a_turn_of_the_window_keeps_the_gate_engaged() {
    explore(Some(2), || {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        let rate = Arc::new(rate);
        beside(
            &rate,
            |rate| record(rate, 100, Outcome::Throttled),
            |rate| record(rate, 600, Outcome::NotThrottled),
        );
        assert!(rate.snapshot(at(600)).enabled);
        // At most 2.24 tokens/s since 0.1 s.
        let granted = (0..3).filter(|_| rate.try_acquire(at(601)).is_ok()).count();
        assert!(granted <= 1, "granted {granted}");
    });
}

/// A thread that sums the counts after another one has turned the window never finds fewer than the
/// base.
#[test]
fn a_window_never_counts_below_zero() {
    explore(Some(3), || {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        record(&rate, 0, Outcome::NotThrottled);
        let rate = Arc::new(rate);
        beside(
            &rate,
            |rate| record(rate, 600, Outcome::NotThrottled),
            |rate| record(rate, 1_100, Outcome::NotThrottled),
        );
        let measured = rate.snapshot(at(1_100)).measured_rate;
        // Three requests. Either both windows turned, with two or all three of them in the first,
        // or one window of a second did, with two or three; the late one then only counts.
        let orders = [0.2 * 3.2 + 1.6, 0.2 * 4.8, 1.6, 2.4];
        assert!(
            orders.iter().any(|order| close(measured, *order)),
            "{measured}"
        );
    });
}

/// What a reader sees while the rate is cut twice is the line before, between or after the cuts,
/// never a mixture.
#[test]
fn a_reader_sees_one_line() {
    explore(Some(3), || {
        let rate = measured();
        record(&rate, 600, Outcome::Throttled); // 22.4/s from 0.6 s
        let rate = Arc::new(rate);
        let ((), available) = beside(
            &rate,
            |rate| {
                record(rate, 700, Outcome::Throttled); // 15.68/s from 0.7 s
                record(rate, 800, Outcome::Throttled); // 10.976/s from 0.8 s
            },
            |rate| rate.snapshot(at(900)).available,
        );
        let lines = [
            0.3 * 22.4,
            0.1 * 22.4 + 0.2 * 15.68,
            0.1 * 22.4 + 0.1 * 15.68 + 0.1 * 10.976,
        ];
        assert!(
            lines.iter().any(|line| close(available, *line)),
            "{available}"
        );
    });
}

/// What was issued, less what was given up, never reads as less than what is out.
#[test]
fn live_places_never_run_backwards() {
    explore(Some(2), || {
        let rate = Arc::new(at_the_floor());
        let ((), available) = beside(
            &rate,
            |rate| {
                let first = rate.reserve(at(0));
                let _last = rate.reserve(at(0)); // which is taken back, and not given up
                drop(first);
            },
            |rate| rate.snapshot(at(1_000)).available,
        );
        assert!(
            available <= 0.5 + 1e-6,
            "half a token was minted by 1 s: {available}"
        );
    });
}

/// One who tries and one who waits in line never get the same token.
#[test]
fn a_try_and_a_place_never_share_a_token() {
    explore(None, || {
        let rate = Arc::new(at_the_floor());
        let (tried, waited) = beside(
            &rate,
            |rate| rate.try_acquire(at(2_000)).is_ok(),
            |rate| rate.reserve(at(0)).claim(at(2_000)).is_ok(),
        );
        assert!(
            tried != waited,
            "one token makes one grant: {tried}, {waited}"
        );
    });
}

/// A snapshot taken while the window turns shows the rate of one of the two windows.
#[test]
fn a_snapshot_shows_one_window() {
    explore(Some(3), || {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        record(&rate, 0, Outcome::NotThrottled);
        let rate = Arc::new(rate);
        let ((), seen) = beside(
            &rate,
            |rate| record(rate, 600, Outcome::NotThrottled),
            |rate| rate.snapshot(at(600)).measured_rate,
        );
        assert!(close(seen, 0.0) || close(seen, 3.2), "{seen}");
    });
}

/// A reset while a throttle comes in leaves the throttle in force.
#[test]
fn a_reset_keeps_a_throttle() {
    explore(Some(2), || {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        let rate = Arc::new(rate);
        beside(
            &rate,
            |rate| record(rate, 100, Outcome::Throttled),
            |rate| rate.reset(at(100)),
        );
        assert!(rate.snapshot(at(100)).enabled);
        assert!(
            rate.try_acquire(at(101)).is_err(),
            "it is limited to 0.5/s from 0.1 s on"
        );
    });
}

/// After a silence in which positions have wrapped the bucket is full: once, whichever thread
/// notices it, and whatever the line had promised.
#[test]
fn a_wrapped_line_goes_on_with_a_full_bucket() {
    explore(Some(3), || {
        let second = core::time::Duration::from_secs(1);
        let settings =
            paceline_core::law::PacedSettings::fixed(1_000_000_000, second).expect("in range");
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        let rate = Arc::new(rate);
        // Nearly a day: 86 million million tokens, of which the bucket holds 50 million. Taken for
        // a position, that is one ahead of all others.
        let take = |rate: &SendRate| rate.try_acquire_n(at(86_000_000), 30_000_000).is_ok();
        let (theirs, ours) = beside(&rate, take, take);
        assert!(theirs != ours, "the bucket holds one of the two");
        assert!(rate.try_acquire_n(at(86_000_000), 20_000_000).is_ok());
        assert!(rate.try_acquire_n(at(86_000_000), 1).is_err());
    });
}

/// A caller that loads the line as it was before it wrapped, and all else after it goes on, takes
/// no position of the old one.
#[test]
fn a_caller_is_never_between_a_wrapped_line_and_the_next() {
    explore(Some(2), || {
        let second = core::time::Duration::from_secs(1);
        let settings =
            paceline_core::law::PacedSettings::fixed(1_000_000_000, second).expect("in range");
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        let rate = Arc::new(rate);
        let now = at(86_000_000);
        let (one, many) = beside(
            &rate,
            move |rate| rate.try_acquire(now).is_ok(),
            move |rate| rate.try_acquire_n(now, 30_000_000).is_ok(),
        );
        assert!(one && many, "the bucket holds 50 million");
        assert!(rate.try_acquire_n(now, 19_999_999).is_ok());
        assert!(rate.try_acquire_n(now, 1).is_err());
    });
}
