//! Where the time of a slow operation goes.

use alloc::boxed::Box;
use core::{ptr, time::Duration};

use crate::{Clock, RetryToken, Timestamp, set::MOST_RATES, strategy::EventKind};

/// An operation that takes this long is reported.
const SLOW: Duration = Duration::from_secs(1);

/// What an operation does at the moment.
#[derive(Clone, Copy)]
pub(super) enum Doing {
    Sending,
    /// The operation waits, and the time is added to this index of its [`Waits`].
    Waiting(usize),
}

impl Doing {
    pub(super) const BACKING_OFF: Self = Self::Waiting(0);
    const AT_GATE: Self = Self::Waiting(1);

    /// Returns the wait in the line of `limit`, or at a gate behind the strategy if there is no
    /// limit.
    pub(super) fn waits_for(limit: Option<usize>) -> Self {
        limit.map_or(Self::AT_GATE, |limit| {
            Self::Waiting(limit.saturating_add(2))
        })
    }
}

/// The nanoseconds in backoffs, at a gate, and in the line of each limit.
type Waits = [u64; MOST_RATES + 2];

/// Where the time of one operation has gone so far, in nanoseconds.
pub(super) struct Spent {
    /// The end of the time that is accounted for.
    until: Timestamp,
    sending: u64,
    /// `None` until the operation has waited, so that an operation that goes at once allocates
    /// nothing.
    waits: Option<Box<Waits>>,
    attempts: u32,
    doing: Doing,
    /// Whether the strategy's own clock times the operation.
    pub(super) is_own: bool,
}

impl Spent {
    /// Returns `true` if a hook or a subscriber of `tracing` wants the times of an operation with
    /// this token.
    #[inline]
    pub(super) fn is_asked_for(token: Option<&RetryToken>) -> bool {
        #[cfg(feature = "tracing")]
        if tracing::enabled!(target: "paceline::operation", tracing::Level::INFO) {
            return true;
        }
        token.is_some_and(RetryToken::is_watched)
    }

    /// Begins at the time of `clock`, for a strategy whose clock is `own`.
    pub(super) fn since(clock: &dyn Clock, own: &dyn Clock) -> Self {
        Self {
            until: clock.now(),
            sending: 0,
            waits: None,
            attempts: 0,
            doing: Doing::Sending,
            is_own: ptr::addr_eq(clock, own),
        }
    }

    /// Accounts for the time until `now`.
    pub(super) fn pass(&mut self, now: Timestamp) {
        let span = now.as_nanos().saturating_sub(self.until.as_nanos());
        self.until = self.until.max(now);
        let account = match self.doing {
            Doing::Sending => Some(&mut self.sending),
            Doing::Waiting(_) if span == 0 => None,
            Doing::Waiting(which) => self.waits.get_or_insert_default().get_mut(which),
        };
        if let Some(account) = account {
            *account = account.saturating_add(span);
        }
    }

    /// Notes what the operation does from now on.
    pub(super) const fn goes(&mut self, doing: Doing) {
        self.doing = doing;
    }

    /// Notes that an attempt is sent.
    pub(super) const fn sends(&mut self) {
        self.doing = Doing::Sending;
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Calls `tell` with the event, if the operation was slow.
    pub(super) fn show(&self, tell: impl FnOnce(EventKind<'_>)) {
        let waits = self.waits.as_deref().copied().unwrap_or_default();
        let all = waits.iter();
        let total = all.fold(self.sending, |sum, part| sum.saturating_add(*part));
        let total = Duration::from_nanos(total);
        if total >= SLOW {
            let [backoffs, gate, in_line @ ..] = waits.map(Duration::from_nanos);
            let last = in_line.iter().rposition(|span| !span.is_zero());
            let in_line = in_line.get(..last.map_or(0, |last| last.saturating_add(1)));
            let in_line = in_line.unwrap_or_default();
            tell(EventKind::Slow {
                total,
                in_line,
                gate,
                backoffs,
                sending: Duration::from_nanos(self.sending),
                attempts: self.attempts,
            });
        }
    }
}
