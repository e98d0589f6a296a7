//! `limiter`: the whole limiter, with weights, clocks that go back, and what else there is
//! to call, against a plain list.
//!
//! While only tokens and places are asked for, every answer is the list's. Once the rate may have
//! moved, the tokens granted are held against all that may have been minted. At the end no waiter
//! is left, and the bucket fills again.

use core::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use paceline::{
    AcquireError, Outcome, Part, Reservation, SendPermit, SendRate, Timestamp, law::PacedSettings,
};

use crate::steps;

const SECOND: u64 = 1_000_000_000;
/// A token in the units here: at a million a second, the nanoseconds that it takes.
const TOKEN: i128 = 1_000;
/// The tokens that the bucket holds, those of 50 ms.
const CAPACITY: u32 = 50_000;
/// Rounding, in the units here.
const SLACK: i128 = 4;
/// The most places open at once.
const PLACES: usize = 200;
/// The highest rate there is, a second.
const MOST: u32 = 1_000_000;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Advance(u16),
    Leap(u8),
    /// The next calls come from a clock that is so much behind.
    Behind(u16),
    Try,
    TryMany(u16),
    Reserve(u16),
    Claim(u8),
    WaitOut(u8),
    Drop(u8),
    Record(u8),
    Throttle {
        hint: Option<u16>,
    },
    Settings(u8),
    Forget,
    Reset,
}

impl Step {
    const fn may_move_the_rate(self) -> bool {
        matches!(
            self,
            Self::Throttle { .. } | Self::Settings(_) | Self::Forget | Self::Reset
        )
    }
}

#[derive(Debug)]
struct Place<'a> {
    reservation: Reservation<'a>,
    end: i128,
    weight: i128,
    is_claimed: bool,
}

struct Scene<'a> {
    rate: &'a SendRate,
    now: u64,
    behind: u64,
    latest: u64,
    /// Whether the list is exact: nothing has been called that may have moved the rate.
    is_exact: bool,
    /// The last token promised, and what was given up before every place.
    issued: i128,
    gaps: Vec<(i128, i128)>,
    places: Vec<Place<'a>>,
    granted: i128,
    /// What may have been granted besides what is minted.
    allowed: i128,
}

fn settings(tokens: u32) -> PacedSettings {
    let second = Duration::from_secs(1);
    PacedSettings::fixed(tokens, second)
        .and_then(|fixed| fixed.to_builder().burst(Duration::from_millis(50)).build())
        .expect("in range")
}

/// Runs the sequence that `data` encodes on a limiter and on its model.
///
/// # Panics
///
/// Panics if an answer of the limiter is not the model's.
pub fn limiter(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let rate = SendRate::paced(settings(MOST), Timestamp::ZERO);
    let capacity = i128::from(CAPACITY) * TOKEN;
    let mut scene = Scene {
        rate: &rate,
        now: 0,
        behind: 0,
        latest: 0,
        is_exact: true,
        issued: -capacity,
        gaps: Vec::new(),
        places: Vec::new(),
        granted: 0,
        allowed: capacity,
    };
    // Half of the inputs leave the rate alone throughout.
    let is_tame = bool::arbitrary(&mut data).unwrap_or_default();
    for step in steps::<Step>(&mut data) {
        if !(is_tame && step.may_move_the_rate()) {
            scene.apply(step);
        }
        scene.compare();
    }
    scene.end();
}

impl<'a> Scene<'a> {
    fn at(&self) -> Timestamp {
        Timestamp::from_nanos(self.nanos())
    }

    fn nanos(&self) -> u64 {
        self.now.saturating_sub(self.behind)
    }

    /// What has been minted by the caller's clock.
    fn minted(&self) -> i128 {
        i128::from(self.nanos())
    }

    fn given_up(&self) -> i128 {
        self.gaps.iter().map(|(_, weight)| weight).sum()
    }

    /// Where a place has its turn.
    fn rank(&self, end: i128) -> i128 {
        let before = self.gaps.iter().filter(|(gap, _)| *gap < end);
        end - before.map(|(_, weight)| weight).sum::<i128>()
    }

    fn settled(&self) -> i128 {
        let full = self.minted() - i128::from(CAPACITY) * TOKEN + self.given_up();
        self.issued.max(full)
    }

    /// What is missing for the next `weight`; zero or less if it is there.
    fn missing(&self, weight: i128) -> i128 {
        self.settled() + weight - self.given_up() - self.minted()
    }

    fn grant(&mut self, weight: i128) {
        self.granted += weight;
        let minted = i128::from(self.latest);
        assert!(
            self.granted <= minted + self.allowed + SLACK,
            "{} granted, {minted} minted and {} besides",
            self.granted,
            self.allowed
        );
    }

    fn check(&self, missing: i128, answer: Result<(), Duration>, what: &str) {
        match answer {
            _ if !self.is_exact => {}
            Ok(()) => assert!(missing <= SLACK, "{what}: granted with {missing} to go"),
            Err(wait) => {
                let wait = i128::try_from(wait.as_nanos()).expect("it fits");
                assert!(wait > 0, "{what}: refused with no wait");
                // An older clock may be told what was found before others took more.
                let may_be_shorter = self.behind > 0;
                assert!(
                    wait <= missing + SLACK && (may_be_shorter || wait >= missing - SLACK),
                    "{what}: a wait of {wait}, missing are {missing}"
                );
            }
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            // A minute at most: a line is renewed after 68 s, which the list knows nothing of.
            Step::Advance(micros) => self.advance(u64::from(micros) * 100),
            Step::Leap(tenths) => self.advance(u64::from(tenths) * SECOND / 100),
            Step::Behind(micros) => self.behind = u64::from(micros) * 1_000,
            Step::Try => {
                let answer = self.rate.try_acquire(self.at());
                self.check(self.missing(TOKEN), answer.map(drop), "try");
                if answer.is_ok() {
                    self.issued = self.settled() + TOKEN;
                    self.grant(TOKEN);
                }
            }
            Step::TryMany(weight) => self.try_many(u32::from(weight) + 1),
            Step::Reserve(weight) => self.reserve(u32::from(weight) + 1),
            Step::Claim(pick) => {
                let _ = self.claim(pick);
            }
            Step::WaitOut(pick) => {
                self.behind = 0;
                if let Some(Err(wait)) = self.claim(pick) {
                    if self.is_exact && wait < Duration::from_secs(10) {
                        self.advance(u64::try_from(wait.as_nanos()).expect("short"));
                        let answer = self.claim(pick).expect("it is there");
                        assert!(self.now < 60 * SECOND || answer.is_ok(), "after {wait:?}");
                    }
                }
            }
            Step::Drop(pick) if !self.places.is_empty() => {
                let place = self.places.remove(usize::from(pick) % self.places.len());
                self.give_up(place);
            }
            Step::Record(times) => {
                let now = self.at();
                for _ in 0..times {
                    self.rate
                        .record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
                }
            }
            Step::Throttle { hint } => {
                self.is_exact = false;
                let now = self.at();
                let outcome = hint.map_or(Outcome::Throttled, |millis| {
                    let hint = Duration::from_millis(u64::from(millis));
                    match millis & 3 {
                        0 => Part::outcome(1 + u32::from(millis & 7), 7),
                        1 => Outcome::PauseAfter(hint),
                        _ => Outcome::ThrottledFor(hint),
                    }
                });
                let sent = SendPermit::sent_at(now);
                self.rate.record(now, sent, outcome);
            }
            Step::Settings(pick) => {
                self.is_exact = false;
                let tokens = [10, 1_000, MOST][usize::from(pick) % 3];
                let set = self.rate.set_paced(settings(tokens), self.at());
                assert_eq!(set, Ok(()));
            }
            Step::Forget => {
                self.is_exact = false;
                self.allowed += self.open();
                self.rate.forget_throttles(self.at());
            }
            Step::Reset => {
                self.is_exact = false;
                // Time that is taken back comes again.
                let again = self.latest.saturating_sub(self.nanos());
                self.allowed += i128::from(CAPACITY) * TOKEN + self.open() + i128::from(again);
                self.rate.reset(self.at());
            }
            Step::Drop(_) => {}
        }
    }

    fn advance(&mut self, nanos: u64) {
        self.now = (self.now + nanos).min(60 * SECOND);
        self.latest = self.latest.max(self.now);
    }

    fn open(&self) -> i128 {
        let open = self.places.iter().filter(|place| !place.is_claimed);
        open.map(|place| place.weight).sum()
    }

    fn try_many(&mut self, weight: u32) {
        let tokens = i128::from(weight) * TOKEN;
        match self.rate.try_acquire_n(self.at(), weight) {
            Err(AcquireError::Weight(_)) => assert!(weight > CAPACITY || !self.is_exact),
            Err(AcquireError::NotInTime { wait }) => {
                self.check(self.missing(tokens), Err(wait), "try many");
            }
            Err(error) => panic!("{error}"),
            Ok(_) => {
                self.check(self.missing(tokens), Ok(()), "try many");
                self.issued = self.settled() + tokens;
                self.grant(tokens);
            }
        }
    }

    fn reserve(&mut self, weight: u32) {
        if self.places.len() >= PLACES {
            return;
        }
        match self.rate.reserve_n(self.at(), weight) {
            Ok(reservation) => {
                let weight = i128::from(weight) * TOKEN;
                self.issued = self.settled() + weight;
                self.places.push(Place {
                    reservation,
                    end: self.issued,
                    weight,
                    is_claimed: false,
                });
            }
            Err(_) => assert!(weight > CAPACITY || !self.is_exact),
        }
    }

    fn claim(&mut self, pick: u8) -> Option<Result<(), Duration>> {
        if self.places.is_empty() {
            return None;
        }
        let (now, pick) = (self.at(), usize::from(pick) % self.places.len());
        let place = &mut self.places[pick];
        let answer = place.reservation.claim(now).map(drop);
        let (end, weight, was_claimed) = (place.end, place.weight, place.is_claimed);
        place.is_claimed |= answer.is_ok();
        if was_claimed {
            assert_eq!(answer, Ok(()), "it has been claimed");
            return Some(answer);
        }
        let rank = self.rank(end);
        // By an older clock what was due before may be due, or not.
        if rank > i128::from(self.latest) || self.behind == 0 {
            self.check(rank - self.minted(), answer, "claim");
        }
        if answer.is_ok() {
            self.grant(weight);
        }
        Some(answer)
    }

    fn give_up(&mut self, place: Place<'a>) {
        let Place {
            end,
            weight,
            is_claimed,
            reservation,
        } = place;
        drop(reservation);
        if is_claimed {
        } else if end == self.issued {
            self.issued -= weight;
        } else {
            self.gaps.push((end, weight));
        }
    }

    fn compare(&mut self) {
        let shown = self.rate.snapshot(self.at());
        assert!(shown.available <= shown.capacity, "{shown:?}");
        if !self.is_exact {
            return;
        }
        let balance = self.minted() - self.settled() + self.given_up();
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let want = balance.max(0) as f64 / 1_000.0;
        assert!(
            (shown.available - want).abs() <= 0.01,
            "{shown:?}, not {want} available"
        );
        let waiting = u64::try_from((-balance).max(0)).expect("a small number");
        let shown = shown.waiting * 1_000;
        assert!(
            shown + 4 >= waiting && shown <= waiting + 1_004,
            "{shown} wait, not {waiting}"
        );
    }

    /// Everything is given back, and time passes.
    fn end(mut self) {
        self.behind = 0;
        self.places.clear();
        let later = Timestamp::from_nanos(self.latest + 500 * SECOND);
        // Were it cut or set to less, it is set back.
        assert_eq!(self.rate.set_paced(settings(MOST), later), Ok(()));
        let later = Timestamp::from_nanos(self.latest + 1_000 * SECOND);
        let shown = self.rate.snapshot(later);
        assert_eq!(shown.waiting, 0, "{shown:?}");
        assert!(shown.available >= shown.capacity - 0.01, "{shown:?}");
        assert!(self.rate.try_acquire(later).is_ok(), "{shown:?}");
    }
}
