//! A loop without a system, threads or a runtime: a board sends readings to a service that
//! throttles.
//!
//! The board brings an allocator, since a [`SendRate`] that limits allocates. Without 128-bit atomics a
//! call holds a lock for some instructions, so an interrupt handler must not use the limiter: it could
//! wait for the loop that it interrupts, without end.
#![no_std]

use core::time::Duration;

use paceline_core::{ControlLaw, Outcome, RetryQuota, SendRate, Timestamp};

/// What the loop needs of the board.
pub trait Board {
    /// Returns the nanoseconds since the board was switched on.
    fn nanos(&self) -> u64;
    /// Sleeps for this span, or until an interrupt.
    fn idle(&mut self, span: Duration);
    /// Sends a reading, and returns the status of the response.
    fn send(&mut self, reading: u32) -> u16;
}

fn now(board: &impl Board) -> Timestamp {
    Timestamp::from_nanos(board.nanos())
}

/// Sends each reading in its turn, and again while the quota allows it. Returns the number of lost
/// ones.
pub fn send_all(board: &mut impl Board, readings: u32) -> u32 {
    let rate = SendRate::new(ControlLaw::Paced, now(board));
    let quota = RetryQuota::new(500);
    let mut lost = 0;
    for reading in 0..readings {
        while !send_in_turn(board, &rate, reading) {
            if quota.try_acquire(5).is_none() {
                lost += 1;
                break;
            }
        }
        quota.credit(1);
    }
    lost
}

/// Sends a reading, and returns whether it passed.
fn send_in_turn(board: &mut impl Board, rate: &SendRate, reading: u32) -> bool {
    let mut place = rate.reserve(now(board));
    let permit = loop {
        match place.claim(now(board)) {
            Ok(permit) => break permit,
            Err(wait) => board.idle(wait),
        }
    };
    let status = board.send(reading);
    let throttled = matches!(status, 429 | 503);
    let outcome = if throttled {
        Outcome::Throttled
    } else {
        Outcome::NotThrottled
    };
    rate.record(now(board), permit, outcome);
    !throttled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service that lets ten requests a second pass. Each takes a millisecond.
    #[derive(Default)]
    struct Simulated {
        nanos: u64,
        free_at: u64,
        passed: u32,
        throttled: u32,
    }

    impl Board for Simulated {
        fn nanos(&self) -> u64 {
            self.nanos
        }

        fn idle(&mut self, span: Duration) {
            self.nanos += u64::try_from(span.as_nanos()).expect("a short wait");
        }

        fn send(&mut self, _reading: u32) -> u16 {
            self.nanos += 1_000_000;
            if self.nanos < self.free_at {
                self.throttled += 1;
                return 429;
            }
            self.free_at = self.nanos + 100_000_000;
            self.passed += 1;
            200
        }
    }

    #[test]
    fn every_reading_passes_at_about_the_rate_of_the_service() {
        let mut board = Simulated::default();
        assert_eq!(send_all(&mut board, 200), 0);
        assert_eq!(
            (board.passed, board.throttled, board.nanos / 1_000_000_000),
            (200, 13, 26)
        );
    }
}
