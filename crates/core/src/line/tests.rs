//! The rules of the line, each against whole numbers wide enough for what it rounds and wraps.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use fastrand::Rng;

use super::*;

/// One token in the units of a minted count.
const ONE: u128 = 1 << 64;

/// What a caller who asks for the next token gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Granted(Place),
    Wait(u64),
}

impl Line {
    fn take_next(&self, now: u64, issued: Place, cancelled: u64) -> Taken {
        match self.level(now, cancelled).take(issued) {
            Take::Full(next) | Take::Next(next) => Taken::Granted(next),
            Take::Empty => Taken::Wait(self.wait_for_next(now, issued, cancelled)),
        }
    }

    /// Returns `V` at the start of the piece.
    fn start(&self) -> Minted {
        self.minted_at(self.since)
    }
}

/// Returns the line that stands at `tokens` at `since`.
fn line(tokens: u128, since: u64, per_second: u32) -> Line {
    let rate = Rate::from_ratio(per_second, SECOND);
    through(Minted::from_bits(tokens * ONE), since, rate)
}

fn through(minted: Minted, since: u64, rate: Rate) -> Line {
    Line {
        origin: minted.less(tokens_of(rate, since)),
        since,
        rate,
        burst: SECOND,
        least: TOKEN,
    }
}

fn place(tokens: u64) -> Place {
    Place::from_bits(tokens * TOKEN)
}

/// Returns a number of any size, of fewer than `bits` bits.
fn any_size(rng: &mut Rng, bits: u32) -> u64 {
    let bits = rng.u32(1..bits);
    rng.u64(..1 << bits)
}

/// Returns a line with a rate of any size, that begins anywhere, often just before the wrap of its
/// count.
fn any_line(rng: &mut Rng) -> Line {
    let minted = match rng.u8(..3) {
        0 => rng.u128(..),
        1 => MINTED_MASK - rng.u128(..ONE * 8),
        _ => rng.u128(..ONE * 8),
    };
    let rate = Rate::from_raw(u128::from(rng.u64(..) >> rng.u32(..40)));
    through(Minted::from_bits(minted), any_size(rng, 62), rate)
}

/// Returns a time before the line has wrapped, up to some days after its start, or before that.
fn any_time(rng: &mut Rng, line: &Line) -> u64 {
    let gap = any_size(rng, 50);
    if rng.u8(..4) == 0 {
        return line.since.saturating_sub(gap);
    }
    let now = line.since + gap;
    if line.has_wrapped(now) {
        line.since
    } else {
        now
    }
}

/// Returns a place near `V` at some time of the line.
fn any_place(rng: &mut Rng, line: &Line) -> Place {
    let at = any_time(rng, line);
    let near = line.minted_at(at).to_place();
    near.plus(rng.u64(..TOKEN * 40).wrapping_sub(TOKEN * 20))
}

/// Returns `true` if `V` at `now` has reached `place`: computed without a limit and without
/// rounding.
fn has_reached(line: &Line, now: u64, place: Place) -> bool {
    let gain = u128::from(now.saturating_sub(line.since)) * u128::from(line.rate.raw());
    let start = line.start().to_bits();
    let target = u128::from(place.to_bits()) << 40;
    // From 2³⁹ tokens behind the start to 2³⁹ ahead of it.
    let missing = target.wrapping_sub(start) & ((1 << 104) - 1);
    missing >= 1 << 103 || missing <= gain
}

#[test]
fn a_wait_is_exact_to_the_nanosecond() {
    let mut rng = Rng::with_seed(1);
    let mut waits = 0;
    for _ in 0..200_000 {
        let line = any_line(&mut rng);
        let now = any_time(&mut rng, &line);
        let place = any_place(&mut rng, &line);
        let far_behind = now + SKEW < line.since;
        let Some(wait) = line.wait_for(now, place) else {
            assert!(
                has_reached(&line, now, place) && !far_behind,
                "{line:?} {now} {place:?}"
            );
            continue;
        };
        assert!(wait > 0 && (far_behind || !has_reached(&line, now, place)));
        let Some(due) = now.checked_add(wait).filter(|due| *due < 1 << 62) else {
            continue;
        };
        waits += 1;
        assert_eq!(line.wait_for(due, place), None, "{line:?} {now} {place:?}");
        assert_eq!(
            line.wait_for(due - 1, place),
            Some(1),
            "{line:?} {now} {place:?}"
        );
    }
    assert!(waits > 50_000, "{waits}");
}

#[test]
fn a_line_that_mints_nothing_is_waited_for_as_long_as_time_lasts() {
    let still = line(7, 0, 0);
    assert_eq!(still.wait_for(5, place(7)), None);
    assert_eq!(still.wait_for(5, place(8)), Some(u64::MAX - 5));
    assert_eq!(still.take_next(u64::MAX, place(7), 0), Taken::Wait(0));
}

#[test]
fn a_clock_behind_the_start_finds_what_there_was_and_waits_if_it_is_far_behind() {
    let line = line(10, 100 * SECOND, 4);
    for now in [0, 98 * SECOND, 99 * SECOND, 100 * SECOND] {
        assert_eq!(line.minted_at(now), line.start());
        let late = (99 * SECOND).saturating_sub(now);
        assert_eq!(line.wait_for(now, place(10)), (late > 0).then_some(late));
        let quarter = 100 * SECOND + SECOND / 4;
        let wait = line.wait_for(now, place(11)).expect("not minted yet");
        assert!((quarter - now).abs_diff(wait) <= 1, "{wait} at {now}");
    }
}

#[test]
fn the_count_wraps_and_places_with_it() {
    let rate = Rate::from_ratio(2, SECOND);
    let last = through(Minted::from_bits(MINTED_MASK), 0, rate);
    let after = last.minted_at(SECOND).to_place();
    assert_eq!(after.since(last.start().to_place()), 2 * to_signed(TOKEN));
    assert_eq!(
        Place::from_bits(5)
            .less_tokens(1)
            .since(Place::from_bits(5)),
        -to_signed(TOKEN)
    );
    assert!(matches!(
        last.take_next(SECOND, last.start().to_place(), 0),
        Taken::Granted(_)
    ));
}

/// What the bucket must say, from exact counts: who comes next, and whether that is minted.
fn plain_take(line: &Line, now: u64, issued: Place, cancelled: u64) -> (Place, bool) {
    let minted = line.minted_at(now).to_place();
    let used = issued.less_tokens(cancelled);
    let held = minted.since(used);
    let capacity = to_signed(line.capacity());
    let next = if held > capacity {
        minted
            .plus(line.capacity().wrapping_neg())
            .plus(cancelled.wrapping_mul(TOKEN))
    } else {
        issued
    };
    (next.plus(TOKEN), held.min(capacity) >= to_signed(TOKEN))
}

#[test]
fn a_take_is_that_of_a_plain_bucket() {
    let mut rng = Rng::with_seed(2);
    let mut granted = 0;
    for _ in 0..100_000 {
        let line = any_line(&mut rng);
        let now = line.since + any_size(&mut rng, 40);
        let cancelled = rng.u64(..) >> rng.u32(..64);
        let ahead = rng.u64(..line.capacity() * 2).wrapping_sub(TOKEN);
        let used = line.minted_at(now).to_place().plus(ahead.wrapping_neg());
        let issued = used.plus(cancelled.wrapping_mul(TOKEN));
        let (next, is_there) = plain_take(&line, now, issued, cancelled);
        match line.take_next(now, issued, cancelled) {
            Taken::Granted(place) => {
                granted += 1;
                assert!(is_there);
                assert_eq!(place, next);
            }
            Taken::Wait(wait) => {
                assert!(!is_there);
                assert_eq!(Some(wait), line.wait_for(now, next.less_tokens(cancelled)));
            }
        }
        let held = u128::from(is_there) * ONE;
        assert!(line.available(now, issued, cancelled) >= held);
    }
    assert!(granted > 10_000, "{granted}");
}

/// Places given up are not tokens: after a hundred of them a bucket of three holds three.
#[test]
fn the_clamp_goes_by_live_places() {
    let line = line(105, 0, 3);
    assert_eq!(
        line.available(0, place(200), 100),
        3 * ONE,
        "live at 100 of 105"
    );
    let mut issued = place(200);
    for _ in 0..3 {
        let Taken::Granted(next) = line.take_next(0, issued, 100) else {
            panic!("three are there")
        };
        issued = next;
    }
    assert_eq!(issued, place(205));
    assert!(matches!(line.take_next(0, issued, 100), Taken::Wait(_)));
}

#[test]
fn a_count_that_is_too_small_grants_no_more() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..100_000 {
        let line = any_line(&mut rng);
        let now = any_time(&mut rng, &line);
        let (issued, cancelled) = (any_place(&mut rng, &line), rng.u64(1..50));
        let late = rng.u64(..cancelled);
        if let Taken::Granted(_) = line.take_next(now, issued, late) {
            assert!(matches!(
                line.take_next(now, issued, cancelled),
                Taken::Granted(_)
            ));
        }
        let rank = |known| line.wait_for(now, issued.less_tokens(known));
        assert!(rank(late).unwrap_or(0) >= rank(cancelled).unwrap_or(0));
    }
}

#[test]
fn spilling_at_any_moment_of_the_piece_changes_no_answer() {
    let mut rng = Rng::with_seed(4);
    let mut spilled = 0;
    for _ in 0..100_000 {
        let line = any_line(&mut rng);
        let now = any_time(&mut rng, &line);
        let sooner = rng.u64(..=now);
        let (issued, cancelled) = (any_place(&mut rng, &line), rng.u64(..50));
        let after = line.spilled(sooner, issued, cancelled);
        spilled += u32::from(after != issued);
        assert!(after.since(issued) >= 0, "promises are not taken back");
        assert_eq!(
            line.take_next(now, after, cancelled),
            line.take_next(now, issued, cancelled)
        );
        assert_eq!(
            line.spilled(now, after, cancelled),
            line.spilled(now, issued, cancelled)
        );
    }
    assert!(spilled > 1_000, "{spilled}");
}

/// The bucket of 10 held 10 of 50 minted; grown to 20 it holds these 10, not 20 (and shrunk, 2).
#[test]
fn what_the_old_capacity_discarded_does_not_come_back() {
    let old = line(50, 0, 10);
    let spilled = old.spilled(0, place(0), 0);
    assert_eq!(spilled, place(40));
    assert_eq!(line(50, 0, 20).available(0, spilled, 0), 10 * ONE);
    let small = line(50, 0, 2);
    assert_eq!(small.available(0, spilled, 0), 2 * ONE);
    let shrunk = small.spilled(0, spilled, 0);
    assert_eq!(line(50, 0, 10).available(0, shrunk, 0), 2 * ONE);
}

#[test]
fn the_capacity_is_a_second_and_at_least_one() {
    assert_eq!(line(0, 0, 0).capacity(), TOKEN);
    for per_second in [1, 2, 3, 7, 700, 99_991] {
        assert_eq!(
            line(0, 0, per_second).capacity(),
            u64::from(per_second) * TOKEN
        );
    }
}

#[test]
fn a_pause_holds_nothing_not_even_what_the_bucket_held() {
    assert!(!line(5, 0, 10).is_paused());
    let pause = through(Minted::from_bits(5 * ONE), 0, Rate::LEAST);
    assert!(pause.is_paused());
    assert_eq!(pause.capacity(), 0);
    assert_eq!(pause.available(SECOND, place(2), 0), 0);
    assert_eq!(pause.spilled(SECOND, place(2), 0), place(5));
}

#[test]
fn what_is_available_is_exact_and_never_negative() {
    let line = line(3, SECOND, 4);
    let quarter = u128::from(line.rate.raw()) * u128::from(SECOND / 4);
    assert_eq!(
        line.available(SECOND + SECOND / 4, place(1), 0),
        2 * ONE + quarter
    );
    assert_eq!(line.available(0, place(1), 0), 2 * ONE);
    assert_eq!(line.available(SECOND, place(3), 0), 0);
    assert_eq!(line.available(SECOND, place(9), 0), 0);
    assert_eq!(line.available(SECOND, place(9), 8), 2 * ONE);
    assert_eq!(line.available(u64::MAX >> 2, place(9), 0), 4 * ONE);
}

#[test]
fn a_bucket_holds_what_it_was_given() {
    for tokens in [1, 2, 3, 7, 1_000, 99_991, 61_043, 10_000_000, 999_999_937] {
        for seconds in 1..=10 {
            let rate = Rate::from_ratio(tokens, SECOND);
            let capacity = capacity(rate, seconds * SECOND);
            assert_eq!(
                capacity,
                u64::from(tokens) * seconds * TOKEN,
                "{tokens} {seconds}"
            );
        }
    }
    // A quarter of a token that is there is not rounded away.
    let rate = Rate::from_ratio(5, 4 * SECOND);
    assert_eq!(capacity(rate, SECOND), TOKEN + TOKEN / 4);
}

#[test]
fn a_line_is_old_by_time_and_stale_by_tokens() {
    let rate = Rate::from_raw(ONE >> 1);
    let fast = through(Minted::from_bits(5 * ONE), 7, rate);
    assert!(!fast.is_old(7 + (1 << 36) - 1) && !fast.is_old(0));
    assert!(fast.is_old(7 + (1 << 36)) && fast.is_old(u64::MAX));
    assert!(!fast.is_stale(6 + (1 << 38)) && fast.is_stale(7 + (1 << 38)));
    // A token in two nanoseconds: 2³⁸ of them take 2³⁹ ns.
    assert!(fast.has_wrapped(7 + (1 << 39)) && !fast.has_wrapped(6 + (1 << 39)));
    assert!(!fast.has_wrapped(0) && !line(0, 7, 0).has_wrapped(u64::MAX));
    let issued = place(5 + (1 << 32));
    let due = 7 + (1 << 33) + 2;
    assert!(matches!(fast.take_next(due, issued, 0), Taken::Granted(_)));
    assert!(matches!(fast.take_next(due - 2, issued, 0), Taken::Wait(2)));
}

/// `proof.py` proves statements about functions written in Python. They are the crate's functions.
#[test]
fn the_line_that_is_proved_is_this_one() {
    let file = include_str!("vectors.txt");
    assert!(file.lines().count() > 300);
    for row in file.lines() {
        let read = |word| u128::from_str_radix(word, 16).expect("a hexadecimal number");
        let words: Vec<u128> = row.split(' ').map(read).collect();
        let (inputs, expected) = words.split_at(9);
        let [rate, throttle, burst, since, now, end] =
            [2, 3, 4, 5, 6, 1].map(|column| u64::try_from(inputs[column]).expect("64 bits"));
        let [issued, cancelled] =
            [7, 8].map(|column| u64::try_from(inputs[column]).expect("64 bits"));
        let rate = Rate::from_raw(u128::from(rate));
        let head = Head::through(Minted::from_bits(inputs[0]), end, rate, throttle);
        let line = head.line(since, burst);
        let issued = Place::from_bits(issued);
        let level = line.level(now, cancelled);
        let taken = match level.take(issued) {
            Take::Full(next) | Take::Next(next) => next,
            Take::Empty => issued,
        };
        let wait = line.wait_for(now, issued.less_tokens(cancelled));
        let found = [
            head.to_bits(),
            line.extended_to(now).to_bits(),
            line.minted_at(now).to_bits(),
            line.capacity().into(),
            line.spilled(now, issued, cancelled).to_bits().into(),
            taken.to_bits().into(),
            wait.unwrap_or(0).into(),
            line.wait_for_next(now, issued, cancelled).into(),
            line.available(now, issued, cancelled),
            u128::from(line.is_stale(now)) + u128::from(line.has_wrapped(now)),
        ];
        assert_eq!(found, expected, "{row}");
    }
}

#[test]
fn a_clock_up_to_a_second_behind_finds_what_is_there() {
    let line = line(5, 10 * SECOND, 1);
    let take = |now| line.take_next(now, place(3), 0);
    assert_eq!(take(9 * SECOND), Taken::Granted(place(5)));
    assert_eq!(take(9 * SECOND - 1), Taken::Wait(1));
}

#[test]
fn a_level_is_dry_when_less_than_one_token_is_left() {
    let level = line(5, 0, 10).level(0, 0);
    assert!(!level.is_dry(place(4)));
    assert!(level.is_dry(place(4).plus(1)) && level.is_dry(place(5)));
}

/// The bound of the capacity is one: what it lets be is what the capacity lets be, whatever the
/// rate, and it decides all but a token's worth.
#[test]
fn what_the_bound_holds_the_bucket_holds() {
    let mut rng = Rng::with_seed(9);
    let mut held = 0;
    for _ in 0..100_000 {
        let raw = rng.u64(..) >> rng.u32(1..64);
        let line = Line {
            rate: Rate::rounded(raw.max(1)),
            burst: rng.u64(..10 * SECOND),
            ..line(0, 0, 1)
        };
        let capacity = line.capacity();
        for more in [0, 1, TOKEN - 1, TOKEN, TOKEN + 1, rng.u64(..=TOKEN << 30)] {
            for promised in [capacity.saturating_sub(more), capacity + more] {
                let minted = Minted::from_place(place(7).plus(promised));
                let holds = line.holds(minted, place(7), 0);
                held += u32::from(holds);
                assert!(!holds || promised <= capacity, "{line:?}");
                let is_full = promised + TOKEN > capacity || line.is_paused();
                assert!(holds || is_full, "{line:?}: {promised}");
            }
        }
    }
    assert!(held > 100_000, "{held}");
}
