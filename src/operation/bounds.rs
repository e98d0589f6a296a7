//! What an operation is held to besides its strategy.

use core::time::Duration;

use super::OuterAttempt;
use crate::{Class, Idempotency, Part, set::Weights};

/// The bounds that the caller sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) idempotency: Idempotency,
    /// The tokens of the send rate that each attempt takes.
    pub(super) weight: u32,
    /// Those of each send rate, if the strategy has several.
    pub(super) weights: Option<Weights>,
    /// Whether something waits for it.
    pub(super) class: Class,
    /// From the beginning of the operation to its end; `None` for what the strategy says.
    pub(super) deadline: Option<Duration>,
    /// Of one attempt.
    pub(super) attempt_timeout: Option<Duration>,
    /// The longest wait that the service may ask for; `None` for what the strategy says.
    pub(super) max_retry_after: Option<Duration>,
    /// The attempt of an outer loop that the request itself was found to be of.
    pub(super) outer: Option<OuterAttempt>,
    /// Whether its attempts consist of several requests.
    pub(super) composite: bool,
    /// Whether its retries stay at the member of the strategy that served its first attempt.
    pub(super) same_member: bool,
}

impl Bounds {
    /// Has the next attempt take what the refused part of this one asks for.
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
