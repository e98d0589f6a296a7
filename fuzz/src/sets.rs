//! `sets`: sets that share their rates, single requests and settlements, of both classes, against
//! plain lists.
//!
//! The rates stay as they are, so that every answer is the lists': what a set takes of each line,
//! what a refusal gives back, and what a settlement debits or credits. At the end no
//! waiter is left, and the buckets fill again.

use core::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use paceline::{
    AcquireError, SendRate, SendSet, Timestamp,
    law::PacedSettings,
    set::{Binding, SetError, SetPermit},
};

use crate::steps;

const SECOND: u64 = 1_000_000_000;
/// A token in the units here: at a million a second, the nanoseconds that it takes.
const TOKEN: i128 = 1_000;
/// The tokens that a bucket holds, those of 50 ms.
const CAPACITY: u32 = 50_000;
/// Rounding, in the units here.
const SLACK: i128 = 4;
/// The most requests unsettled at once.
const MOST: usize = 60;
/// The limits of each set, by rate: they overlap in different orders.
const SETS: [&[usize]; 2] = [&[0, 1], &[2, 1, 0]];

type Set<'a> = SendSet<&'a SendRate>;
type Permit = SetPermit<8>;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Advance(u16),
    Leap(u8),
    Try {
        set: bool,
        weights: [u16; 3],
    },
    Reserve {
        set: bool,
        weights: [u16; 3],
    },
    Settle {
        pick: u8,
        costs: [u16; 3],
    },
    Single {
        rate: u8,
        weight: u16,
    },
    Behind {
        set: bool,
        weights: [u16; 3],
        place: bool,
    },
    SingleBehind {
        rate: u8,
        weight: u16,
    },
}

/// One line, as a list.
#[derive(Debug, Default)]
struct Line {
    /// The last token promised, and what was written off before every place.
    issued: i128,
    written_off: i128,
}

impl Line {
    fn settled(&self, minted: i128) -> i128 {
        let full = minted - i128::from(CAPACITY) * TOKEN + self.written_off;
        self.issued.max(full)
    }

    /// What is missing for the next `weight`.
    fn missing(&self, minted: i128, weight: i128) -> i128 {
        self.settled(minted) + weight - self.written_off - minted
    }

    /// What is missing for `weight` of background, which leaves three quarters of the bucket alone,
    /// but for one token.
    fn missing_behind(&self, minted: i128, weight: i128) -> i128 {
        let capacity = i128::from(CAPACITY) * TOKEN;
        let left = ((capacity - TOKEN) * 3 / 4).min(capacity - weight);
        self.missing(minted, weight) + left
    }

    fn take(&mut self, minted: i128, weight: i128) -> i128 {
        self.issued = self.settled(minted) + weight;
        self.issued
    }
}

struct Scene<'a> {
    rates: &'a [SendRate; 3],
    sets: &'a [Set<'a>; 2],
    now: u64,
    lines: [Line; 3],
    unsettled: Vec<(usize, Permit)>,
}

fn rate() -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1_000_000, second)
        .and_then(|fixed| fixed.to_builder().burst(Duration::from_millis(50)).build());
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

/// Runs the sequence that `data` encodes on two sets and on their model.
///
/// # Panics
///
/// Panics if an answer of a set is not the model's.
pub fn sets(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let rates = [rate(), rate(), rate()];
    let sets = SETS.map(|limits| {
        let rates = limits.iter().map(|rate| &rates[*rate]);
        SendSet::of(rates).expect("two or three")
    });
    let full = || Line {
        issued: -i128::from(CAPACITY) * TOKEN,
        ..Line::default()
    };
    let mut scene = Scene {
        rates: &rates,
        sets: &sets,
        now: 0,
        lines: [full(), full(), full()],
        unsettled: Vec::new(),
    };
    for step in steps::<Step>(&mut data) {
        scene.apply(step);
        scene.compare();
    }
    scene.end();
}

impl Scene<'_> {
    fn at(&self) -> Timestamp {
        Timestamp::from_nanos(self.now)
    }

    fn minted(&self) -> i128 {
        i128::from(self.now)
    }

    fn apply(&mut self, step: Step) {
        match step {
            // A minute at most: a line is renewed after 68 s, which the lists know nothing of.
            Step::Advance(micros) => self.advance(u64::from(micros) * 100),
            Step::Leap(tenths) => self.advance(u64::from(tenths) * SECOND / 100),
            Step::Try { set, weights } => self.attempt(usize::from(set), weights),
            Step::Reserve { set, weights } => self.reserve(usize::from(set), weights),
            Step::Settle { pick, costs } => self.settle(pick, costs),
            Step::Single { rate, weight } => self.single(usize::from(rate) % 3, weight),
            Step::Behind {
                set,
                weights,
                place,
            } => self.behind(usize::from(set), weights, place),
            Step::SingleBehind { rate, weight } => {
                self.single_behind(usize::from(rate) % 3, weight);
            }
        }
    }

    fn advance(&mut self, nanos: u64) {
        self.now = (self.now + nanos).min(60 * SECOND);
    }

    /// Returns each limit that has a weight: which it is, its rate, and the weight in tokens.
    fn weighed(set: usize, weights: [u16; 3]) -> Vec<(usize, usize, i128)> {
        let all = SETS[set].iter().zip(weights).enumerate();
        all.filter(|(_, (_, weight))| *weight > 0)
            .map(|(limit, (rate, weight))| (limit, *rate, i128::from(weight) * TOKEN))
            .collect()
    }

    fn given(set: usize, weights: [u16; 3]) -> Vec<u32> {
        let given = weights.iter().take(SETS[set].len());
        given.map(|weight| u32::from(*weight)).collect()
    }

    /// Checks a refusal against what is missing of each limit.
    fn check(missing: &[(usize, i128)], binding: Binding, what: &str) {
        let wait = i128::try_from(binding.wait.as_nanos()).expect("it fits");
        let most = missing.iter().map(|(_, missing)| *missing).max();
        let most = most.expect("it has a weight");
        assert!(
            wait > 0 && (wait - most).abs() <= SLACK.max(1),
            "{what}: a wait of {wait}, missing are {most}"
        );
        let its = missing.iter().find(|(limit, _)| *limit == binding.limit);
        let (_, its) = its.expect("it is one of them");
        assert!(most - its <= 2 * SLACK, "{what}: not the limit that binds");
    }

    fn attempt(&mut self, set: usize, weights: [u16; 3]) {
        let (now, minted) = (self.at(), self.minted());
        let weighed = Self::weighed(set, weights);
        let missing: Vec<_> = weighed
            .iter()
            .map(|(limit, rate, weight)| (*limit, self.lines[*rate].missing(minted, *weight)))
            .collect();
        match self.sets[set].try_acquire(now, &Self::given(set, weights)) {
            Ok(permit) => {
                assert!(missing.iter().all(|(_, missing)| *missing <= SLACK));
                for (_, rate, weight) in weighed {
                    self.lines[rate].take(minted, weight);
                }
                if self.unsettled.len() < MOST {
                    self.unsettled.push((set, permit));
                }
            }
            Err(SetError::Limit {
                limit,
                error: AcquireError::NotInTime { wait },
            }) => {
                let binding = Binding { limit, wait };
                Self::check(&missing, binding, "try");
                // What was taken before the refusal goes back whole.
                for (limit, rate, weight) in weighed {
                    if self.lines[rate].missing(minted, weight) > 0 || limit > binding.limit {
                        break;
                    }
                    self.lines[rate].take(minted, weight);
                    self.lines[rate].written_off += weight;
                }
            }
            Err(SetError::Limit { .. }) => {
                let is_over = |weight: &u16| u32::from(*weight) > CAPACITY;
                let given = &weights[..SETS[set].len()];
                assert!(weighed.is_empty() || given.iter().any(is_over));
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn reserve(&mut self, set: usize, weights: [u16; 3]) {
        let minted = self.minted();
        let given = Self::given(set, weights);
        let Ok(mut reservation) = self.sets[set].reserve(self.at(), &given) else {
            let is_over = |weight: &u32| *weight > CAPACITY;
            let is_nothing = given.iter().all(|weight| *weight == 0);
            assert!(is_nothing || given.iter().any(is_over));
            return;
        };
        // It stands only in the line that it waits in longest, so that one which has to wait is
        // given up. The systems in virtual time play requests that wait.
        let weighed = Self::weighed(set, weights);
        let lacks =
            |(_, rate, weight): &(usize, usize, i128)| self.lines[*rate].missing(minted, *weight);
        let most = weighed.iter().map(lacks).max().unwrap_or(0);
        match reservation.claim(self.at()) {
            Ok(permit) => {
                assert!(most <= SLACK, "granted with {most} to go");
                for (_, rate, weight) in weighed {
                    self.lines[rate].take(minted, weight);
                }
                if self.unsettled.len() < MOST {
                    self.unsettled.push((set, permit));
                }
            }
            Err(binding) => assert!(most > -SLACK, "{binding:?}, and none is missing"),
        }
    }

    fn settle(&mut self, pick: u8, costs: [u16; 3]) {
        if self.unsettled.is_empty() {
            return;
        }
        let minted = self.minted();
        let pick = usize::from(pick) % self.unsettled.len();
        let (set, permit) = self.unsettled.swap_remove(pick);
        let settled = self.sets[set].settle(self.at(), permit, &Self::given(set, costs));
        assert_eq!(settled, Ok(()));
        for (limit, rate) in SETS[set].iter().enumerate() {
            let Some(taken) = permit.get(limit) else {
                continue;
            };
            let more = i128::from(costs[limit]) - i128::from(taken.weight());
            let line = &mut self.lines[*rate];
            if more > 0 {
                line.take(minted, more * TOKEN);
            } else {
                line.written_off -= more * TOKEN;
            }
        }
    }

    fn single(&mut self, rate: usize, weight: u16) {
        let (minted, weight) = (self.minted(), u32::from(weight).max(1));
        let tokens = i128::from(weight) * TOKEN;
        let missing = self.lines[rate].missing(minted, tokens);
        match self.rates[rate].try_acquire_n(self.at(), weight) {
            Ok(_) => {
                assert!(missing <= SLACK, "granted with {missing} to go");
                self.lines[rate].take(minted, tokens);
            }
            Err(_) => assert!(missing > -SLACK || weight > CAPACITY),
        }
    }

    /// A set of background. One that has to wait is only tried: its place would collect tokens.
    fn behind(&mut self, set: usize, weights: [u16; 3], place: bool) {
        let (now, minted) = (self.at(), self.minted());
        let weighed = Self::weighed(set, weights);
        let lacks = |(_, rate, weight): &(usize, usize, i128)| {
            self.lines[*rate].missing_behind(minted, *weight)
        };
        let most = weighed.iter().map(lacks).max().unwrap_or(0);
        let (given, view) = (Self::given(set, weights), self.sets[set].background());
        let is_over = given.iter().any(|weight| *weight > CAPACITY);
        let taken = if place && most <= -SLACK && !is_over {
            let reserved = view.reserve(now, &given);
            let claimed = reserved.map(|mut place| place.claim(now).map_err(SetError::from));
            claimed.and_then(|claimed| claimed)
        } else {
            view.try_acquire(now, &given)
        };
        match taken {
            Ok(permit) => {
                assert!(most <= SLACK, "granted behind the line with {most} to go");
                for (_, rate, weight) in weighed {
                    self.lines[rate].take(minted, weight);
                }
                if self.unsettled.len() < MOST {
                    self.unsettled.push((set, permit));
                }
            }
            Err(SetError::Limit {
                error: AcquireError::NotInTime { wait },
                ..
            }) => {
                assert!(most > -SLACK && !wait.is_zero(), "{wait:?}");
            }
            Err(SetError::Limit { .. }) => assert!(weighed.is_empty() || is_over),
            Err(error) => panic!("{error}"),
        }
    }

    fn single_behind(&mut self, rate: usize, weight: u16) {
        let (minted, weight) = (self.minted(), u32::from(weight).max(1));
        let tokens = i128::from(weight) * TOKEN;
        let missing = self.lines[rate].missing_behind(minted, tokens);
        let view = self.rates[rate].background();
        match view.try_acquire_n(self.at(), weight) {
            Ok(_) => {
                assert!(
                    missing <= SLACK,
                    "granted behind the line with {missing} to go"
                );
                self.lines[rate].take(minted, tokens);
            }
            Err(_) => assert!(missing > -SLACK || weight > CAPACITY),
        }
    }

    fn compare(&self) {
        for (rate, line) in self.rates.iter().zip(&self.lines) {
            let shown = rate.snapshot(self.at());
            let balance = self.minted() - line.settled(self.minted()) + line.written_off;
            let want = balance.max(0) as f64 / 1_000.0;
            assert!(
                (shown.available - want).abs() <= 0.01,
                "{shown:?}, not {want} available"
            );
        }
    }

    /// Everything is given back, and time passes.
    fn end(self) {
        let later = Timestamp::from_nanos(self.now + 1_000 * SECOND);
        for rate in self.rates {
            let shown = rate.snapshot(later);
            let waiting = (shown.waiting, shown.background.waiting);
            assert_eq!(waiting, (0, 0), "{shown:?}");
            assert!(shown.available >= shown.capacity - 0.01, "{shown:?}");
        }
        for set in self.sets {
            let all = vec![CAPACITY / 2; set.rates().count()];
            assert!(set.try_acquire(later, &all).is_ok());
        }
    }
}
