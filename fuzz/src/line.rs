//! `line_vs_model`: places in line, one by one, against a plain list of them.

use core::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use paceline::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp};

use crate::{Clock, Gap, aws_model::AwsModel, law_check::TOLERANCE, steps};

/// The most places open at once.
const PLACES: usize = 64;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Advance(Gap),
    TryAcquire,
    Reserve,
    Claim(u8),
    /// Claims, and if it is not due waits for just as long as it must: then it must be.
    WaitOut(u8),
    Drop(u8),
    Record {
        throttled: bool,
        times: u8,
    },
}

/// Where a place stands.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// Taken while the limiter was off: in no line yet.
    Free,
    /// Due when this many more tokens are minted; zero or less: due.
    InLine(f64),
    Claimed(SendPermit),
}

#[derive(Debug)]
struct Place<'a> {
    reservation: Reservation<'a>,
    standing: Standing,
    /// How many were ahead of it when it was taken: rounding grows with what is minted meanwhile.
    deepest: f64,
}

/// A limiter, the bucket's equations, and the line as a list in the order of the places.
struct Line<'a> {
    limiter: &'a SendRate,
    model: AwsModel,
    places: Vec<Place<'a>>,
}

/// Runs the sequence that `data` encodes on a limiter and on its model.
///
/// # Panics
///
/// Panics if an answer of the limiter is not the model's.
pub fn line_vs_model(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let Ok(mut clock) = Clock::arbitrary(&mut data) else {
        return;
    };
    let limiter = SendRate::new(ControlLaw::Aws, Timestamp::from_nanos(clock.now()));
    let mut line = Line {
        limiter: &limiter,
        model: AwsModel::new(clock.now()),
        places: Vec::new(),
    };
    for step in steps(&mut data) {
        line.apply(step, &mut clock);
        line.compare(clock.now());
    }
}

impl Line<'_> {
    fn apply(&mut self, step: Step, clock: &mut Clock) {
        let now = clock.now();
        self.refill(now);
        match step {
            Step::Advance(gap) => clock.advance(gap),
            Step::TryAcquire => self.try_acquire(now),
            Step::Reserve if self.places.len() < PLACES => self.reserve(now),
            Step::Claim(pick) if !self.places.is_empty() => {
                let pick = self.join(usize::from(pick));
                let _answer = self.claim(pick, now);
            }
            Step::WaitOut(pick) if !self.places.is_empty() => {
                let pick = self.join(usize::from(pick));
                if let Err(wait) = self.claim(pick, now) {
                    clock.wait(wait);
                    self.refill(clock.now());
                    let answer = self.claim(pick, clock.now());
                    assert!(answer.is_ok(), "not due after the wait of {wait:?}");
                }
            }
            Step::Drop(pick) if !self.places.is_empty() => {
                self.give_up(usize::from(pick) % self.places.len());
            }
            Step::Record { throttled, times } => {
                for _ in 0..=times {
                    self.record(now, throttled);
                }
            }
            Step::Reserve | Step::Claim(_) | Step::WaitOut(_) | Step::Drop(_) => {}
        }
        self.refill(clock.now());
    }

    /// Mints what is due; everyone in line moves up by that.
    fn refill(&mut self, now: u64) {
        if !self.model.enabled {
            return;
        }
        let minted = self.model.refill(now);
        for place in &mut self.places {
            if let Standing::InLine(ahead) = &mut place.standing {
                *ahead -= minted;
            }
        }
    }

    fn try_acquire(&mut self, now: u64) {
        match self.limiter.try_acquire(Timestamp::from_nanos(now)) {
            Ok(_) if !self.model.enabled => {}
            Ok(_) => {
                let held = self.model.available;
                assert!(held >= 1.0 - TOLERANCE, "granted with {held} tokens");
                self.model.available = (held - 1.0).max(0.0);
            }
            Err(wait) => self.check_wait(1.0 - self.model.available, 1.0, wait),
        }
    }

    fn reserve(&mut self, now: u64) {
        let mut place = Place {
            reservation: self.limiter.reserve(Timestamp::from_nanos(now)),
            standing: Standing::Free,
            deepest: 1.0,
        };
        if self.model.enabled {
            place.stand_in_line(&mut self.model);
        }
        self.places.push(place);
    }

    /// Picks a place to claim. One taken while the limiter was off joins the line now, if it is on.
    fn join(&mut self, pick: usize) -> usize {
        let pick = pick % self.places.len();
        if !self.model.enabled || !matches!(self.places[pick].standing, Standing::Free) {
            return pick;
        }
        let mut place = self.places.remove(pick);
        place.stand_in_line(&mut self.model);
        self.places.push(place);
        self.places.len() - 1
    }

    fn claim(&mut self, pick: usize, now: u64) -> Result<SendPermit, Duration> {
        let mut place = self.places.remove(pick);
        let answer = place.reservation.claim(Timestamp::from_nanos(now));
        match (place.standing, answer) {
            (Standing::Free, answer) => assert!(answer.is_ok(), "refused while not enabled"),
            (Standing::Claimed(first), answer) => {
                assert_eq!(answer, Ok(first), "a claimed place answers the same again");
            }
            (Standing::InLine(ahead), Ok(_)) => assert!(
                ahead <= TOLERANCE * place.deepest,
                "claimed with {ahead} tokens to go"
            ),
            (Standing::InLine(ahead), Err(wait)) => self.check_wait(ahead, place.deepest, wait),
        }
        if let Ok(permit) = answer {
            place.standing = Standing::Claimed(permit);
        }
        self.places.insert(pick, place);
        answer
    }

    /// The token goes back, and those behind move up by one.
    fn give_up(&mut self, pick: usize) {
        let place = self.places.remove(pick);
        if let Standing::InLine(_) = place.standing {
            self.model.available = self.model.capacity.min(self.model.available + 1.0);
            for behind in &mut self.places[pick..] {
                if let Standing::InLine(ahead) = &mut behind.standing {
                    *ahead -= 1.0;
                }
            }
        }
        drop(place.reservation);
    }

    fn record(&mut self, now: u64, throttled: bool) {
        let enabling = throttled && !self.model.enabled;
        let at = Timestamp::from_nanos(now);
        let outcome = if throttled {
            Outcome::Throttled
        } else {
            Outcome::NotThrottled
        };
        self.limiter.record(at, SendPermit::sent_at(at), outcome);
        self.model.record(now, throttled);
        if enabling {
            let start = self.limiter.snapshot(at).available;
            assert!((0.0..=self.model.capacity * (1.0 + TOLERANCE)).contains(&start));
            self.model.available = start;
        }
    }

    /// A refusal names a wait in which what is missing is minted, rounded up to a nanosecond.
    fn check_wait(&self, missing: f64, deepest: f64, wait: Duration) {
        assert!(self.model.enabled, "refused while not enabled");
        assert!(!wait.is_zero(), "refused with no wait");
        let minted = wait.as_secs_f64() * self.model.fill_rate;
        let slack = 3.0 * TOLERANCE * deepest + 2e-9 * self.model.fill_rate;
        assert!(
            (minted - missing).abs() <= slack,
            "a wait of {wait:?} mints {minted}, missing are {missing}"
        );
    }

    fn compare(&self, now: u64) {
        let got = self.limiter.snapshot(Timestamp::from_nanos(now));
        assert_eq!(got.enabled, self.model.enabled);
        if self.model.enabled {
            let want = self.model.available.max(0.0);
            let off = (got.available - want).abs();
            assert!(
                off <= TOLERANCE * want.max(1.0) * (1.0 + self.places.len() as f64),
                "available: got {}, want {want}",
                got.available
            );
        }
    }
}

impl Place<'_> {
    /// Takes the next token, minted or not.
    fn stand_in_line(&mut self, model: &mut AwsModel) {
        model.available -= 1.0;
        self.standing = Standing::InLine(-model.available);
        self.deepest = (-model.available).max(1.0);
    }
}
