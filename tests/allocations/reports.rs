//! What reports of a declared limit allocate.

use core::time::Duration;

use allocation_counter::measure;
use paceline::{
    ControlLaw, Outcome, SendRate, Timestamp,
    law::{LimitReport, LimitReports, Reset},
};

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

#[test]
fn only_the_first_report_takes_memory() {
    let rate = SendRate::new(ControlLaw::Declared, at(0));
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    let hear = |now, report: LimitReport| {
        let minute = report.limit(300).reset(Reset::In(Duration::from_secs(60)));
        rate.observe(at(now), first, &LimitReports::from(minute));
    };
    let none = measure(|| {
        rate.observe(at(1), first, &LimitReports::new());
        rate.record(at(1), first, Outcome::NotThrottled);
    });
    assert_eq!(none.count_total, 0);
    let some = measure(|| hear(200_000_000, LimitReport::new(300)));
    assert!((1..=2).contains(&some.count_total), "{some:?}");
    let more = measure(|| {
        hear(250_000_000, LimitReport::new(300));
        assert!(rate.try_acquire(at(5_000_000_000)).is_ok());
    });
    assert_eq!(more.count_total, 0);
}
