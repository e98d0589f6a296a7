//! A second handle on a strategy, for the requests of one class.

use super::{
    failure::Failure,
    refusal::NotAdmitted,
    refusal::{InitialTokenRefused, RetryRefused},
    reports::Reports,
    request::SendRequest,
    retry_strategy::{RetryStrategy, forward},
    token::{ForeignToken, RetryToken},
    turn::SendTurn,
};
use crate::{Class, SendPermit};

/// Returns a strategy whose attempts all have `class`. It is a second handle on `strategy`, which
/// other requests use as before. `strategy` is a reference, an `Arc`, or a clone of `Scopes`.
///
/// It is for hosts that take a strategy and know no classes, such as the client of a back-fill.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use paceline::{Adaptive, Class, Failure, RetryStrategyExt, strategy::in_class};
///
/// let strategy = Arc::new(Adaptive::paced());
/// let backfill = in_class(Arc::clone(&strategy), Class::Background);
/// assert_eq!(backfill.run(|_| Ok::<_, Failure>("copied")).unwrap(), "copied");
/// assert_eq!(strategy.run(|_| Ok::<_, Failure>("answered")).unwrap(), "answered");
/// ```
pub fn in_class<S: RetryStrategy + Clone>(strategy: S, class: Class) -> impl RetryStrategy + Clone {
    InClass { strategy, class }
}

#[derive(Clone, Debug)]
struct InClass<S> {
    strategy: S,
    class: Class,
}

impl<S: RetryStrategy> RetryStrategy for InClass<S> {
    forward! {
        self => (self.strategy):
        acquire_initial_token(scope: Option<&str>) -> Result<RetryToken, InitialTokenRefused>;
        refresh_retry_token(token: RetryToken, failure: &Failure, reports: Reports<'_>)
            -> Result<RetryToken, RetryRefused>;
        record_success(token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken>;
    }

    fn inside(&self) -> Option<&dyn RetryStrategy> {
        Some(&self.strategy)
    }

    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        self.strategy.admit(turn, request.class(self.class))
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;
    use core::time::Duration;

    use crate::{Adaptive, Clock, Timestamp, law::PacedSettings};

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }
    }

    #[test]
    fn its_attempts_stand_behind_those_of_the_strategy() {
        let fixed = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
        let builder = Adaptive::builder().paced(fixed);
        let strategy = Arc::new(builder.clock(Arc::new(Still)).build_checked());
        let backfill = in_class(Arc::clone(&strategy), Class::Background);
        let (mut one, mut other) = (SendTurn::new(), SendTurn::new());
        let first = strategy.admit(&mut one, SendRequest::new());
        assert!(first.is_ok(), "it is full");
        assert_eq!((backfill.id(), backfill.is_idle()), (strategy.id(), false));
        assert!(backfill.admit(&mut one, SendRequest::new()).is_err());
        assert!(strategy.admit(&mut other, SendRequest::new()).is_err());
        let seen = backfill.snapshot();
        let waiting = seen
            .rate
            .map(|rate| (rate.waiting, rate.background.waiting));
        assert_eq!(waiting, Some((1, 1)));
        assert_eq!(
            (seen.counts.delayed, seen.counts.delayed_background),
            (2, 1)
        );
    }
}
