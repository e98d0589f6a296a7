//! The line in its three words, by one thread: every state in which a writer may have stopped.

use super::*;
use crate::fixed::SECOND;

fn rate(per_second: u32) -> Rate {
    Rate::from_ratio(per_second, 1_000_000_000)
}

/// What a writer does that stops right after the change.
fn change(segments: &Segments, since: u64, per_second: u32) -> Head {
    let head = segments.head();
    let next = head.next(since, rate(per_second), head.throttle() ^ 1);
    assert!(segments.exchange(head, next));
    next
}

/// More changes than there are sequence numbers: what is minted is the sum over all pieces.
#[test]
fn a_reader_sees_the_sum_of_all_pieces() {
    let segments = Segments::new(Minted::from_bits(u128::MAX), SECOND);
    let mut want = u128::MAX;
    let mut last = segments.head();
    for step in 0..140_000_u64 {
        let since = last.since() + step % 1_000;
        want = want.wrapping_add(u128::from(since - last.since()) * u128::from(last.rate().raw()));
        last = change(&segments, since, u32::try_from(step % 977).expect("small"));
        let (head, line) = segments.read();
        assert_eq!(head, last);
        assert_eq!(
            line,
            last.line(Minted::from_bits(want), SECOND),
            "step {step}"
        );
    }
}

#[test]
fn folding_changes_no_answer_whenever_it_happens() {
    let segments = Segments::new(Minted::from_bits(1 << 70), SECOND);
    for step in 1..20 {
        let head = change(&segments, step * 1_000, 5);
        let before = segments.read();
        assert!(
            !segments.anchor().is_of(head),
            "the change itself folds nothing"
        );
        segments.fold(head);
        assert!(segments.anchor().is_of(head));
        assert_eq!(segments.previous(), head);
        assert_eq!(segments.read(), before);
        segments.fold(head);
        assert_eq!(segments.read(), before);
    }
}

#[test]
fn a_writer_that_goes_on_leaves_nothing_to_compute_for_its_readers() {
    let segments = Segments::new(Minted::from_bits(1 << 70), SECOND);
    change(&segments, 1_000, 5);
    let head = segments.head();
    let minted = segments.read().1.minted_at(2_000);
    let next = head.next(2_000, rate(7), 1);
    assert!(segments.replace(head, next));
    assert_eq!(segments.anchor(), Anchor::new(minted, next.sequence()));
    assert_eq!(segments.previous(), next);
}

/// A writer that stopped after it moved `anchor`, before it moved `previous`.
#[test]
fn a_fold_that_stopped_halfway_is_read_and_finished() {
    let segments = Segments::new(Minted::from_bits(1 << 70), SECOND);
    change(&segments, 1_000, 5);
    let head = change(&segments, 2_000, 7);
    let before = segments.read();
    let half = Anchor::new(before.1.minted, head.sequence());
    segments.anchor.store(half.0, Release);
    assert_eq!(segments.read(), before);
    segments.fold(head);
    assert_eq!((segments.previous(), segments.read()), (head, before));
    change(&segments, 3_000, 9);
    assert_eq!(segments.read().1.minted, before.1.minted_at(3_000));
}

#[test]
fn a_stale_writer_changes_nothing() {
    let segments = Segments::new(Minted::from_bits(1 << 70), SECOND);
    let first = change(&segments, 1_000, 5);
    change(&segments, 2_000, 7);
    let third = change(&segments, 3_000, 9);
    let words = || (segments.head(), segments.anchor(), segments.previous());
    let before = words();
    segments.fold(first);
    assert!(!segments.exchange(first, first.next(5_000, rate(1), 0)));
    assert_eq!(words(), before);
    assert_eq!(segments.head(), third);
}

#[test]
fn a_head_holds_what_is_put_in() {
    let first = Head::initial();
    let head = first.next((1 << 62) - 1, Rate::MAX, 1);
    assert_eq!(
        (head.since(), head.rate(), head.throttle()),
        ((1 << 62) - 1, Rate::MAX, 1)
    );
    assert_eq!(head.sequence(), first.sequence() + 1);
    assert_eq!(head.next(0, Rate::ZERO, 0).sequence(), 0, "wraps");
    assert!(first.is_before(head) && !head.is_before(first) && !head.is_before(head));
    assert!(head.follows(1) && head.follows(7) && !head.follows(2));
    assert_eq!(first.throttle(), 0);
    assert!(first.follows(0) && first.follows(6) && !first.follows(1));
    let anchor = Anchor::new(Minted::from_bits(u128::MAX), head.sequence());
    assert_eq!(anchor.minted(), Minted::from_bits(u128::MAX));
    assert!(anchor.is_of(head) && !anchor.is_of(first));
    assert_eq!(
        anchor.folded(first, head),
        None,
        "it is not of the one before"
    );
    assert_eq!(anchor.folded(head, first), None, "nor does that one follow");
}

/// A writer that stopped for as many changes as there are sequence numbers, before it loaded what it folds.
#[test]
fn a_fold_that_comes_a_round_of_sequence_numbers_late_changes_nothing() {
    let segments = Segments::new(Minted::from_bits(0), SECOND);
    let stale = change(&segments, 1_000, 1_000);
    let mut now = 1_000;
    for _ in 0..1_u32 << 16 {
        now += 1_000_000;
        change(&segments, now, 1_000);
    }
    let (head, before) = segments.read();
    assert_eq!(
        head.sequence(),
        stale.sequence(),
        "the numbers have come round"
    );
    segments.fold(stale);
    assert_eq!(segments.read(), (head, before));
    change(&segments, now + 1_000_000, 1_000);
    let minted = segments.read().1.minted;
    assert_eq!(
        minted,
        before.minted_at(now + 1_000_000),
        "and the next change goes on from there"
    );
}
