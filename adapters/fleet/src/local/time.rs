//! The clock that all processes of a machine share.

use std::time::{SystemTime, UNIX_EPOCH};

/// What the clocks of the machine show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Names what `micros` count from: the start of the machine. Empty if that is the system's
    /// clock.
    pub(crate) since: String,
    pub(crate) micros: u64,
    /// The system's clock, which may be set.
    pub(crate) wall: u64,
}

/// Where a reading comes from: the machine, or a test.
pub(crate) type Clocks = Box<dyn Fn() -> Reading>;

/// Returns the clocks of the machine: the time since its start, sleep included, where the system
/// has that and names the start; the system's clock elsewhere.
pub(crate) fn clocks() -> Clocks {
    let start = start();
    Box::new(move || {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.map_or(0, |span| {
            u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
        });
        match (&start, since_start()) {
            (Some(start), Some(micros)) => Reading {
                since: start.clone(),
                micros,
                wall,
            },
            _ => Reading {
                since: String::new(),
                micros: wall,
                wall,
            },
        }
    })
}

#[cfg(target_os = "linux")]
fn start() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(target_os = "linux")]
fn since_start() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u64::try_from(time.tv_nsec).ok()?;
    seconds
        .checked_mul(1_000_000)?
        .checked_add(nanos.wrapping_div(1_000))
}

#[cfg(not(target_os = "linux"))]
const fn start() -> Option<String> {
    None
}

#[cfg(not(target_os = "linux"))]
const fn since_start() -> Option<u64> {
    None
}

/// How a file's time follows from a reading: it never goes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) since: String,
    /// What is added to the reading's `micros`. It may be negative.
    pub(crate) offset: i64,
    /// A time that the file has reached, at most half a second before the last step.
    pub(crate) last: u64,
}

/// What a reading says of a file's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Is(u64),
    /// The machine was started again: the file's time goes on by the system's clock, or where it
    /// was if that is behind.
    Restarted(Anchor),
    /// The clock went back. The file's time goes on where it was.
    Jumped(Anchor),
}

/// A clock may be so far behind without a word: processors' clocks differ, and it is a while
/// between reading a clock and taking the step.
const SLACK: u64 = 1_000_000;

impl Anchor {
    /// Returns the first anchor of a file.
    pub(crate) fn new(reading: &Reading) -> Self {
        Self::at(reading, reading.wall)
    }

    fn at(reading: &Reading, now: u64) -> Self {
        let signed = |micros| i64::try_from(micros).unwrap_or(i64::MAX);
        Self {
            since: reading.since.clone(),
            offset: signed(now).saturating_sub(signed(reading.micros)),
            last: now,
        }
    }

    pub(crate) fn time(&self, reading: &Reading) -> Time {
        if reading.since != self.since {
            return Time::Restarted(Self::at(reading, reading.wall.max(self.last)));
        }
        let now = reading.micros.saturating_add_signed(self.offset);
        if now.saturating_add(SLACK) < self.last {
            return Time::Jumped(Self::at(reading, self.last));
        }
        Time::Is(now.max(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::{Anchor, Reading, Time, clocks};

    fn reading(since: &str, micros: u64, wall: u64) -> Reading {
        Reading {
            since: since.to_owned(),
            micros,
            wall,
        }
    }

    #[test]
    fn within_a_start_the_time_is_that_of_one_clock_however_the_other_is_set() {
        let anchor = Anchor::new(&reading("a", 5_000_000, 90_000_000));
        for wall in [0, 90_000_000, u64::MAX] {
            let now = anchor.time(&reading("a", 7_000_000, wall));
            assert_eq!(now, Time::Is(92_000_000), "{wall}");
        }
        // A little behind is no jump, and the time does not go back.
        let behind = anchor.time(&reading("a", 4_000_000, 0));
        assert_eq!(behind, Time::Is(90_000_000));
    }

    #[test]
    fn after_another_start_it_goes_on_by_the_wall_or_where_it_was() {
        let anchor = Anchor::new(&reading("a", 5_000_000, 90_000_000));
        for (wall, now) in [(95_000_000, 95_000_000), (10, 90_000_000)] {
            let Time::Restarted(next) = anchor.time(&reading("b", 1_000, wall)) else {
                panic!("a start with another name");
            };
            assert_eq!((next.last, next.since.as_str()), (now, "b"));
            let later = next.time(&reading("b", 3_000, 0));
            assert_eq!(later, Time::Is(now + 2_000));
        }
    }

    #[test]
    fn a_clock_that_went_back_is_noted_and_the_time_goes_on() {
        let anchor = Anchor::new(&reading("", 90_000_000, 90_000_000));
        let Time::Jumped(next) = anchor.time(&reading("", 88_999_999, 88_999_999)) else {
            panic!("more than a second back");
        };
        assert_eq!(next.last, 90_000_000);
        let later = next.time(&reading("", 89_000_009, 89_000_009));
        assert_eq!(later, Time::Is(90_000_010));
    }

    #[test]
    fn the_machine_has_a_clock_that_advances() {
        let clocks = clocks();
        let (first, second) = (clocks(), clocks());
        assert_eq!(first.since, second.since);
        assert!(first.micros > 0 && second.micros >= first.micros);
        assert_eq!(first.since.is_empty(), !cfg!(target_os = "linux"));
    }
}
