//! The second line, by one thread.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::*;
use crate::atomic::send_rate::behind::MaybeBehind;
use crate::law::paced::PacedSettings;
use crate::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp, WeightError};

/// One token, in nanoseconds: a power of two, so that nothing is rounded.
const ONE: u64 = 1 << 27;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Returns the time in which so many hundredths of a token are minted.
fn nanos(cents: u64) -> u64 {
    (cents * ONE).div_ceil(100)
}

fn cents(cents: u64) -> Timestamp {
    at(nanos(cents))
}

fn span(cents: u64) -> Duration {
    Duration::from_nanos(nanos(cents))
}

/// A limiter of one token in [`ONE`], whose bucket holds `burst` tokens and is full.
fn fixed(burst: u64) -> SendRate {
    let settings = PacedSettings::fixed(1, span(100)).expect("in range");
    let settings = settings.to_builder().burst(span(100 * burst)).build();
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

/// The same with an empty bucket.
fn spent(burst: u64) -> SendRate {
    let rate = fixed(burst);
    while rate.try_acquire(at(0)).is_ok() {}
    rate
}

/// A learned rate with an empty bucket, which holds ten tokens.
fn learned() -> SendRate {
    let settings = PacedSettings::builder()
        .initial_rate(1, span(100))
        .burst(span(1_000));
    let rate = SendRate::paced(settings.build().expect("in range"), Timestamp::ZERO);
    while rate.try_acquire(at(0)).is_ok() {}
    rate
}

fn goes(place: &mut Reservation<'_>, now: Timestamp) -> bool {
    place.claim(now).is_ok()
}

fn waits(rate: &SendRate) -> u64 {
    let engaged = rate.about_to_limit();
    engaged.second_line().behind.waiting_tokens()
}

#[test]
fn a_claim_that_is_undone_was_not_granted() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let limited = rate.about_to_limit();
    let behind = limited.beside().behind.get_or_make();
    behind.add(5);
    behind.claim(4);
    behind.grant(5);
    behind.unclaim(5, 1);
    assert_eq!((behind.granted(), behind.unclaimed()), (0, 5));
}

#[test]
fn background_is_ahead_by_64_of_its_tokens_at_most() {
    let behind = MaybeBehind::new();
    let behind = behind.get_or_make();
    behind.restart(0);
    for _ in 0..4 {
        behind.note(0, 64, false);
    }
    let (ahead, part) = (64 * 20 * TOKEN, 20 * TOKEN);
    assert!(!behind.owes(ahead + part - 1, ahead) && behind.owes(ahead + part, ahead));
}

#[test]
fn the_pace_is_of_what_went_since_the_release_before() {
    let behind = MaybeBehind::new();
    let behind = behind.get_or_make();
    behind.restart(0);
    let paced = |promised: u64| {
        behind.note(promised * TOKEN, 2, false);
        behind.paced(16 * TOKEN)
    };
    assert_eq!([paced(40), paced(40)], [56 * TOKEN, 51 * TOKEN]);
}

#[test]
fn the_second_line_is_no_longer_than_the_first() {
    let behind = MaybeBehind::new();
    let behind = behind.get_or_make();
    let most = LONGEST_QUEUE / TOKEN;
    let heaviest = u64::from(u32::MAX);
    assert!((0..most / heaviest).all(|_| behind.promise(u32::MAX).is_ok()));
    let rest = u32::try_from(most % heaviest).expect("less");
    assert!(behind.promise(rest).is_ok());
    let full = WeightError::LineFull {
        weight: 1,
        waiting: most,
    };
    assert_eq!(behind.promise(1), Err(full));
}

#[test]
fn foreground_that_comes_later_goes_first() {
    let rate = spent(1);
    let mut backfill = rate.background().reserve(at(0));
    let mut people = [0; 3].map(|_| rate.reserve(at(0)));
    for (nth, person) in (1..).zip(&mut people) {
        let now = cents(100 * nth);
        assert!(!goes(&mut backfill, now) && goes(person, now));
    }
    assert!(!goes(&mut backfill, cents(399)) && goes(&mut backfill, cents(400)));
    assert_eq!(rate.snapshot(cents(400)).background.released, 1);
}

#[test]
fn background_is_first_come_first_served_whoever_looks() {
    let rate = spent(1);
    let mut places = [0; 4].map(|_| rate.background().reserve(at(0)));
    let [first, second, third, last] = &mut places;
    // The first waiter is never polled, and its token waits for it.
    assert!(!goes(third, cents(100)) && !goes(second, cents(100)));
    assert!(goes(second, cents(200)) && !goes(last, cents(200)));
    assert!(goes(third, cents(300)) && !goes(last, cents(399)));
    assert!(goes(last, cents(400)) && goes(first, cents(400)));
    assert_eq!(waits(&rate), 0);
}

#[test]
fn a_new_try_passes_nobody_who_waits() {
    let rate = spent(1);
    let mut place = rate.background().reserve(at(0));
    let refused = rate.background().try_acquire(cents(100));
    assert_eq!(refused, Err(span(100)), "the next one");
    assert!(goes(&mut place, cents(100)));
    assert!(rate.background().try_acquire(cents(199)).is_err());
    assert!(rate.background().try_acquire(cents(200)).is_ok());
}

#[test]
fn what_is_given_up_passes_to_those_behind_it() {
    let rate = spent(1);
    let places = [0; 3].map(|_| rate.background().reserve(at(0)));
    let [first, second, mut last] = places;
    drop(second);
    assert!(!goes(&mut last, cents(199)));
    // Released to the first, which is then dropped.
    assert!(!goes(&mut last, cents(100)));
    drop(first);
    assert!(goes(&mut last, cents(100)));
    assert_eq!(waits(&rate), 0);
}

#[test]
fn what_is_given_up_last_goes_back_to_the_first_line() {
    let rate = spent(1);
    let mut first = rate.background().reserve(at(0));
    let second = rate.background().reserve(at(0));
    assert!(goes(&mut first, cents(100)));
    let mut third = rate.background().reserve(cents(150));
    assert!(
        !goes(&mut third, cents(200)),
        "it is released to the second"
    );
    drop((second, third));
    assert!(
        rate.try_acquire(cents(200)).is_err(),
        "no thread has looked"
    );
    assert!(rate.background().try_acquire(cents(200)).is_ok());
    assert!(rate.try_acquire(cents(299)).is_err());
    assert!(rate.try_acquire(cents(300)).is_ok());
}

#[test]
fn what_two_threads_release_for_one_is_given_back() {
    let rate = spent(1);
    let mut place = rate.background().reserve(at(0));
    let engaged = rate.about_to_limit();
    // Both have taken a token before either adds it.
    assert_eq!(engaged.second_line().take_spare(nanos(100), 1, 1), Some(1));
    assert!(goes(&mut place, cents(200)));
    engaged.second_line().behind.add(1);
    engaged.second_line().release(nanos(200));
    assert!(rate.try_acquire(cents(200)).is_ok());
    assert!(rate.try_acquire(cents(299)).is_err());
    assert_eq!(engaged.second_line().behind.unclaimed(), 0);
}

#[test]
fn background_has_one_of_twenty_one_beside_a_line_without_end() {
    let rate = spent(1);
    let mut line = VecDeque::new();
    let mut backfill = rate.background().reserve(at(0));
    let (mut people, mut released) = (0_u32, Vec::new());
    for step in 0..4_200_u64 {
        let now = cents(step * 10);
        while line.len() < 5 {
            line.push_back(rate.reserve(now));
        }
        if line.front_mut().is_some_and(|place| goes(place, now)) {
            line.pop_front();
            people += 1;
        }
        if goes(&mut backfill, now) {
            backfill = rate.background().reserve(now);
            released.push(step * 10);
        }
    }
    // 420 tokens, 21 for each.
    let waited = |pair: &[u64]| pair.first().zip(pair.last()).map(|(a, b)| b - a);
    let longest = released.windows(2).filter_map(waited).max();
    assert!(longest <= Some(2_600), "{longest:?}");
    assert!((16..=21).contains(&released.len()), "{released:?}");
    assert!((398..=404).contains(&people), "{people}");
}

#[test]
fn a_trickle_is_given_up_when_nothing_waits() {
    let rate = spent(1);
    let backfill = rate.background().reserve(at(0));
    let mut line: Vec<_> = (0..21).map(|_| rate.reserve(at(0))).collect();
    let engaged = rate.about_to_limit();
    engaged.second_line().release(0);
    assert_ne!(engaged.second_line().behind.trickle.load(Relaxed), NO_PLACE);
    let mut behind_it = rate.reserve(at(0));
    assert_eq!(behind_it.claim(at(0)), Err(span(2_300)));
    drop(backfill);
    engaged.second_line().release(0);
    assert_eq!(engaged.second_line().behind.trickle.load(Relaxed), NO_PLACE);
    assert_eq!(behind_it.claim(at(0)), Err(span(2_200)));
    assert!(line.iter_mut().all(|place| goes(place, cents(2_100))));
    assert!(goes(&mut behind_it, cents(2_200)));
    assert_eq!(engaged.line().open_tokens(), 0);
}

#[test]
fn of_a_known_rate_three_quarters_of_the_bucket_are_left_alone() {
    let rate = fixed(21); // 21 tokens
    let taken = (0..30).filter(|_| rate.background().try_acquire(at(0)).is_ok());
    assert_eq!(taken.count(), 6);
    let people = (0..30).filter(|_| rate.try_acquire(at(0)).is_ok());
    assert_eq!(people.count(), 15);
    // A heavy try may take the tokens that are otherwise left alone.
    let rate = fixed(21);
    assert!(rate.background().try_acquire_n(at(0), 20).is_ok());
}

#[test]
fn of_a_learned_rate_nothing_is_left_alone() {
    let rate = learned();
    let taken = (0..20).filter(|_| rate.background().try_acquire(cents(500)).is_ok());
    assert!((5..=6).contains(&taken.count()));
}

#[test]
fn a_heavy_request_is_saved_up_token_by_token() {
    let rate = spent(10);
    let mut heavy = rate.background().reserve_n(at(0), 5).expect("it fits");
    let mut light = rate.background().reserve(at(0));
    // The stock of 6.75 that is left alone builds up first.
    for step in 1..=117 {
        assert!(!goes(&mut light, cents(step * 10)) && !goes(&mut heavy, cents(step * 10)));
    }
    assert!(goes(&mut heavy, cents(1_175)) && !goes(&mut light, cents(1_274)));
    assert!(goes(&mut light, cents(1_275)));
    let refused = rate.background().reserve_n(at(0), 11).err();
    assert!(matches!(refused, Some(WeightError::AboveCapacity { .. })));
    let refused = rate.background().try_acquire_n(at(0), 0);
    assert_eq!(refused, Err(WeightError::Zero.into()));
}

#[test]
fn when_the_limit_ends_all_of_background_go() {
    for limited in [true, false] {
        let rate = SendRate::new(ControlLaw::Paced, at(0));
        if limited {
            rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
        }
        let mut places = [0; 5].map(|_| rate.background().reserve(at(0)));
        rate.forget_throttles(cents(1));
        assert!(places.iter_mut().all(|place| goes(place, cents(1))));
        assert!(rate.background().try_acquire(cents(1)).is_ok());
        // After the next throttle nothing waits any more.
        rate.record(cents(2), SendPermit::sent_at(cents(2)), Outcome::Throttled);
        assert_eq!(waits(&rate), 0);
    }
}

/// A request made while nothing was limited goes, whatever the capacity is then.
#[test]
fn a_weight_that_no_bucket_holds_is_saved_up() {
    let rate = SendRate::paced(PacedSettings::new(), at(0));
    let mut heavy = rate.background().reserve_n(at(0), 5).expect("no limit");
    let settings = PacedSettings::builder().ceiling(1, span(100)).build();
    let set = rate.set_paced(settings.expect("in range"), at(0));
    assert_eq!(set, Ok(()));
    let went = (0..200).find(|step| goes(&mut heavy, cents(10 * step)));
    assert!(went >= Some(40), "{went:?}");
}

#[test]
fn no_limit_ends_while_background_waits() {
    let rate = spent(1);
    let engaged = rate.about_to_limit();
    assert!(!engaged.is_background_waiting());
    let place = rate.background().reserve(at(0));
    assert!(engaged.is_background_waiting() && !rate.is_idle(cents(100_000)));
    drop(place);
    assert!(!engaged.is_background_waiting());
}

#[test]
fn an_estimate_follows_what_the_foreground_takes() {
    let rate = spent(1);
    let behind = |nth: u32| {
        let places: Vec<_> = (1..nth).map(|_| rate.background().reserve(at(0))).collect();
        let last = rate.background().reserve(at(0)).claim(at(0));
        drop(places);
        last
    };
    assert_eq!(behind(1), Err(span(100)));
    assert_eq!(behind(10), Err(span(1_000)));
    let engaged = rate.about_to_limit();
    for _ in 0..40 {
        let mark = engaged.second_line().behind.mark.load(Relaxed);
        engaged
            .second_line()
            .behind
            .note(mark.wrapping_add(4 * TOKEN), 1, false);
    }
    let Err(wait) = behind(10) else {
        panic!("it has to wait");
    };
    assert!((span(4_800)..=span(5_000)).contains(&wait), "{wait:?}");
}

#[test]
fn a_place_that_comes_too_late_is_refused() {
    let rate = spent(1);
    let _first = rate.background().reserve(at(0));
    let take = |millis| {
        let patience = Some(span(millis));
        rate.ask(at(0), 1, Class::Background)
            .queue_up(patience)
            .err()
    };
    let wait = span(200);
    assert_eq!(take(199), Some(AcquireError::NotInTime { wait }));
    assert_eq!(take(200), None);
}

#[test]
fn a_pause_releases_nothing() {
    let rate = spent(1);
    let mut place = rate.background().reserve(at(0));
    let hint = span(5_000);
    rate.record(
        cents(1),
        SendPermit::sent_at(at(0)),
        Outcome::ThrottledFor(hint),
    );
    assert!(!goes(&mut place, cents(5_000)));
    assert!(goes(&mut place, cents(7_000)));
}

#[test]
fn a_reset_leaves_the_line_as_it_is() {
    let rate = spent(1);
    let mut place = rate.background().reserve(cents(0));
    let line = [0; 30].map(|_| rate.reserve(cents(0)));
    rate.about_to_limit().second_line().release(0);
    rate.reset(cents(0));
    assert_eq!(waits(&rate), 1);
    drop(line);
    assert!(goes(&mut place, cents(100)));
}

/// One request of the property test: what stands in a line, and how much it asks for.
struct Asked<'a> {
    place: Reservation<'a>,
    weight: u32,
}

/// Random requests of both classes. No more is granted than was minted, background goes in the
/// order in which it came, whichever waiter looks, and nothing is left over once all have left.
fn plays(rate: &SendRate, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let capacity = 10;
    let (mut now, mut granted) = (0, 0_u64);
    let mut ahead: VecDeque<Asked<'_>> = VecDeque::new();
    let mut behind: Vec<Asked<'_>> = Vec::new();
    for _ in 0..150 {
        now += rng.u64(0..3 * ONE / 2);
        let weight = rng.u32(1..=4);
        match rng.u32(0..9) {
            0 | 1 => ahead.push_back(Asked {
                place: rate.reserve_n(at(now), weight).expect("it fits"),
                weight,
            }),
            2..=4 => behind.push(Asked {
                place: rate
                    .background()
                    .reserve_n(at(now), weight)
                    .expect("it fits"),
                weight,
            }),
            5 => granted += u64::from(rate.try_acquire(at(now)).is_ok()),
            6 => {
                let waits = !behind.is_empty();
                let tried = rate.background().try_acquire_n(at(now), weight);
                let is_first = behind
                    .iter_mut()
                    .all(|asked| goes(&mut asked.place, at(now)));
                assert!(
                    tried.is_err() || !waits || is_first,
                    "passed one that waits"
                );
                granted += tried.map_or(0, |permit| u64::from(permit.weight()));
            }
            7 if !behind.is_empty() => drop(behind.remove(rng.usize(..behind.len()))),
            _ => drop(ahead.pop_back()),
        }
        // The last waiter looks first, but the first waiters go.
        for asked in behind.iter_mut().rev() {
            let _ = goes(&mut asked.place, at(now));
        }
        let went = behind
            .iter_mut()
            .map(|asked| goes(&mut asked.place, at(now)));
        assert!(went.is_sorted_by(|one, next| one >= next), "seed {seed}");
        let sum = |asked: &Asked<'_>| u64::from(asked.weight);
        let mut rest = Vec::new();
        for mut asked in behind.drain(..) {
            if goes(&mut asked.place, at(now)) {
                granted += sum(&asked);
            } else {
                rest.push(asked);
            }
        }
        behind = rest;
        while let Some(asked) = ahead.front_mut() {
            if !goes(&mut asked.place, at(now)) {
                break;
            }
            granted += sum(asked);
            drop(ahead.pop_front());
        }
        assert!(
            granted <= capacity + now / ONE,
            "seed {seed}: {granted} at {now}"
        );
    }
    drop((ahead, behind));
    let engaged = rate.about_to_limit();
    engaged.second_line().release(now);
    let left = (
        engaged.second_line().behind.waiting(),
        engaged.second_line().behind.unclaimed(),
        engaged.line().open_tokens(),
    );
    assert_eq!(left, (0, 0, 0), "seed {seed}");
    let full = now + 2 * capacity * ONE;
    let there = (0..20).filter(|_| rate.try_acquire(at(full)).is_ok());
    assert_eq!(there.count(), 10, "seed {seed}: nothing is left over");
}

#[test]
fn random_requests_of_both_classes_get_what_is_minted() {
    for seed in 0..25 {
        plays(&spent(10), seed);
    }
}

#[test]
fn a_snapshot_releases_nothing() {
    let rate = spent(1);
    let _place = rate.background().reserve(at(0));
    for _ in 0..3 {
        let shown = rate.snapshot(cents(100)).background;
        assert_eq!((shown.waiting, shown.released), (1, 0));
    }
    assert_eq!(rate.about_to_limit().second_line().behind.unclaimed(), 0);
    assert!(rate.try_acquire(cents(100)).is_ok(), "it is still there");
}

#[test]
fn foreground_before_background_came_brings_no_trickle() {
    let rate = spent(1);
    let engaged = rate.about_to_limit();
    assert!(rate.background().try_acquire(at(0)).is_err());
    for nth in 1..=30 {
        assert!(rate.try_acquire(cents(100 * nth)).is_ok());
    }
    let now = nanos(3_000);
    let _line = [0; 19].map(|_| rate.reserve(at(now)));
    let _place = rate.background().reserve(at(now));
    engaged.second_line().release(now);
    assert_eq!(engaged.second_line().behind.trickle.load(Relaxed), NO_PLACE);
    let _more = [0; 20].map(|_| rate.reserve(at(now)));
    engaged.second_line().release(now);
    assert_ne!(engaged.second_line().behind.trickle.load(Relaxed), NO_PLACE);
}

/// Returns after how many places of the first line the trickle is put.
fn trickles_after(rate: &SendRate, now: u64) -> usize {
    let engaged = rate.about_to_limit();
    let _place = rate.background().reserve(at(now));
    let mut line = Vec::new();
    while engaged.second_line().behind.trickle.load(Relaxed) == NO_PLACE {
        line.push(rate.reserve(at(now)));
        engaged.second_line().release(now);
    }
    line.len()
}

#[test]
fn what_background_got_beyond_its_part_puts_the_trickle_off() {
    let rate = spent(1);
    assert_eq!(trickles_after(&rate, 0), 20);
    for nth in 1..=4 {
        assert!(rate.background().try_acquire(cents(100 * nth)).is_ok());
    }
    // Four tokens pay for 80, and the trickle comes after 60 at the latest.
    assert_eq!(trickles_after(&rate, nanos(400)), 60);
}

#[test]
fn a_change_of_the_rate_restarts_the_trickle() {
    let forget = |rate: &SendRate| rate.forget_throttles(at(0));
    let reset = |rate: &SendRate| rate.reset(at(0));
    let set = |rate: &SendRate| {
        let settings = PacedSettings::fixed(1, span(200)).expect("in range");
        let settings = settings.to_builder().burst(span(100)).build();
        assert_eq!(rate.set_paced(settings.expect("in range"), at(0)), Ok(()));
    };
    for change in [forget, reset, set] as [fn(&SendRate); 3] {
        let rate = spent(1);
        let _place = rate.background().reserve(at(0));
        let _line = [0; 21].map(|_| rate.reserve(at(0)));
        let engaged = rate.about_to_limit();
        engaged.second_line().release(0);
        assert_ne!(engaged.second_line().behind.trickle.load(Relaxed), NO_PLACE);
        change(&rate);
        assert_eq!(engaged.second_line().behind.trickle.load(Relaxed), NO_PLACE);
        let promised = engaged.second_line().promised_to_foreground();
        assert_eq!(engaged.second_line().behind.mark.load(Relaxed), promised);
    }
}

/// A heavy request collects tokens of a declared limit. The tokens collected count as spent.
#[test]
fn what_a_heavy_request_has_collected_counts_as_spent() {
    use crate::law::{DeclaredSettings, LimitReport, LimitReports, Reset, Spend};

    let settings = DeclaredSettings::new().spend(Spend::Fast);
    let rate = SendRate::declared(settings, at(0));
    let permit = rate.try_acquire(at(0)).expect("nothing is known");
    let report = LimitReport::new(310)
        .limit(800)
        .window(Duration::from_secs(60))
        .refills(true)
        .reset(Reset::In(Duration::from_secs(30)));
    rate.observe(at(0), permit, &LimitReports::from(report));
    rate.record(at(0), permit, Outcome::NotThrottled);
    // 300 tokens are left alone. 10 may go, and the 20 that come back in 1.5 seconds.
    let now = at(SECOND);
    let mut heavy = rate.background().reserve_n(now, 40).expect("it fits");
    for tenth in 10..=15 {
        assert!(!goes(&mut heavy, at(tenth * SECOND / 10)));
    }
    let collected = rate.about_to_limit().second_line().behind.unclaimed();
    assert!((20..=30).contains(&collected), "{collected}");
}

#[test]
fn a_pause_makes_no_trickle_due() {
    let rate = spent(1);
    let mut place = rate.background().reserve(at(0));
    let _line = [0; 25].map(|_| rate.reserve(at(0)));
    let hint = Outcome::ThrottledFor(span(5_000));
    rate.record(cents(1), SendPermit::sent_at(at(0)), hint);
    assert!(!goes(&mut place, cents(100)) && !goes(&mut place, cents(5_000)));
    assert_ne!(
        rate.about_to_limit()
            .second_line()
            .behind
            .trickle
            .load(Relaxed),
        NO_PLACE
    );
}

/// The rest of a lease goes back before tokens behind it are taken. Else time would use up the rest
/// as if the bucket were full.
#[test]
fn background_gives_back_the_lease_of_its_thread() {
    const TOKEN: u64 = 1 << 10;
    let span = |tokens| Duration::from_nanos(tokens * TOKEN);
    let settings = PacedSettings::fixed(1, span(1)).expect("in range");
    let settings = settings.to_builder().burst(span(1_000)).build();
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    let [first, later, much_later] = [2_000, 2_050, 2_140].map(|tokens| at(tokens * TOKEN));
    assert!(rate.try_acquire(first).is_ok());
    // A lease of two: the bucket is full, and one token is left.
    assert!(rate.try_acquire(later).is_ok());
    assert!(rate.background().try_acquire_n(later, 100).is_ok());
    let left = |now| rate.snapshot(now).available;
    assert_eq!((left(later), left(much_later)), (899.0, 989.0));
}
