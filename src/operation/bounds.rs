//! The bounds of an operation beside its strategy.

use core::time::Duration;

use super::OuterAttempt;
use crate::{Class, Idempotency, Part, set::Weights};

/// The bounds that the caller sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) idempotency: Idempotency,
    /// The tokens of the send rate that each attempt takes.
    pub(super) weight: u32,
    /// The tokens of each send rate, if the strategy has several rates.
    pub(super) weights: Option<Weights>,
    /// Whether something waits for the operation.
    pub(super) class: Class,
    /// The time from the operation's beginning to its end; `None` for the strategy's deadline.
    pub(super) deadline: Option<Duration>,
    /// The time limit of one attempt.
    pub(super) attempt_timeout: Option<Duration>,
    /// The longest wait that the service may ask for; `None` for the strategy's cap.
    pub(super) max_retry_after: Option<Duration>,
    /// The attempt of an outer loop that contains the operation.
    pub(super) outer: Option<OuterAttempt>,
    /// Whether its attempts consist of several requests.
    pub(super) composite: bool,
    /// Whether its retries stay at the member of the strategy that served its first attempt.
    pub(super) same_member: bool,
}

impl Bounds {
    /// Reduces the tokens of the next attempt to the refused `part` of this attempt.
    pub(super) fn shrink(&mut self, part: Part) {
        self.weight = part.of(self.weight);
        self.weights = self.weights.map(|weights| weights.of_part(part));
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            idempotency: Idempotency::Idempotent,
            weight: 1,
            weights: None,
            class: Class::Foreground,
            deadline: None,
            attempt_timeout: None,
            max_retry_after: None,
            outer: None,
            composite: false,
            same_member: false,
        }
    }
}
