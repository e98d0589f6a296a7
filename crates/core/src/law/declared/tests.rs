//! The law while nothing is declared: first contact, and the paced law.

mod hear;
mod infer;
mod ledgers;
mod level;
mod plan;
mod throttle;

use core::time::Duration;

use super::*;
use crate::law::{Event, LearnedRate};

fn law(paced: PacedSettings, first: u32) -> Declared {
    let settings = DeclaredSettings::new().otherwise(paced);
    settings.first_burst(first).law()
}

fn slow_start() -> PacedSettings {
    let settings = PacedSettings::builder().slow_start(true).build();
    settings.expect("in range")
}

fn from_ten() -> PacedSettings {
    let settings = PacedSettings::builder().initial_rate(10, Duration::from_secs(1));
    settings.build().expect("in range")
}

/// A limiter that has been in this state since 10 s.
fn state(memory: u64) -> State {
    State::NONE.begun_anew(10 * SECOND, memory)
}

fn first_contact() -> State {
    state(FIRST_CONTACT)
}

/// A response that was throttled at 12 s, to a request sent at `sent`.
fn throttled(sent: u64) -> Event<'static> {
    let (reading, _) = PacedSettings::new().begin(None, 0, 0);
    Event {
        now: 12 * SECOND,
        sent,
        until: 12 * SECOND,
        done: 0,
        throttled: 1,
        fill: Rate::from_ratio(10, SECOND),
        counted: Counted {
            reading,
            sum: 0,
            cycle: 0,
        },
        since_change: Some(0),
        past: None,
        is_used_up: &|| true,
    }
}

/// The state after the paced law's first cut, at 12 s.
fn cut(paced: &PacedSettings) -> State {
    let cut = paced.decide(State::NONE, &throttled(11 * SECOND));
    State::NONE.decided(cut.expect("the first throttle cuts"))
}

#[test]
fn first_contact_ends_with_a_peak() {
    let paced = PacedSettings::new();
    assert!(Declared::is_first_contact(state(0)));
    assert!(Declared::is_first_contact(first_contact()));
    assert!(!Declared::is_first_contact(cut(&paced)));
    // A state that limits nothing is no first contact.
    assert!(!Declared::is_first_contact(State::NONE));
}

#[test]
fn it_is_free_where_the_paced_law_limits_nothing() {
    let free = law(PacedSettings::new(), 1);
    let unlimited = state(free.unlimited());
    assert!(free.is_free(unlimited));
    assert!(!free.is_free(first_contact()) && !free.is_free(cut(&free.paced())));
    // A rate to start with is a limit.
    let limited = law(from_ten(), 1);
    let limits = state(limited.unlimited());
    assert!(!limited.is_free(limits) && !limited.is_free(unlimited));
    let settings = DeclaredSettings::new().otherwise(from_ten());
    assert_eq!(
        (settings.paced(), limited.paced()),
        (from_ten(), from_ten())
    );
    assert_eq!(free.with_paced(from_ten()), limited);
    // The limiter goes on at that rate, or at one that limits next to nothing.
    assert_eq!(free.unthrottled().later, Some(unlimited.memory()));
    let start = from_ten().unthrottled().start;
    assert_eq!(limited.unthrottled().later, start);
}

/// A configured rate limits from the start: no burst of requests of any weight goes past it.
#[test]
fn first_contact_is_none_where_the_rate_is_told() {
    let told = PacedSettings::fixed(600, Duration::from_secs(60)).expect("in range");
    let first = |settings: DeclaredSettings| settings.law().first();
    let settings = DeclaredSettings::new();
    assert_eq!(first(settings), 1);
    assert_eq!(first(settings.otherwise(from_ten())), 1);
    assert_eq!(first(settings.otherwise(told)), 0);
    assert_eq!(first(settings.otherwise(told).first_burst(4)), 4);
    assert_eq!(first(settings.first_burst(0)), 0);
    // The law begins with the memory of that rate, and changes with the settings.
    let (told, free) = (settings.otherwise(told).law(), settings.law());
    assert_ne!(told.unthrottled().later, Some(FIRST_CONTACT));
    assert_eq!(free.unthrottled().start, Some(FIRST_CONTACT));
    assert_eq!(free.with_paced(told.paced()), told);
}

fn nothing(began: u64) -> Past {
    Past {
        began,
        ..Past::default()
    }
}

#[test]
fn the_first_answer_without_a_report_ends_first_contact() {
    let law = law(PacedSettings::new(), 1);
    let counted = throttled(0).counted;
    let first = first_contact();
    let window = law.turn(
        counted.reading,
        0,
        || (1, 0),
        first,
        12 * SECOND,
        12 * SECOND,
    );
    assert_eq!(
        (window.counted, window.end),
        (Some(nothing(12 * SECOND)), 12 * SECOND)
    );
    let (now, memory) = (11 * SECOND, law.unlimited());
    let past = nothing(now);
    let event = Event {
        now,
        done: 1,
        throttled: 0,
        past: Some(past),
        ..throttled(now)
    };
    let decision = law.decide(first, &event);
    assert_eq!(
        decision,
        Some(Decision::Limit {
            since: now,
            memory,
            cycle: None
        })
    );
    assert!(law.is_free(first.next(now, memory)));
}

/// The paced law did not make the states of first contact, or those that limit next to nothing.
#[test]
fn the_first_throttle_is_the_first_one_of_the_paced_law() {
    let law = law(PacedSettings::new(), 1);
    let paced = law.paced();
    let before = &throttled(9 * SECOND);
    let first = paced.decide(State::NONE, before);
    assert!(first.is_some());
    for unseen in [first_contact(), state(law.unlimited())] {
        assert_eq!(law.decide(unseen, before), first, "{unseen:?}");
    }
    // A throttle of a request that was sent before the last cut says nothing new.
    assert_eq!(law.decide(cut(&paced), before), None);
}

/// Learned cycles hold until a limit is declared.
#[test]
fn it_begins_in_the_cycles_that_were_learned() {
    let minute = core::num::NonZeroU64::new(60 * SECOND);
    let learned = LearnedRate::new(Rate::from_ratio(40, 60 * SECOND), minute);
    let paced = PacedSettings::builder().learned(learned, Duration::ZERO);
    let paced = paced.build().expect("in range");
    let law = law(paced, 1);
    assert_eq!(Some(law.unlimited()), paced.unthrottled().start);
    // A throttle shuts the service: forty a minute are a knock in a second and a half.
    let shut = law.decide(state(law.unlimited()), &throttled(11 * SECOND));
    let shut = State::NONE.decided(shut.expect("it is heard"));
    let counted = throttled(0).counted;
    assert!(law.shown(shut, counted, 12 * SECOND).is_shut);
}

#[test]
fn where_nothing_is_declared_the_paced_law_decides() {
    for paced in [PacedSettings::new(), slow_start(), from_ten()] {
        let law = law(paced, 1);
        let initial = state(law.unlimited());
        let first = paced.begin(None, 5, 0);
        assert_eq!(law.begin(None, 5, 0), first);
        let (first, _) = first;
        // Until a response has begun a window, no window begins again.
        assert_eq!(law.begin(Some(first), 5, 12 * SECOND), (first, 0));
        let begun = law.turn(first, 0, || (6, 0), initial, 12 * SECOND, 11_500_000_000);
        let reading = begun.next.expect("the first response begins a window");
        let again = law.begin(Some(reading), 7, 13 * SECOND);
        assert_eq!(again, paced.begin(Some(reading), 7, 13 * SECOND));
        assert_eq!(again.1, 14 * SECOND);
        let quiet = |state| law.quiet(state, 12 * SECOND, Rate::ZERO, reading);
        let paced_quiet = paced.quiet(initial, 12 * SECOND, Rate::ZERO, reading);
        assert_eq!(quiet(initial), paced_quiet);
        assert!(paced_quiet.rate > 12 * SECOND && paced_quiet.window > 12 * SECOND);
        assert_eq!(law.quiet(initial, 0, Rate::ZERO, first).window, 0);
        // Slow start looks at each response, but not during first contact.
        let slow = paced == slow_start();
        assert_eq!(quiet(initial).each, slow);
        assert!(!quiet(first_contact()).each);
        let response = Event {
            done: 1,
            throttled: 0,
            ..throttled(11 * SECOND)
        };
        let step = law.decide(initial, &response);
        assert_eq!(step, paced.decide(initial, &response));
        assert_eq!(step.is_some(), slow);
        assert_eq!(law.decide(first_contact(), &response), None);
        let much_left = Event {
            is_used_up: &|| false,
            ..response
        };
        assert_eq!(law.decide(initial, &much_left), None);
    }
}

#[test]
fn it_is_at_its_start_before_the_first_answer_or_unlimited() {
    let (one, all) = (law(PacedSettings::new(), 1), law(PacedSettings::new(), 0));
    let unlimited = state(one.unlimited());
    let cut = cut(&one.paced());
    let at_start = |law: &Declared, state| law.is_at_start(state, 20 * SECOND);
    assert!(at_start(&one, first_contact()));
    assert!(!at_start(&one, unlimited) && !at_start(&one, cut));
    assert!(at_start(&all, unlimited) && !at_start(&all, cut));
}

#[test]
fn names_are_shown_in_lower_case() {
    let name = LimitName::new("Day");
    assert_eq!(alloc::format!("{name} {name:?}"), "day \"day\"");
    let named = Dimension::Named(name);
    assert_eq!(alloc::format!("{named}"), "day");
}

#[cfg(feature = "serde")]
#[test]
fn names_are_serialized_as_text() {
    let name = LimitName::new("Day");
    let named = Dimension::Named(name);
    let written = (serde_json::to_string(&name), serde_json::to_string(&named));
    let text = |json: Result<_, serde_json::Error>| json.expect("a name is text");
    assert_eq!(text(written.0), "\"day\"");
    assert_eq!(text(written.1), "\"day\"");
}
