//! The declared law from outside: what reports do to the rate.

use core::time::Duration;

use fastrand::Rng;
use paceline::{
    ControlLaw, Outcome, SendPermit, SendRate, Timestamp,
    law::{
        DeclaredSettings, Dimension, LimitReport, LimitReports, Observed, Recorded, Reset, Spend,
    },
};

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;
/// After how long a waiter looks again.
const LOOK: Duration = Duration::from_millis(50);

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn declared() -> SendRate {
    SendRate::new(ControlLaw::Declared, Timestamp::ZERO)
}

fn minute(remaining: u64, reset: u64) -> LimitReport {
    LimitReport::new(remaining)
        .limit(600)
        .window(seconds(60))
        .reset(Reset::In(seconds(reset)))
        .refills(false)
}

fn hear(rate: &SendRate, nanos: u64, permit: SendPermit, report: LimitReport) -> Observed {
    rate.observe(at(nanos), permit, &report.into())
}

/// Returns how many may go by `nanos`, asked each millisecond.
fn granted(rate: &SendRate, from: u64, to: u64) -> usize {
    let mut now = from;
    let mut granted = 0;
    while now < to {
        granted += usize::from(rate.try_acquire(at(now)).is_ok());
        now += MILLI;
    }
    granted
}

fn left(rate: &SendRate, nanos: u64) -> f64 {
    let declared = rate.snapshot(at(nanos)).declared;
    declared.expect("a limit is declared").remaining
}

#[test]
fn only_the_first_burst_goes_before_the_first_report() {
    for burst in [1, 3] {
        let settings = DeclaredSettings::new().first_burst(burst);
        let rate = SendRate::declared(settings, Timestamp::ZERO);
        assert_eq!(granted(&rate, 0, SECOND), burst as usize);
    }
    let all = SendRate::declared(DeclaredSettings::new().first_burst(0), Timestamp::ZERO);
    assert_eq!(granted(&all, 0, SECOND), 1_000);
}

#[test]
fn who_forgets_begins_with_the_first_burst_again() {
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(3), Timestamp::ZERO);
    for now in [0, SECOND, 2 * SECOND] {
        assert_eq!(granted(&rate, now, now + SECOND), 3);
        rate.forget_throttles(at(now + SECOND));
    }
}

/// At the rate before the first report the third place would have to wait for thirty seconds.
#[test]
fn a_wait_before_the_first_report_is_until_the_next_look() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    let mut places = [(); 5].map(|()| rate.reserve(at(0)));
    for place in &mut places {
        assert_eq!(place.claim(at(0)), Err(LOOK));
    }
    assert!(
        rate.reserve_n(at(0), 500)
            .is_ok_and(|mut heavy| heavy.claim(at(0)) == Err(LOOK))
    );
    let _ = hear(&rate, 100 * MILLI, first, minute(599, 60));
    // The window's rest is spread evenly; two trips after the report all is foretold.
    let waits = places.map(|mut place| place.claim(at(SECOND)).map(|_| ()));
    assert!(waits.iter().all(Result::is_ok), "{waits:?}");
    let mut last = rate.reserve_n(at(SECOND), 500).expect("there is room");
    let wait = last.claim(at(SECOND)).expect_err("a minute's worth");
    assert!(wait > seconds(40), "{wait:?}");
}

/// For two trips after the first report no more goes than the limit by its window, which says
/// nothing of the wait where what is left is spent at once.
#[test]
fn a_wait_just_after_the_first_report_ends_with_the_second_trip() {
    let settings = DeclaredSettings::new().spend(Spend::Fast);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    let _ = hear(&rate, 100 * MILLI, first, minute(599, 60));
    let mut places = [(); 20].map(|()| rate.reserve(at(100 * MILLI)));
    let last = places.last_mut().expect("there are twenty");
    // Two trips of 100 ms, and the 50 ms in which the rate is looked at.
    assert_eq!(last.claim(at(100 * MILLI)), Err(Duration::from_millis(250)));
    let wait = last
        .claim(at(350 * MILLI))
        .expect_err("the rate has just risen");
    assert!(
        wait > Duration::ZERO && wait < Duration::from_millis(30),
        "twenty at 600 a second: {wait:?}"
    );
    assert!(last.claim(at(350 * MILLI + 30 * MILLI)).is_ok());
}

#[test]
fn an_answer_without_a_report_lets_the_paced_law_decide() {
    let rate = declared();
    assert_eq!(granted(&rate, 0, 8 * SECOND), 1);
    let now = at(8 * SECOND);
    rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
    assert_eq!(granted(&rate, 9 * SECOND, 10 * SECOND), 1_000);
    let now = at(10 * SECOND);
    let cut = rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
    assert_eq!(cut, Recorded::Cut);
    assert!(rate.snapshot(now).fill_rate < 2_000.0);
}

#[test]
fn what_is_left_lasts_until_the_reset() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    assert_eq!(
        hear(&rate, SECOND / 5, first, minute(300, 60)),
        Observed::Declared
    );
    // Every send is answered at once with what is left.
    let (mut sends, mut remaining, mut last) = (0, 300, 0);
    for millis in 200..60_000 {
        let now = millis * MILLI;
        if let Ok(permit) = rate.try_acquire(at(now)) {
            (sends, remaining, last) = (sends + 1, remaining - 1, millis);
            let reset = (60_200 - millis).div_ceil(1_000);
            hear(&rate, now, permit, minute(remaining, reset));
        }
        if millis == 30_000 {
            assert!((140..=165).contains(&sends), "{sends} in half of the time");
        }
    }
    assert!((295..=300).contains(&sends), "{sends} of 300");
    assert!(last > 55_000, "the last one at {last} ms");
}

#[test]
fn fast_spends_what_is_left_at_once_and_waits() {
    let settings = DeclaredSettings::new().spend(Spend::Fast);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, 10 * MILLI, first, minute(100, 60));
    let early = granted(&rate, SECOND, 10 * SECOND);
    assert!((90..=100).contains(&early), "{early} of 100");
    assert_eq!(granted(&rate, 10 * SECOND, 58 * SECOND), 100 - early);
}

#[test]
fn what_is_in_flight_is_counted() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(300, 60));
    let in_flight = granted(&rate, SECOND, 11 * SECOND);
    assert!(in_flight > 40);
    // The answer to the first of them.
    let late = left(&rate, 11 * SECOND);
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let want = 300.0 - in_flight as f64;
    assert!((late - want).abs() < 1e-3, "{late}, not {want}");
}

#[test]
fn a_late_report_raises_nothing() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(300, 60));
    let second = rate.try_acquire(at(SECOND)).expect("its turn");
    let third = rate.try_acquire(at(2 * SECOND)).expect("its turn");
    assert_eq!(
        hear(&rate, 3 * SECOND, third, minute(200, 57)),
        Observed::Taken
    );
    assert_eq!(
        hear(&rate, 3 * SECOND, second, minute(299, 57)),
        Observed::Nothing
    );
    assert!(left(&rate, 3 * SECOND) <= 200.0);

    let rate = declared();
    let refill = |left, used| minute(left, used).refills(true);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, refill(300, 30));
    let second = rate.try_acquire(at(SECOND)).expect("its turn");
    let third = rate.try_acquire(at(2 * SECOND)).expect("its turn");
    hear(&rate, 3 * SECOND, third, refill(200, 40));
    assert_eq!(
        hear(&rate, 3 * SECOND, second, refill(299, 30)),
        Observed::Nothing
    );
    assert!(left(&rate, 3 * SECOND) < 225.0);
}

#[test]
fn an_old_answer_does_not_open_the_new_window() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(10, 5));
    let second = rate.try_acquire(at(2 * SECOND)).expect("its turn");
    let now = 10 * SECOND;
    let fresh = left(&rate, now);
    assert!(fresh > 590.0, "a new window: {fresh}");
    let third = rate.try_acquire(at(now)).expect("its turn");
    // Sent before the reset, and counted before it.
    assert_eq!(hear(&rate, now, second, minute(9, 0)), Observed::Nothing);
    assert!(left(&rate, now) > 590.0);
    assert_eq!(
        hear(&rate, now + MILLI, third, minute(500, 55)),
        Observed::Taken
    );
    assert!(left(&rate, now + MILLI) <= 500.0);
}

#[test]
fn clocks_that_are_hours_apart_make_no_difference() {
    for hours in [0, 2, 10_000] {
        let date = 1_700_000_000 + hours * 3_600;
        let rate = declared();
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        let report = LimitReport::new(4_000)
            .limit(5_000)
            .reset(Reset::At(seconds(date + 2_000)));
        let dated = LimitReports::from(report).with_date(seconds(date));
        assert_eq!(
            rate.observe(at(SECOND / 5), first, &dated),
            Observed::Declared
        );
        let now = at(10 * SECOND);
        let pace = rate.snapshot(now).fill_rate;
        assert!(
            (2.0..2.1).contains(&pace),
            "{pace}/s with {hours} h between the clocks"
        );
        // Without a date a time says nothing.
        let other = declared();
        let first = other.try_acquire(at(0)).expect("the first one goes");
        assert_eq!(
            other.observe(at(1), first, &report.into()),
            Observed::Nothing
        );
        assert_eq!(other.ignored_reports(), 1);
    }
}

#[test]
fn a_refill_is_told_from_a_window() {
    // 600 a minute, ten a second: what is used comes back in used/10 s.
    let (refill, window) = (declared(), declared());
    for (rate, refills) in [(&refill, true), (&window, false)] {
        let mut permit = rate.try_acquire(at(0)).expect("the first one goes");
        for step in 1_u64..40 {
            let now = step * SECOND / 2;
            let used = 10 * step;
            let reset = if refills {
                Duration::from_millis(used * 100)
            } else {
                Duration::from_millis(60_000 - now / MILLI)
            };
            let report = LimitReport::new(600 - used)
                .limit(600)
                .reset(Reset::In(reset));
            hear(rate, now, permit, report);
            permit = rate.try_acquire(at(now)).unwrap_or(permit);
        }
    }
    let refills = |rate: &SendRate| rate.snapshot(at(20 * SECOND)).declared.unwrap().refills;
    assert_eq!(
        (refills(&refill), refills(&window)),
        (Some(true), None),
        "one whose reset stays is paced as a window"
    );
    let window = refill.snapshot(at(20 * SECOND)).declared.unwrap().window;
    assert_eq!(window, seconds(60));
}

#[test]
fn a_refill_at_rest_is_found_out() {
    // As much comes back as is taken: the reset stays 38 whole seconds away.
    for noise in [0, 18] {
        let rate = declared();
        for tick in 0..200_u64 {
            let now = tick * SECOND / 10;
            let Ok(permit) = rate.try_acquire(at(now)) else {
                continue;
            };
            let remaining = 220 + noise * (tick % 3) - noise;
            let report = LimitReport::new(remaining)
                .limit(600)
                .reset(Reset::In(seconds(38)));
            hear(&rate, now, permit, report);
        }
        let declared = rate.snapshot(at(20 * SECOND)).declared;
        let declared = declared.expect("a limit is declared");
        assert_eq!(declared.refills, Some(true), "{declared:?}");
        assert_eq!(declared.window, seconds(60));
    }
}

#[test]
fn a_throttle_in_spite_of_the_reports_gives_the_paced_law_a_say() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(500, 60));
    let second = rate.try_acquire(at(SECOND)).expect("its turn");
    let now = 2 * SECOND;
    hear(&rate, now, second, minute(499, 58));
    let recorded = rate.record(at(now), second, Outcome::Throttled);
    assert_eq!(recorded, Recorded::Contradicted);
    assert!(rate.snapshot(at(now)).declared.unwrap().contradicted);
    let pace = rate.snapshot(at(now)).fill_rate;
    assert!(pace < 5.0, "{pace}/s");
    // It explains itself if nothing is left.
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(0, 60));
    assert_ne!(
        rate.record(at(SECOND), first, Outcome::Throttled),
        Recorded::Contradicted
    );
}

#[test]
fn reports_that_say_too_much_are_learned() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(130, 10));
    let second = rate.try_acquire(at(SECOND)).expect("its turn");
    hear(&rate, 2 * SECOND, second, minute(120, 8));
    let hint = Outcome::ThrottledFor(seconds(8));
    assert_eq!(
        rate.record(at(2 * SECOND), second, hint),
        Recorded::Contradicted
    );
    assert_eq!(
        granted(&rate, 2 * SECOND, 10 * SECOND),
        0,
        "a pause as long as it asked for"
    );
    // In the next window 121 are kept back, less a 256th.
    let mut sends = 0;
    for millis in 12_000..70_000 {
        sends += u64::from(rate.try_acquire(at(millis * MILLI)).is_ok());
    }
    // Others were seen to take some too.
    assert!((300..=480).contains(&sends), "{sends} of 600");
}

#[test]
fn a_pause_holds_until_its_end() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(0, 30));
    let wait = rate.try_acquire(at(SECOND)).expect_err("nothing is left");
    assert!((seconds(28)..seconds(31)).contains(&wait), "{wait:?}");
    let mut place = rate.reserve(at(SECOND));
    assert!(place.claim(at(29 * SECOND)).is_err());
    assert!(place.claim(at(33 * SECOND)).is_ok());
}

#[test]
fn a_throttle_pauses_for_as_long_as_it_says() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    // Ten come back each second.
    hear(&rate, SECOND / 5, first, minute(0, 60).refills(true));
    let hint = Outcome::ThrottledFor(seconds(20));
    rate.record(at(SECOND), first, hint);
    assert_eq!(granted(&rate, SECOND, 21 * SECOND), 0);
    assert!(granted(&rate, 21 * SECOND, 25 * SECOND) > 0);
}

#[test]
fn wrong_reports_change_nothing_and_are_counted() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    let endless = Reset::In(Duration::MAX);
    for wrong in [
        LimitReport::new(3),
        LimitReport::new(0).limit(0).reset(Reset::In(seconds(1))),
        LimitReport::new(u64::MAX)
            .limit(u64::MAX)
            .reset(Reset::In(seconds(1))),
        LimitReport::new(3)
            .limit(1 << 41)
            .reset(Reset::In(seconds(1))),
        LimitReport::new(3).limit(5).reset(endless),
        LimitReport::new(3).limit(5).window(Duration::ZERO),
    ] {
        assert_eq!(hear(&rate, 1, first, wrong), Observed::Nothing, "{wrong:?}");
        assert_eq!(rate.snapshot(at(1)).declared, None);
    }
    assert_eq!(rate.ignored_reports(), 6);
}

#[test]
fn what_could_not_be_read_is_counted() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    let mut reports = LimitReports::from(minute(599, 60));
    reports.ignore();
    reports.ignore();
    assert_eq!(rate.observe(at(1), first, &reports), Observed::Declared);
    assert_eq!(rate.ignored_reports(), 2);
}

#[test]
fn limits_of_another_dimension_are_left_alone() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    let tokens = minute(0, 60).dimension(Dimension::Tokens);
    assert_eq!(hear(&rate, 1, first, tokens), Observed::Nothing);
    let settings = DeclaredSettings::new().dimension(Dimension::Tokens);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    assert_eq!(hear(&rate, 1, first, tokens), Observed::Declared);
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let rate = SendRate::new(law, Timestamp::ZERO);
        assert_eq!(hear(&rate, 1, first, minute(0, 60)), Observed::Nothing);
    }
}

#[test]
fn of_several_limits_the_tightest_holds() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    let day = LimitReport::new(100)
        .limit(100_000)
        .reset(Reset::In(seconds(40_000)))
        .policy(paceline::law::LimitName::new("day"));
    let mut reports = LimitReports::from(minute(600, 60));
    reports.push(day);
    assert_eq!(
        rate.observe(at(SECOND / 5), first, &reports),
        Observed::Declared
    );
    let pace = rate.snapshot(at(20 * SECOND)).fill_rate;
    // Until the second report one goes in ten seconds.
    assert!((0.09..0.11).contains(&pace), "{pace}/s");
    assert_eq!(
        rate.snapshot(at(20 * SECOND))
            .declared
            .unwrap()
            .policy
            .as_str(),
        "day"
    );
}

#[test]
fn a_changed_limit_is_told() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(600, 60));
    let second = rate.try_acquire(at(SECOND)).expect("its turn");
    let halved = minute(299, 59).limit(300);
    assert_eq!(hear(&rate, 2 * SECOND, second, halved), Observed::Changed);
    assert_eq!(rate.snapshot(at(2 * SECOND)).declared.unwrap().limit, 300);
}

#[test]
fn a_heavy_request_waits_and_goes() {
    let settings = DeclaredSettings::new().dimension(Dimension::Tokens);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let mut first = rate.reserve_n(at(0), 50).expect("any weight");
    let permit = first.claim(at(0)).expect("the first one goes");
    let report = minute(550, 60).dimension(Dimension::Tokens);
    hear(&rate, SECOND / 5, permit, report);
    let mut second = rate.reserve_n(at(SECOND), 50).expect("any weight");
    let wait = second
        .claim(at(SECOND))
        .expect_err("50 tokens take a while");
    assert!((seconds(3)..seconds(6)).contains(&wait), "{wait:?}");
    assert!(second.claim(at(8 * SECOND)).is_ok());
}

#[test]
fn a_request_heavier_than_what_is_left_waits_for_the_reset() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, MILLI, first, minute(20, 30));
    let mut place = rate.reserve_n(at(SECOND), 50).expect("it may go some day");
    for millis in (1_000..30_000).step_by(10) {
        assert!(place.claim(at(millis * MILLI)).is_err(), "{millis} ms");
    }
    assert!(place.claim(at(45 * SECOND)).is_ok());
}

/// The turns of both places have come, and the first leaves what the second takes, or one less.
#[test]
fn one_token_less_bars_a_turn_that_has_come() {
    for (left, waits) in [(53, None), (52, Some(seconds(51)))] {
        let settings = DeclaredSettings::new().spend(Spend::Fast);
        let rate = SendRate::declared(settings, Timestamp::ZERO);
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        hear(&rate, MILLI, first, minute(300, 60));
        let places = [247, 53].map(|weight| rate.reserve_n(at(SECOND), weight));
        let [mut before, mut place] = places.map(|place| place.expect("300 are left"));
        let now = 10 * SECOND;
        let permit = before.claim(at(now)).expect("its turn");
        hear(&rate, now, permit, minute(left, 50));
        let waited = place.claim(at(now)).err();
        assert_eq!(waited, waits, "{left} are left");
    }
}

#[test]
fn a_ceiling_holds_over_what_is_declared() {
    let ceiling = paceline::law::PacedSettings::builder()
        .ceiling(1, seconds(1))
        .build();
    let settings = DeclaredSettings::new().otherwise(ceiling.expect("in range"));
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(600, 60));
    let pace = rate.snapshot(at(20 * SECOND)).fill_rate;
    assert!((pace - 1.0).abs() < 1e-9, "{pace}/s");
}

#[test]
fn what_was_declared_can_be_forgotten() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(0, 60));
    assert!(rate.try_acquire(at(SECOND)).is_err());
    rate.forget_throttles(at(SECOND));
    assert_eq!(rate.snapshot(at(SECOND)).declared, None);
}

/// Rules 2 to 4 in floating point: what is left, and the rate.
#[derive(Default)]
struct Model {
    refills: bool,
    left: f64,
    sent: f64,
    at: f64,
    own: f64,
    foreign: f64,
    trip: f64,
    reset: (f64, f64),
    /// Until when no more goes than the limit by the window.
    early_until: f64,
}

const LIMIT: f64 = 600.0;
const WINDOW: f64 = 60.0;

impl Model {
    fn hear(&mut self, sent_at: f64, now: f64, order: f64, remaining: f64, reset: f64) {
        let trip = now - sent_at;
        let begun = self.trip > 0.0;
        self.trip = if begun {
            self.trip * 0.875 + trip * 0.125
        } else {
            trip
        };
        if begun {
            let (own, passed) = (order - self.sent, (now - self.at).max(0.0));
            let back = if self.refills {
                passed * LIMIT / WINDOW
            } else {
                0.0
            };
            let before = (self.left + back).min(LIMIT);
            let tau = (4.0 * self.trip).max(5.0);
            if self.refills && now < self.at + 2.0 * self.trip && remaining >= before {
                // What the last report has and this one has not was overtaken.
                self.own += own / tau;
                self.sent = order;
                return;
            }
            let foreign = before - own - remaining;
            self.own = (self.own * tau + own) / (tau + passed);
            self.foreign = ((self.foreign * tau + foreign) / (tau + passed)).max(0.0);
            self.early_until = 0.0;
        } else {
            self.early_until = now + 2.0 * trip;
        }
        (self.left, self.sent, self.at) = (remaining, order, now);
        let heard = (sent_at + reset - 0.001, now + reset + 0.001);
        self.reset = if begun {
            (self.reset.0.max(heard.0), self.reset.1.min(heard.1))
        } else {
            heard
        };
    }

    fn rate(&self, now: f64, sent: f64) -> f64 {
        let (own, foreign) = (self.own.max(0.0), self.foreign.max(0.0));
        // Alone, or as good as alone.
        let foreseen = if foreign * 10.0 > own { foreign } else { 0.0 };
        let age = (now - self.at).max(0.0);
        let even = LIMIT / WINDOW;
        let level = if self.refills {
            let taken = foreseen.min(even) * age.min(2.0 * self.trip);
            (self.left + even * age - taken).min(LIMIT) - (sent - self.sent)
        } else {
            self.left - foreseen * age.min(4.0 * self.trip) - (sent - self.sent)
        };
        let kept = if foreseen > 0.0 {
            (1.0 + (self.foreign / self.own).min(8.0) / 2.0).min(LIMIT / 4.0)
        } else {
            0.0
        };
        let spread = if self.refills {
            (LIMIT - level) / even
        } else {
            (self.reset.0 - now).max(0.0)
        };
        let spread = spread.max(self.trip / 4.0).max(0.05);
        let part = if foreign > 0.0 {
            own / (own + foreign)
        } else {
            1.0
        };
        let rate = part.powf(0.75) * (level - kept) / spread;
        if now < self.early_until {
            rate.min(even)
        } else {
            rate
        }
    }
}

/// Plays one client beside others against a window or a refill, and returns how many rates were
/// compared with the model's.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn compare_with_the_model(refills: bool, seed: u64) -> u64 {
    let mut compared = 0;
    let mut rng = Rng::with_seed(seed);
    let rate = declared();
    let mut model = Model {
        refills,
        ..Model::default()
    };
    let f = |nanos: u64| nanos as f64 / 1e9;
    let reset_at = 60 * SECOND + 500_001;
    // A refill is half used when this client comes.
    let (mut sent, mut taken) = (0_u64, if refills { 300 } else { 0 });
    let mut permit = rate.try_acquire(at(0)).expect("the first one goes");
    let mut sent_at = 0;
    for step in 0..30 {
        sent += u64::from(step == 0);
        let now = sent_at + rng.u64(50 * MILLI..800 * MILLI);
        taken += rng.u64(0..8);
        let back = if refills { now / (100 * MILLI) } else { 0 };
        let remaining = (600 + back).saturating_sub(sent + taken).min(600);
        let reset = reset_at.saturating_sub(now);
        let report = LimitReport::new(remaining)
            .limit(600)
            .window(seconds(60))
            .refills(refills)
            .reset(Reset::In(Duration::from_nanos(reset)));
        if reset % SECOND == 0 {
            continue;
        }
        hear(&rate, now, permit, report);
        model.hear(f(sent_at), f(now), sent as f64, remaining as f64, f(reset));
        let later = now + rng.u64(0..300 * MILLI);
        let (got, want) = (
            rate.snapshot(at(later)).fill_rate,
            model.rate(f(later), sent as f64),
        );
        if want > 0.1 {
            compared += 1;
            assert!(
                (got - want).abs() <= 1e-6 * want,
                "seed {seed}: {got}, not {want}"
            );
        }
        sent_at = later;
        while sent_at < later + 5 * SECOND {
            if let Ok(next) = rate.try_acquire(at(sent_at)) {
                (permit, sent) = (next, sent + 1);
                break;
            }
            sent_at += 20 * MILLI;
        }
    }
    compared
}

#[test]
fn the_rate_of_a_window_is_that_of_the_formula() {
    let compared: u64 = (0..200)
        .map(|seed| compare_with_the_model(false, seed))
        .sum();
    assert!(compared > 3_000, "{compared}");
}

#[test]
fn the_rate_of_a_refill_is_that_of_the_formula() {
    let compared: u64 = (0..200)
        .map(|seed| compare_with_the_model(true, seed))
        .sum();
    assert!(compared > 3_000, "{compared}");
}

#[test]
fn reports_in_the_wrong_order_count_what_they_overtook() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND, first, minute(300, 60));
    let second = rate.try_acquire(at(2 * SECOND)).expect("its turn");
    let third = rate.try_acquire(at(3 * SECOND)).expect("its turn");
    hear(&rate, 3 * SECOND + MILLI, third, minute(290, 58));
    let now = 3 * SECOND + 2 * MILLI;
    assert_eq!(hear(&rate, now, second, minute(291, 58)), Observed::Nothing);
    // The second request came after the third: the service has counted it since.
    let now = 3 * SECOND + 3 * MILLI;
    assert_eq!(hear(&rate, now, second, minute(280, 58)), Observed::Taken);
    assert!((left(&rate, now) - 280.0).abs() < 0.1);
    // A newer one says more: a request that was sent before it may be on its way.
    let fourth = rate.try_acquire(at(3_700 * MILLI)).expect("its turn");
    hear(&rate, 3_800 * MILLI, fourth, minute(298, 58));
    let now = 3_800 * MILLI;
    assert!(left(&rate, now) <= 280.0, "{}", left(&rate, now));
    let fifth = rate.try_acquire(at(8 * SECOND)).expect("its turn");
    assert_eq!(
        hear(&rate, 8_100 * MILLI, fifth, minute(297, 53)),
        Observed::Taken
    );
    assert!(left(&rate, 8_100 * MILLI) > 290.0);
}

#[test]
fn more_than_the_limit_is_never_left() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    hear(&rate, SECOND / 5, first, minute(1 << 39, 60));
    let left = left(&rate, SECOND / 5);
    assert!((599.0..=600.0).contains(&left), "{left}");
}
