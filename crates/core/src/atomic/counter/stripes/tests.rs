//! Counts by threads that are numbered by hand, and by real ones.

use super::*;

/// The number of no thread.
const ANY: usize = SLOTS;

#[test]
fn a_count_is_the_sum_of_all_stripes_and_wraps() {
    let stripes = Stripes::new(u64::MAX);
    assert_eq!(stripes.sum(), u64::MAX);
    stripes.add_as(3, 1);
    stripes.add_as(4, 1);
    assert_eq!(stripes.sum(), 1);
    for number in 0..1_000 {
        stripes.add_as(number, 1);
    }
    assert_eq!(stripes.sum(), 1_001);
}

#[test]
fn the_first_thread_has_a_stripe_to_itself_and_the_others_share_one() {
    let stripes = Stripes::new(7);
    stripes.add_as(ANY, 1);
    stripes.add_as(5, 1);
    stripes.add_as(5, 1);
    stripes.add_as(2, 1);
    assert_eq!(stripes.own.count.load(Relaxed), 9);
    assert_eq!(stripes.shared.load(Relaxed), 2);
    assert!(stripes.stripe_of(5).is_some() && stripes.stripe_of(2).is_none());
    assert!(stripes.wide().is_none());
}

#[cfg(feature = "std")]
#[test]
#[cfg_attr(target_family = "wasm", ignore = "nothing tells the cores")]
fn there_are_as_many_shared_stripes_as_cores() {
    let cores = std::thread::available_parallelism().expect("known");
    assert!(Wide::new().shared.len() >= cores.get().min(16));
    assert!(super::cores() >= cores.get().min(SLOTS));
}

#[cfg(feature = "std")]
#[test]
fn threads_that_meet_often_get_stripes_and_lose_no_count() {
    let stripes = Stripes::new(0);
    // The owner of the first stripe counts between any two counts of the other.
    let meet = |times: u32| {
        for _ in 0..times {
            stripes.add_as(0, 1);
            stripes.add_as(1, 1);
        }
    };
    meet(MEETINGS);
    assert!(stripes.wide().is_none());
    stripes.forget_meetings();
    meet(MEETINGS);
    assert!(stripes.wide().is_none(), "seldom enough");
    meet(1);
    let wide = stripes.wide().expect("met once more");
    assert_eq!(stripes.sum(), 4 * u64::from(MEETINGS) + 2);
    stripes.add_as(0, 1);
    stripes.add_as(1_000_000, 1);
    assert!(stripes.stripe_of(15).is_some(), "on one core too");
    assert!(stripes.stripe_of(SLOTS).is_none());
    assert_eq!(wide.own[0].count.load(Relaxed), 1);
    let own = 2 * u64::from(MEETINGS) + 1;
    assert_eq!(stripes.own.count.load(Relaxed), own, "written no more");
    assert_eq!(stripes.sum(), 4 * u64::from(MEETINGS) + 4);
    let shared: u64 = wide.shared.iter().map(|stripe| stripe.load(Relaxed)).sum();
    assert_eq!(shared, 1);
}

#[cfg(feature = "std")]
#[test]
fn a_thread_alone_needs_no_wide_stripes() {
    let stripes = Stripes::new(0);
    stripes.add_as(0, 1);
    for number in [1, 0, SLOTS, 2] {
        (0..10_000).for_each(|_| stripes.add_as(number, 1));
    }
    assert!(stripes.wide().is_none(), "no two counted at a time");
    assert_eq!(stripes.sum(), 40_001);
    assert!(size_of::<Stripes>() <= 64);
}

#[cfg(feature = "std")]
#[test]
fn threads_that_meet_at_the_shared_stripe_get_stripes() {
    let stripes = Stripes::new(0);
    stripes.add_as(0, 1);
    for number in (1..=MEETINGS as usize + 1).map(|round| 1 + round % 2) {
        assert!(stripes.wide().is_none());
        stripes.add_as(number, 1);
    }
    assert!(stripes.wide().is_some());
}

#[cfg(feature = "std")]
#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn threads_that_come_and_go_lose_no_count() {
    let stripes = Stripes::new(0);
    for _ in 0..100 {
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| (0..7).for_each(|_| stripes.add(1)));
            }
        });
    }
    assert_eq!(stripes.sum(), 7_000);
}

/// Counts `requests` that come every `gap` ns from `*now` on, and returns how often the time was
/// asked for.
fn looks(stripe: &Stripe, now: &mut u64, requests: u64, gap: u64) -> u64 {
    let mut looks = 0_u64;
    for _ in 0..requests {
        *now = now.saturating_add(gap);
        let ahead = stripe.is_ahead();
        let counted = stripe.try_add_one();
        assert_eq!(counted, ahead);
        if !counted {
            stripe.add_one_at(*now);
            looks = looks.saturating_add(1);
        }
    }
    looks
}

#[test]
fn a_busy_thread_seldom_looks_at_the_clock_and_a_slow_one_always() {
    let stripe = Stripe::new(0);
    let mut now = 1 << 40;
    // After each of nine looks, 0, 1, 3, 7, ... 255 requests go without. Then one in 256 looks.
    assert_eq!(looks(&stripe, &mut now, 511, 1_000), 9);
    assert_eq!(looks(&stripe, &mut now, 2_561, 1_000), 11);
    assert_eq!(stripe.count.load(Relaxed), 3_072);
    // At most 255 more before the thread notices.
    assert_eq!(looks(&stripe, &mut now, 256, 10_000_000), 1);
    assert_eq!(looks(&stripe, &mut now, 50, 10_000_000), 50);
}

#[test]
fn a_thread_looks_at_least_every_two_milliseconds_while_its_requests_come_evenly() {
    for gap in [5_000, 20_000, 100_000, 400_000] {
        let stripe = Stripe::new(u64::MAX - 5);
        let mut now = 1 << 40;
        looks(&stripe, &mut now, 20_000, gap);
        let batch = stripe.pace.load(Relaxed) & 0xffff;
        assert!(
            batch > 0 && (batch + 1) * gap <= 32 << 16,
            "{batch} of {gap}"
        );
    }
}

#[test]
fn an_exact_count_uses_up_what_may_go_without_a_look() {
    let stripe = Stripe::new(0);
    let now = 1 << 40;
    stripe.add_one_at(now);
    stripe.add_one_at(now);
    assert!(stripe.is_ahead());
    stripe.add(1);
    stripe.add(1);
    assert!(!stripe.is_ahead() && !stripe.try_add_one());
    assert_eq!(stripe.count.load(Relaxed), 4);
}

#[test]
fn a_clock_that_goes_back_makes_the_thread_look() {
    let stripe = Stripe::new(0);
    stripe.add_one_at(1 << 40);
    stripe.add_one_at(1 << 40);
    stripe.add_one_at(0);
    assert!(!stripe.is_ahead());
}
