//! Places that are claimed, given up and forgotten in every order, alone and in sets, of both classes:
//! when nobody is there any more nothing stands in a line, and nothing is owed.

use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, Reservation, SendPermit, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, PacedSettings},
    set::SetReservation,
};

/// Fewer where nothing is optimized.
const ROUNDS: u64 = if cfg!(debug_assertions) {
    25_000
} else {
    100_000
};
const SECOND: u64 = 1_000_000_000;

/// Numbers that seem random: xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

fn limiter(numbers: &mut Numbers) -> SendRate {
    let second = Duration::from_secs(1);
    let start = Timestamp::ZERO;
    match numbers.below(5) {
        0 => SendRate::new(ControlLaw::Aws, start),
        1 => SendRate::new(ControlLaw::Paced, start),
        2 => {
            let fixed = PacedSettings::fixed(10, second).and_then(|fixed| {
                let settings = fixed.to_builder().burst(second);
                settings.build()
            });
            SendRate::paced(fixed.expect("in range"), start)
        }
        3 => SendRate::paced(PacedSettings::shared(), start),
        _ => SendRate::declared(DeclaredSettings::new(), start),
    }
}

/// A request that has a place.
enum Held<'a> {
    One(Reservation<'a>),
    Both(SetReservation<'a, 2>),
}

fn play(numbers: &mut Numbers) -> Result<(), String> {
    let (one, two) = (limiter(numbers), limiter(numbers));
    let set = SendSet::new([&one, &two]);
    let mut now = Timestamp::from_nanos(SECOND);
    let mut held: Vec<Held<'_>> = Vec::new();
    let mut done = String::new();
    let steps = 4 + numbers.below(20);
    for step in 0..steps + 100 {
        let is_end = step >= steps;
        if is_end && held.is_empty() {
            break;
        }
        let rate = if numbers.is(2) { &one } else { &two };
        let weight = 1 + u32::try_from(numbers.below(3)).unwrap();
        let which = usize::try_from(numbers.below(held.len().max(1) as u64)).unwrap();
        match numbers.below(if is_end { 5 } else { 12 }) {
            0 | 1 if !held.is_empty() => {
                done += "claim ";
                let gone = match &mut held[which] {
                    Held::One(place) => place.claim(now).is_ok(),
                    Held::Both(places) => places.claim(now).is_ok(),
                };
                if gone {
                    done += "gone ";
                    drop(held.swap_remove(which));
                }
            }
            2 if !held.is_empty() => {
                done += "drop ";
                drop(held.swap_remove(which));
            }
            3 => {
                done += "forget ";
                rate.forget_throttles(now);
            }
            4 => {
                done += "later ";
                now = now.saturating_add(Duration::from_millis(numbers.below(3_000)));
            }
            5 => {
                done += "throttle ";
                rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
            }
            6 => {
                done += "success ";
                rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
            }
            7 | 8 => {
                let place = if numbers.is(2) {
                    done += "behind ";
                    rate.background().reserve_n(now, weight)
                } else {
                    done += "reserve ";
                    rate.reserve_n(now, weight)
                };
                held.extend(place.ok().map(Held::One));
            }
            9 => {
                let places = if numbers.is(2) {
                    done += "both behind ";
                    set.background().reserve(now, &[weight, 1])
                } else {
                    done += "both ";
                    set.reserve(now, &[weight, 1])
                };
                held.extend(places.ok().map(Held::Both));
            }
            10 => {
                done += "try ";
                let _ = rate.background().try_acquire(now);
                let _ = rate.try_acquire(now);
            }
            _ if numbers.is(4) => {
                done += "reset ";
                rate.reset(now);
            }
            _ => {}
        }
    }
    held.clear();
    for rate in [&one, &two] {
        // What was owed is minted by then, whatever the rate is.
        now = now.saturating_add(Duration::from_secs(86_400));
        rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
        now = now.saturating_add(Duration::from_secs(86_400));
        let left = rate.snapshot(now);
        if left.waiting > 0 || left.background.waiting > 0 {
            return Err(format!("{:?} {left} after {done}", rate.law()));
        }
    }
    Ok(())
}

#[test]
fn nothing_stands_when_all_are_gone() {
    let mut left = Vec::new();
    for seed in 1..=ROUNDS {
        if let Err(why) = play(&mut Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))) {
            left.push((seed, why));
        }
    }
    let shown: Vec<_> = left.iter().take(3).collect();
    assert!(left.is_empty(), "{} of {ROUNDS}: {shown:#?}", left.len());
}
