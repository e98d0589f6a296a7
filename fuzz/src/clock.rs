//! A clock that inputs move.

use core::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};

/// The time in nanoseconds, and how far it may still go.
#[derive(Debug)]
pub(crate) struct Clock {
    now: u64,
    last: u64,
}

impl Clock {
    /// A limiter's time line is a year long: stored times wrap after that.
    const YEAR: u64 = 365 * 86_400 * 1_000_000_000;

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn advance(&mut self, gap: Gap) {
        let last = self.last.max(self.now); // waits may go past it
        self.now = self.now.saturating_add(gap.nanos()).min(last);
    }

    pub(crate) fn wait(&mut self, wait: Duration) {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.now = self.now.saturating_add(nanos);
    }
}

impl<'a> Arbitrary<'a> for Clock {
    /// Starts with the process, with the machine, in 1970, or in the middle of a window.
    fn arbitrary(data: &mut Unstructured<'a>) -> Result<Self> {
        let now = match u8::arbitrary(data)? % 4 {
            0 => 0,
            1 => u64::from(u32::arbitrary(data)?) * 1_000_000,
            2 => 1_700_000_000_123_456_789,
            _ => u64::from(u32::arbitrary(data)?),
        };
        Ok(Self {
            now,
            last: now + Self::YEAR,
        })
    }
}

/// A gap between two operations: `mantissa`·2^`exponent` µs, from none to some hours.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Gap {
    mantissa: u8,
    exponent: u8,
    nanos: u8,
}

impl Gap {
    pub(crate) fn nanos(self) -> u64 {
        ((u64::from(self.mantissa) << (self.exponent % 28)) * 1_000) + u64::from(self.nanos)
    }
}
