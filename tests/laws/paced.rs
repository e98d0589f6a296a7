//! The paced law through the public calls, by one caller: cuts, pauses, starvation, the way back to
//! no limit, and what each setting does.

use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, SendPermit, SendRate, Timestamp,
    law::{DeclaredSettings, PacedSettings},
};

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = SECOND / 1_000;
/// When [`engaged`] cuts.
const CUT: u64 = SECOND;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).expect("a wait is short of 2⁶⁴ ns")
}

/// Records the response to a request that was sent at `sent`.
fn record_sent(rate: &SendRate, now: u64, sent: u64, outcome: Outcome) {
    rate.record(at(now), SendPermit::sent_at(at(sent)), outcome);
}

fn record(rate: &SendRate, now: u64, outcome: Outcome) {
    record_sent(rate, now, now, outcome);
}

/// Delivers 100 requests in the first second, and then throttles one.
fn cut_at_a_hundred(rate: &SendRate) {
    for step in 0..100 {
        record(rate, step * CUT / 100, Outcome::NotThrottled);
    }
    record(rate, CUT, Outcome::Throttled);
}

fn engaged() -> SendRate {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    cut_at_a_hundred(&rate);
    rate
}

fn engaged_with(settings: PacedSettings) -> SendRate {
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    cut_at_a_hundred(&rate);
    rate
}

/// Asserts that `got` is `want`, up to a thousandth: the first window begins 2¹⁶ ns late.
fn assert_near(got: f64, want: f64) {
    assert!(
        (got - want).abs() <= want / 1_000.0,
        "got {got}, want {want}"
    );
}

fn drain(rate: &SendRate, now: u64) -> u64 {
    let mut granted = 0;
    while rate.try_acquire(at(now)).is_ok() {
        granted += 1;
    }
    granted
}

/// Takes tokens as they come until `end`, each after exactly the wait that was named for it.
fn take_until(rate: &SendRate, mut now: u64, end: u64) -> u64 {
    let mut granted = 0;
    while now <= end {
        match rate.try_acquire(at(now)) {
            Ok(_) => granted += 1,
            Err(wait) => now += nanos(wait),
        }
    }
    granted
}

#[test]
fn nothing_is_limited_before_the_first_throttle() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    assert_eq!(rate.law(), ControlLaw::Paced);
    for _ in 0..100_000 {
        assert!(rate.try_acquire(at(0)).is_ok());
    }
    record(&rate, 0, Outcome::NotThrottled);
    assert!(!rate.snapshot(at(0)).enabled);
    assert_eq!(rate.snapshot(at(0)).last_max_rate.to_bits(), 0);
}

#[test]
fn the_first_throttle_cuts_the_rate_that_was_delivered() {
    let got = engaged().snapshot(at(CUT));
    assert!(got.enabled);
    assert_near(got.measured_rate, 100.0);
    assert_near(got.last_max_rate, 101.0);
    // 1 − 0.1 − 1/√101
    assert_near(got.fill_rate, 80.85);
    assert_near(got.capacity, 80.85 / 20.0);
}

#[test]
fn an_overshoot_is_cut_once_whatever_was_in_flight() {
    let rate = engaged();
    for step in 1..=100 {
        record(&rate, CUT + step * 5 * MILLI, Outcome::NotThrottled);
    }
    let later = at(CUT + 3 * SECOND);
    let before = rate.snapshot(later);
    for (now, sent) in [
        (CUT, CUT),
        (CUT + 550 * MILLI, CUT - 1),
        (CUT + 600 * MILLI, CUT),
        (CUT + 601 * MILLI, CUT + 300 * MILLI), // its trip was half of the time since
    ] {
        record_sent(&rate, now, sent, Outcome::Throttled);
        assert_eq!(
            rate.snapshot(later),
            before,
            "sent at {sent}, throttled at {now}"
        );
    }
    record_sent(
        &rate,
        CUT + 601 * MILLI,
        CUT + 301 * MILLI,
        Outcome::Throttled,
    );
    let after = rate.snapshot(later).last_max_rate;
    assert!(
        after < before.last_max_rate,
        "two trips after the cut it is news"
    );
}

/// A bucket of 100 tokens, full.
fn full_bucket() -> SendRate {
    let settings = PacedSettings::builder()
        .initial_rate(100, seconds(1))
        .burst(seconds(1))
        .build()
        .expect("in range");
    SendRate::paced(settings, Timestamp::ZERO)
}

#[test]
fn a_hint_pauses_the_whole_bucket_and_the_wait_is_exact() {
    for hint in [1, 7 * MILLI, 1_500 * MILLI, 60 * SECOND] {
        let rate = full_bucket();
        let pause = Outcome::ThrottledFor(Duration::from_nanos(hint));
        record_sent(&rate, SECOND, SECOND - MILLI, pause);
        let end = SECOND + hint;
        let got = rate.snapshot(at(end - 1));
        assert!(got.enabled && got.fill_rate < 1e-9, "{got:?}");
        assert_eq!((got.capacity.to_bits(), got.available.to_bits()), (0, 0));
        let wait = rate.try_acquire(at(SECOND)).expect_err("paused");
        let due = SECOND + nanos(wait);
        assert!(due > end, "what the bucket held is gone");
        let mut place = rate.reserve(at(SECOND));
        assert_eq!(place.claim(at(SECOND)), Err(wait));
        assert_eq!(
            place.claim(at(end - 1)),
            Err(Duration::from_nanos(due - (end - 1)))
        );
        assert_eq!(place.claim(at(due - 1)), Err(Duration::from_nanos(1)));
        assert!(place.claim(at(due)).is_ok(), "a hint of {hint} ns");
    }
}

#[test]
fn a_caller_is_let_go_after_the_wait_without_a_look_before() {
    for hint in [1, 16 * MILLI, 17 * MILLI, 999 * MILLI, 30 * SECOND] {
        for late in [0, MILLI, 500 * MILLI] {
            let rate = engaged();
            let pause = Outcome::ThrottledFor(Duration::from_nanos(hint));
            record_sent(&rate, CUT + SECOND, CUT + SECOND, pause);
            let asked = CUT + SECOND + late.min(hint - 1);
            let wait = rate.try_acquire(at(asked)).expect_err("paused");
            let due = at(asked + nanos(wait));
            assert!(
                rate.try_acquire(due).is_ok(),
                "{hint} ns, asked {late} ns late"
            );
            assert!(rate.try_acquire(due).is_err(), "one token");
        }
    }
}

#[test]
fn a_pause_ends_in_time_without_a_look() {
    // A rate that 44 bits hold to the nanosecond at these times: a token every 2³³ ns.
    let token = 1 << 33;
    let every = Duration::from_nanos(token);
    let paused = || {
        let settings = PacedSettings::fixed(1, every).expect("in range");
        let rate = SendRate::paced(settings, at(0));
        record(&rate, 0, Outcome::ThrottledFor(seconds(60)));
        rate
    };
    // In a pause a token comes in 584 years. In a minute that is 28 ns of one of these, and the
    // line is rounded to 8.
    let due = 60 * SECOND + token - 24;
    assert_eq!(
        paused().try_acquire(at(0)),
        Err(Duration::from_nanos(due)),
        "68.6 s"
    );
    for late in [0, SECOND / 4, SECOND, 100 * SECOND] {
        assert!(paused().try_acquire(at(due + late)).is_ok(), "{late}");
    }
    let rate = paused();
    rate.reset(at(100 * SECOND));
    assert!(rate.try_acquire(at(100 * SECOND + token)).is_ok());
}

#[test]
fn the_places_in_a_line_that_is_paused_come_due_when_they_are_told() {
    let rate = engaged();
    let now = CUT + SECOND;
    record(&rate, now, Outcome::ThrottledFor(seconds(2)));
    let mut places: Vec<_> = (0..20).map(|_| rate.reserve(at(now))).collect();
    for place in &mut places {
        let wait = place.claim(at(now)).expect_err("paused");
        let due = now + nanos(wait);
        assert!(due > now + 2 * SECOND);
        assert!(place.claim(at(due)).is_ok());
    }
}

#[test]
fn a_hint_to_one_request_of_many_stops_no_other() {
    let rate = engaged();
    let now = CUT + SECOND;
    for _ in 0..1_000 {
        record(&rate, now, Outcome::NotThrottled);
    }
    record(&rate, now, Outcome::ThrottledFor(seconds(20)));
    let wait = rate
        .try_acquire(at(now))
        .map_or_else(|wait| wait, |_| Duration::ZERO);
    assert!(wait < seconds(1), "{wait:?}");
    // Then nothing gets through any more.
    let later = now + SECOND;
    record(&rate, later, Outcome::ThrottledFor(seconds(20)));
    let wait = rate.try_acquire(at(later)).expect_err("paused");
    assert_eq!(wait.as_secs(), 20);
}

#[test]
fn a_hint_counts_as_a_minute_at_most() {
    let wait_after = |hint| {
        let rate = engaged();
        record(&rate, CUT + SECOND, Outcome::ThrottledFor(hint));
        rate.try_acquire(at(CUT + SECOND)).expect_err("paused")
    };
    let minute = wait_after(seconds(60));
    assert_eq!(minute.as_secs(), 60);
    assert_eq!(wait_after(seconds(61)), minute);
    assert_eq!(wait_after(Duration::MAX), minute);
    assert_eq!(wait_after(seconds(59)) + seconds(1), minute);
}

#[test]
fn a_later_hint_prolongs_a_pause_and_none_shortens_it() {
    let rate = engaged();
    let pause = |millis| Outcome::ThrottledFor(Duration::from_millis(millis));
    record(&rate, CUT + SECOND, pause(1_000));
    let wait = || rate.try_acquire(at(CUT + SECOND)).expect_err("paused");
    let second = wait();
    for (outcome, longer) in [
        (Outcome::Throttled, 0),
        (pause(999), 0),
        (pause(1_000), 0),
        (pause(1_500), 500),
        (pause(1_200), 500),
    ] {
        // Sent long before the cut: it changes nothing but the pause.
        let peak = rate.snapshot(at(CUT + SECOND)).last_max_rate;
        record_sent(&rate, CUT + SECOND, 0, outcome);
        assert_eq!(wait(), second + Duration::from_millis(longer));
        let kept = rate.snapshot(at(CUT + SECOND)).last_max_rate;
        assert_eq!(kept.to_bits(), peak.to_bits());
    }
}

/// A throttle of what was sent after the cut, with nothing done in between.
fn shut(rate: &SendRate) -> u64 {
    let now = CUT + 10 * SECOND;
    record_sent(rate, now, now - MILLI, Outcome::Throttled);
    now
}

/// The first wait is the mean spacing of what was done, and the next ones are longer.
#[test]
fn what_gets_nothing_is_shut_and_asked_by_one_request_at_a_time() {
    let rate = engaged();
    let mut now = shut(&rate);
    let peak = rate.snapshot(at(now)).last_max_rate;
    let mut waits = Vec::new();
    for _ in 0..12 {
        let wait = rate.try_acquire(at(now)).expect_err("shut");
        waits.push(wait);
        now += nanos(wait);
        let knock = rate.try_acquire(at(now)).expect("a knock");
        assert!(rate.try_acquire(at(now)).is_err(), "one at a time");
        rate.record(at(now), knock, Outcome::Throttled);
        assert_near(rate.snapshot(at(now)).last_max_rate, peak);
    }
    assert!(waits.is_sorted(), "{waits:?}");
    assert!(
        waits[0] < seconds(1) && waits[11] > seconds(10),
        "{waits:?}"
    );
}

/// What is sent before the refusal was heard is no knock.
#[test]
fn only_a_knock_that_is_done_opens() {
    let rate = engaged();
    let now = shut(&rate);
    record_sent(&rate, now + MILLI, now - 2 * MILLI, Outcome::NotThrottled);
    assert!(rate.snapshot(at(now + MILLI)).fill_rate < 1e-9, "a pause");
    let wait = nanos(rate.try_acquire(at(now + MILLI)).expect_err("shut"));
    let knock = now + MILLI + wait;
    record_sent(&rate, knock + MILLI, knock, Outcome::NotThrottled);
    let open = rate.snapshot(at(knock + MILLI));
    assert!(open.fill_rate > 1.0, "{open:?}");
}

/// Wants so many a second from `from` to `to`, and delivers what may go.
fn deliver(rate: &SendRate, per_second: u64, from: u64, to: u64) {
    for step in from * per_second..to * per_second {
        let now = step * SECOND / per_second;
        if let Ok(permit) = rate.try_acquire(at(now)) {
            rate.record(at(now), permit, Outcome::NotThrottled);
        }
    }
}

#[test]
fn twice_the_peak_for_half_a_minute_ends_the_limit_until_the_next_throttle() {
    let rate = engaged();
    deliver(&rate, 250, 1, 31);
    assert!(rate.snapshot(at(31 * SECOND)).enabled);
    deliver(&rate, 250, 31, 33);
    assert!(!rate.snapshot(at(33 * SECOND)).enabled);
    let mut place = rate.reserve(at(33 * SECOND));
    assert!(place.claim(at(0)).is_ok());
    assert!((0..100_000).all(|_| rate.try_acquire(at(33 * SECOND)).is_ok()));
    deliver(&rate, 250, 33, 60);
    assert!(!rate.snapshot(at(60 * SECOND)).enabled);
    // The next throttle is a first one: at the rate that was delivered, and the one throttled.
    record(&rate, 60 * SECOND, Outcome::Throttled);
    let got = rate.snapshot(at(60 * SECOND));
    assert!(got.enabled);
    assert!((249.0..252.0).contains(&got.last_max_rate), "{got:?}");
    assert!(drain(&rate, 60 * SECOND) < 100);
}

#[test]
fn neither_silence_nor_a_light_load_ends_the_limit() {
    for per_second in [1, 20, 100, 190] {
        let rate = engaged();
        deliver(&rate, per_second, 1, 3_600);
        let got = rate.snapshot(at(3_600 * SECOND));
        assert!(
            got.enabled && got.fill_rate <= 400.0,
            "{per_second}/s: {got:?}"
        );
        record(&rate, 7_200 * SECOND, Outcome::NotThrottled);
        assert!(rate.snapshot(at(7_200 * SECOND)).enabled);
    }
}

/// Also where the declared law hears of no limit, and the paced one decides.
#[test]
fn the_law_does_not_end_while_a_place_is_in_line() {
    let settings = PacedSettings::builder().burst(Duration::ZERO).build();
    let settings = settings.expect("in range");
    let declared = DeclaredSettings::new().otherwise(settings);
    for rate in [
        SendRate::paced(settings, Timestamp::ZERO),
        SendRate::declared(declared, Timestamp::ZERO),
    ] {
        cut_at_a_hundred(&rate);
        deliver(&rate, 250, 1, 31);
        let places: Vec<_> = (0..9_000).map(|_| rate.reserve(at(31 * SECOND))).collect();
        let deliver_to_others = |from: u64, to: u64| {
            for step in from * 250..to * 250 {
                record(&rate, step * 4 * MILLI, Outcome::NotThrottled);
            }
        };
        let is_limited = |second| rate.snapshot(at(second * SECOND)).fill_rate < 1_000.0;
        deliver_to_others(31, 40);
        assert!(is_limited(40), "some have not been let go");
        drop(places);
        deliver_to_others(40, 70);
        assert!(!is_limited(70) || !rate.snapshot(at(70 * SECOND)).enabled);
    }
}

#[test]
fn a_limiter_with_a_ceiling_never_ends_and_one_with_an_initial_rate_does() {
    let second = seconds(1);
    let ceiling = PacedSettings::builder().ceiling(1_000, second).build();
    let rate = engaged_with(ceiling.expect("in range"));
    deliver(&rate, 250, 1, 200);
    assert!(rate.snapshot(at(200 * SECOND)).enabled);
    let initial = PacedSettings::builder().initial_rate(100, second).build();
    let rate = SendRate::paced(initial.expect("in range"), Timestamp::ZERO);
    assert!(rate.snapshot(at(0)).enabled);
    deliver(&rate, 300, 0, 30);
    assert!(rate.snapshot(at(30 * SECOND)).enabled);
    deliver(&rate, 300, 30, 33);
    assert!(!rate.snapshot(at(33 * SECOND)).enabled);
}

#[test]
fn a_fixed_limiter_grants_so_many_in_each_interval_and_its_burst_whatever_is_throttled() {
    let fixed = PacedSettings::fixed(16, seconds(1)).expect("in range");
    for (burst, held) in [(0, 1), (50, 1), (1_000, 16), (10_000, 160)] {
        let settings = fixed
            .to_builder()
            .burst(Duration::from_millis(burst))
            .build()
            .expect("in range");
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        assert_eq!(drain(&rate, 0), held, "it starts full");
        for second in 0..20 {
            // Rates are rounded to 44 bits: a token may come a nanosecond late.
            let (begin, end) = (second * SECOND + 10, (second + 1) * SECOND + 9);
            assert_eq!(take_until(&rate, begin, end), 16, "second {second}");
            record(&rate, end, Outcome::Throttled);
            record(&rate, end, Outcome::NotThrottled);
        }
        assert_eq!(drain(&rate, 3_600 * SECOND), held, "and is full again");
        let fill = rate.snapshot(at(3_600 * SECOND)).fill_rate;
        assert!((fill - 16.0).abs() < 1e-9, "{fill}");
    }
}

#[test]
fn an_initial_rate_is_the_rate_at_the_start() {
    for tokens in [1, 4, 5, 10, 70, 1_000, 1_000_000] {
        let settings = PacedSettings::builder()
            .initial_rate(tokens, seconds(1))
            .build();
        let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
        let got = rate.snapshot(at(0));
        let want = f64::from(tokens);
        assert!(got.enabled);
        assert!((got.fill_rate - want).abs() < want * 1e-6, "{got:?}");
        assert_near(got.available, (want / 20.0).max(1.0));
    }
}

#[test]
fn each_setting_shows() {
    let second = seconds(1);
    let new = PacedSettings::new();
    let floor = engaged_with(
        new.to_builder()
            .floor(90, second)
            .build()
            .expect("in range"),
    );
    assert_near(floor.snapshot(at(CUT)).fill_rate, 90.0);
    let ceiling = engaged_with(
        new.to_builder()
            .ceiling(200, second)
            .build()
            .expect("in range"),
    );
    assert_near(ceiling.snapshot(at(100 * SECOND)).fill_rate, 200.0);
    let beta = engaged_with(
        new.to_builder()
            .beta_permille(800)
            .build()
            .expect("in range"),
    );
    assert_near(
        beta.snapshot(at(CUT)).fill_rate,
        101.0 * 0.8 - 101_f64.sqrt(),
    );
    let burst = engaged_with(new.to_builder().burst(second).build().expect("in range"));
    let got = burst.snapshot(at(CUT));
    assert!((got.capacity - got.fill_rate).abs() < 1e-6);
    let least = engaged_with(
        new.to_builder()
            .burst(Duration::ZERO)
            .build()
            .expect("in range"),
    );
    assert!((least.snapshot(at(CUT)).capacity - 1.0).abs() < 1e-12);
}

/// A service that answers in 50 ms, asked as fast as the rate allows until `end`; returns how many
/// requests were sent, and the rate at the end.
fn asked_for(rate: &SendRate, end: u64) -> (usize, f64) {
    let mut sent = Vec::new();
    let mut answered = 0;
    for now in (0..=end).step_by(usize::try_from(MILLI).expect("it is small")) {
        while rate.try_acquire(at(now)).is_ok() {
            sent.push(now);
        }
        while sent
            .get(answered)
            .is_some_and(|sent| sent + 50 * MILLI <= now)
        {
            record_sent(rate, now, sent[answered], Outcome::NotThrottled);
            answered += 1;
        }
    }
    (sent.len(), rate.snapshot(at(end)).fill_rate)
}

#[test]
fn a_slow_start_doubles_and_then_grows_by_an_eighth() {
    let slow = PacedSettings::builder().slow_start(true).build().unwrap();
    assert!(
        SendRate::paced(slow, Timestamp::ZERO)
            .snapshot(at(0))
            .enabled
    );
    // Each step takes a request at the new rate, and its round trip.
    let rates = [60, 150, 230, 300, 500].map(|millis| {
        let rate = SendRate::paced(slow, Timestamp::ZERO);
        format!("{:.0}", asked_for(&rate, millis * MILLI).1)
    });
    assert_eq!(rates, ["20", "40", "160", "320", "513"]);
    let rate = SendRate::paced(slow, Timestamp::ZERO);
    let (sent, filled) = asked_for(&rate, 1_500 * MILLI);
    assert_near(filled, 5_405.2);
    assert!((2_000..3_000).contains(&sent), "{sent}");
    record_sent(&rate, 1_501 * MILLI, 1_450 * MILLI, Outcome::Throttled);
    let cut = rate.snapshot(at(1_501 * MILLI)).fill_rate;
    // Three halvings lead to what was delivered, 2,000 in a second and a half; and a cut.
    assert_near(cut, 5_405.2 / 8.0 * (0.9 - 1.0 / 5_405.2_f64.sqrt()));
}

#[test]
fn a_slow_start_that_is_not_used_up_stays() {
    let slow = PacedSettings::builder().slow_start(true).build().unwrap();
    let rate = SendRate::paced(slow, Timestamp::ZERO);
    for second in 1..30 {
        let now = second * SECOND;
        assert!(rate.try_acquire(at(now)).is_ok());
        record_sent(&rate, now + SECOND / 2, now, Outcome::NotThrottled);
    }
    assert_near(rate.snapshot(at(30 * SECOND)).fill_rate, 10.0);
}

#[test]
fn a_slow_start_begins_anew_where_the_law_would_end() {
    let slow = PacedSettings::builder().slow_start(true).build().unwrap();
    let rate = engaged_with(slow);
    deliver(&rate, 250, 1, 60);
    let filled = rate.snapshot(at(60 * SECOND)).fill_rate;
    assert!((499.0..505.0).contains(&filled), "{filled}");
}
