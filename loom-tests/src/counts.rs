//! Models of what is announced when it changes.
//!
//! Claim: each change is news to one thread, and no more often than it happens.

use loom::{sync::Arc, thread};
use paceline::modelled::News;

use crate::explore;

/// Of two threads that see it begin, one tells.
#[test]
fn news_is_told_once() {
    explore(None, || {
        let news = Arc::new(News::new());
        let shared = Arc::clone(&news);
        let other = thread::spawn(move || shared.note(true));
        let ours = news.note(true);
        let theirs = other.join().expect("the thread returns");
        assert!(theirs != ours, "one of them tells");
        assert!(news.note(false), "it was so");
    });
}

/// Two states that change at once are both news, and neither undoes the other.
#[test]
fn of_two_states_neither_is_lost() {
    explore(None, || {
        let news = Arc::new(News::new());
        assert!(news.note(true), "it is so from now on");
        let shared = Arc::clone(&news);
        let other = thread::spawn(move || shared.note_other(true));
        let ours = news.note(false);
        let theirs = other.join().expect("the thread returns");
        assert!(ours && theirs, "each is told");
        assert!(!news.note(false) && !news.note_other(true), "both hold");
    });
}

/// Of two threads that come when it is due, one tells; and it is not due again too soon.
#[test]
fn a_time_is_due_once() {
    explore(None, || {
        let news = Arc::new(News::new());
        let shared = Arc::clone(&news);
        let other = thread::spawn(move || shared.is_due(7, 10));
        let ours = news.is_due(9, 10);
        let theirs = other.join().expect("the thread returns");
        assert!(theirs != ours, "one of them tells");
        assert!(!news.is_due(16, 10) && news.is_due(19, 10));
    });
}

/// An end is noted as often as a beginning, but for a state that still holds.
#[test]
fn beginnings_and_ends_take_turns() {
    explore(None, || {
        let news = Arc::new(News::new());
        let shared = Arc::clone(&news);
        let other = thread::spawn(move || (shared.note(true), shared.note(false)));
        let ours = (news.note(true), news.note(false));
        let theirs = other.join().expect("the thread returns");
        let begun = u32::from(ours.0) + u32::from(theirs.0);
        let ended = u32::from(ours.1) + u32::from(theirs.1);
        let so = u32::from(news.note(false));
        assert_eq!(begun, ended + so, "{ours:?} {theirs:?}");
        assert!(begun > 0);
    });
}
