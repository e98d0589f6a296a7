//! The retry budget: what its window holds, and what it says to wrong settings and wrong clocks.

use core::time::Duration;

use paceline::{QuotaSettingsError, RetryBudget, Timestamp};

const WINDOW: Duration = Duration::from_secs(10);

fn at(seconds: u64) -> Timestamp {
    Timestamp::ZERO.saturating_add(Duration::from_secs(seconds))
}

fn count(budget: &RetryBudget, requests: u32, seconds: u64) {
    for _ in 0..requests {
        budget.count_request(at(seconds));
    }
}

/// Takes what there is.
fn take(budget: &RetryBudget, seconds: u64) -> u32 {
    let left = budget.available(at(seconds));
    for _ in 0..left {
        assert!(budget.try_acquire(at(seconds)).is_some());
    }
    assert!(budget.try_acquire(at(seconds)).is_none());
    assert_eq!(budget.available(at(seconds)), 0);
    left
}

#[test]
fn retries_are_a_share_of_the_requests_of_the_window() {
    let budget = RetryBudget::new(200, 0, WINDOW).unwrap();
    assert_eq!(take(&budget, 0), 0, "no requests yet");
    count(&budget, 9, 0);
    assert_eq!(take(&budget, 0), 1);
    count(&budget, 1, 1);
    assert_eq!(take(&budget, 1), 1, "nine of the last slot and one of this");
    count(&budget, 100, 9);
    assert_eq!(budget.available(at(9)), 20);
    assert_eq!(
        budget.available(at(10)),
        19,
        "20.2, less the retry of the second slot"
    );
    assert_eq!(budget.available(at(18)), 20);
    assert_eq!(budget.available(at(19)), 0, "the hundred are gone");
    let shown = budget.snapshot(at(19));
    assert_eq!(
        (shown.requests, shown.retries, shown.available),
        (110, 2, 0)
    );
}

#[test]
fn a_minimum_is_there_without_requests_and_once_in_a_window() {
    let budget = RetryBudget::new(0, 2, WINDOW).unwrap();
    assert_eq!(take(&budget, 5), 20);
    count(&budget, 1_000, 6);
    assert_eq!(take(&budget, 6), 0, "requests give nothing at a ratio of 0");
    assert_eq!(take(&budget, 14), 0);
    assert_eq!(
        take(&budget, 15),
        20,
        "the slot of the twenty is out of the window"
    );
}

#[test]
fn a_budget_of_nothing_allows_nothing_and_one_for_all_allows_all() {
    let nothing = RetryBudget::new(0, 0, Duration::from_secs(1)).unwrap();
    count(&nothing, 10, 0);
    assert_eq!(take(&nothing, 0), 0);
    let all = RetryBudget::new(1_000, 0, Duration::from_secs(3_600)).unwrap();
    count(&all, 10, 0);
    assert_eq!(take(&all, 3_000), 10);
}

#[test]
fn an_older_clock_counts_as_the_latest_and_one_far_ahead_stops_the_window() {
    let budget = RetryBudget::new(1_000, 0, WINDOW).unwrap();
    count(&budget, 3, 0);
    count(&budget, 2, 12);
    count(&budget, 1, 0);
    assert_eq!(
        budget.available(at(0)),
        3,
        "those of the window that ends at 12"
    );
    let last = Timestamp::from_nanos(u64::MAX);
    budget.count_request(last);
    count(&budget, 1, 13);
    assert_eq!(take(&budget, 13), 2, "since then");
    assert!(budget.try_acquire(last).is_none());
}

#[test]
fn a_ring_that_is_used_again_forgets_what_it_held() {
    let budget = RetryBudget::new(1_000, 0, WINDOW).unwrap();
    for second in 0..40 {
        count(&budget, 1, second);
        let window = u32::try_from(second + 1).unwrap().min(10);
        assert_eq!(budget.available(at(second)), window);
    }
    assert_eq!(budget.available(at(48)), 1);
    assert_eq!(budget.available(at(49)), 0);
    assert_eq!(
        budget.available(at(49 + 160)),
        0,
        "ten laps of the ring later"
    );
}

#[test]
fn settings_out_of_range_are_errors() {
    let ratio = RetryBudget::new(1_001, 0, WINDOW).unwrap_err();
    assert!(matches!(
        ratio,
        QuotaSettingsError::Ratio {
            permille: 1_001,
            ..
        }
    ));
    for length in [Duration::ZERO, Duration::from_millis(999), Duration::MAX] {
        let window = RetryBudget::new(100, 0, length).unwrap_err();
        assert!(matches!(window, QuotaSettingsError::Window { length: l, .. } if l == length));
    }
}
