//! How a lease reaches the pool: evenly, over the time until the next one.

use core::time::Duration;

use paceline::Timestamp;

use crate::pool::nanos_since;

/// Granted tokens that are not in the pool yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pour {
    reserve: u32,
    /// Of these, which stood in the reserve at `from`, so many are out.
    total: u32,
    out: u32,
    from: Timestamp,
    span: u64,
}

impl Pour {
    pub(crate) const fn reserve(&self) -> u32 {
        self.reserve
    }

    /// Adds `granted` tokens, and spreads all there are over `span`.
    pub(crate) fn load(&mut self, now: Timestamp, granted: u32, span: Duration) {
        let reserve = self.reserve.saturating_add(granted);
        *self = Self {
            reserve,
            total: reserve,
            out: 0,
            from: now,
            span: u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
        };
    }

    /// Returns how many tokens are due, at most `room`. The first one is due at once.
    pub(crate) fn due(&mut self, now: Timestamp, room: u32) -> u32 {
        let elapsed = u128::from(nanos_since(self.from, now).saturating_add(1));
        let due = u128::from(self.total)
            .saturating_mul(elapsed)
            .div_ceil(u128::from(self.span.max(1)));
        let due = u32::try_from(due).unwrap_or(u32::MAX);
        let due = due.saturating_sub(self.out).min(room).min(self.reserve);
        self.out = self.out.saturating_add(due);
        self.reserve = self.reserve.saturating_sub(due);
        due
    }

    /// Returns how long it is until the next token is due, or nothing if there is none.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Duration> {
        let offset = u128::from(self.out)
            .saturating_mul(u128::from(self.span))
            .checked_div(u128::from(self.total))
            .filter(|_| self.reserve > 0)?;
        let due = u64::try_from(offset).unwrap_or(u64::MAX);
        let due = due.saturating_sub(nanos_since(self.from, now));
        Some(Duration::from_nanos(due))
    }

    /// Takes out as many of `most` tokens as there are, and returns how many.
    pub(crate) fn withdraw(&mut self, most: u32) -> u32 {
        let taken = self.reserve.min(most);
        self.reserve = self.reserve.saturating_sub(taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Pour, Timestamp};

    const fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn loaded(tokens: u32) -> Pour {
        let mut pour = Pour::default();
        pour.load(at(100), tokens, Duration::from_nanos(100));
        pour
    }

    #[test]
    fn the_first_token_is_due_at_once_and_the_last_before_the_end() {
        let mut pour = loaded(4);
        let due = [100, 124, 125, 150, 175, 200].map(|now| pour.due(at(now), 9));
        assert_eq!(due, [1, 0, 1, 1, 1, 0]);
    }

    #[test]
    fn it_tells_when_the_next_token_is_due() {
        let mut pour = loaded(4);
        assert_eq!(pour.next(at(100)), Some(Duration::ZERO));
        assert_eq!(pour.due(at(100), 9), 1);
        assert_eq!(pour.next(at(110)), Some(Duration::from_nanos(15)));
        assert_eq!(pour.due(at(125), 9), 1);
        assert_eq!(pour.due(at(900), 9), 2);
        assert_eq!(pour.next(at(900)), None);
    }

    #[test]
    fn what_finds_no_room_comes_later() {
        let mut pour = loaded(4);
        assert_eq!((pour.due(at(300), 1), pour.reserve()), (1, 3));
        assert_eq!((pour.due(at(300), 9), pour.reserve()), (3, 0));
    }

    #[test]
    fn a_new_lease_spreads_what_is_left_of_the_old_one_too() {
        let mut pour = loaded(4);
        assert_eq!(pour.due(at(150), 9), 3);
        pour.load(at(200), 1, Duration::from_nanos(100));
        let due = [200, 250, 299].map(|now| pour.due(at(now), 9));
        assert_eq!(due, [1, 1, 0]);
    }

    #[test]
    fn what_is_withdrawn_is_not_poured() {
        let mut pour = loaded(4);
        assert_eq!((pour.withdraw(3), pour.due(at(900), 9)), (3, 1));
        assert_eq!(pour.withdraw(3), 0);
    }
}
