//! A rate that stands twice in a set: refused, and nothing is taken.

use core::time::Duration;

use paceline::{SendLimiter, SendRate, SendSet, Timestamp, law::PacedSettings, set::SetError};

#[test]
fn a_rate_that_stands_twice_is_named_and_nothing_is_taken() {
    let second = Duration::from_secs(1);
    let rate = || {
        let settings = PacedSettings::fixed(10, second).and_then(|fixed| {
            let settings = fixed.to_builder().burst(second);
            settings.build()
        });
        SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
    };
    let (one, two) = (rate(), rate());
    let set = SendSet::new([&one, &two, &one]);
    let now = Timestamp::ZERO;
    let twice = SetError::Twice { limits: [0, 2] };
    assert_eq!(set.try_acquire(now, &[1, 1, 1]).err(), Some(twice));
    assert_eq!(
        set.background().try_acquire(now, &[1, 1, 1]).err(),
        Some(twice)
    );
    assert_eq!(set.reserve(now, &[1, 1, 1]).err(), Some(twice));
    let limiter = SendLimiter::new(SendSet::of([&one, &one]).expect("two"));
    assert_eq!(
        limiter.tokens([1, 1]).acquire_blocking().err(),
        Some(SetError::Twice { limits: [0, 1] })
    );
    assert_eq!(twice.to_string(), "limits 0 and 2 are one rate");
    for rate in [&one, &two] {
        assert!(rate.try_acquire_n(now, 10).is_ok(), "the bucket is full");
    }
}
