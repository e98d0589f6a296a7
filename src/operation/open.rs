//! The strategy and the token of one operation, until its end.

use alloc::sync::Arc;

use super::spent::{Doing, Spent};
use crate::{
    RetryStrategy, RetryToken,
    strategy::{Event, EventKind, Reports, StrategyId},
};

/// The strategy, or the scope, that an operation belongs to.
pub(super) struct Who {
    pub(super) strategy: Option<StrategyId>,
    pub(super) name: Option<Arc<str>>,
}

/// An operation. It has ended when its token is gone. An operation that is dropped with a token is
/// cancelled.
pub(super) struct Open<S: RetryStrategy> {
    pub(super) strategy: S,
    /// `None` if the strategy gave none, and after the last attempt.
    pub(super) token: Option<RetryToken>,
    /// Where the time of the operation went; `None` if a slow operation is not reported.
    pub(super) spent: Option<Spent>,
}

impl<S: RetryStrategy> Open<S> {
    /// Returns `true` if the operation waits in line until its deadline.
    pub(super) fn waits_out(&self) -> bool {
        self.token.as_ref().is_some_and(RetryToken::waits_out)
    }

    /// Ends an operation that the loop gives up.
    pub(super) fn give_up(&mut self, reports: Reports<'_>) {
        if let Some(token) = &mut self.token {
            token.give_up();
        }
        self.cancel(reports);
    }

    /// Returns the strategy, or the scope, that the operation belongs to.
    pub(super) fn who(&self) -> Who {
        let token = self.token.as_ref();
        Who {
            strategy: token
                .map(RetryToken::strategy)
                .or_else(|| self.strategy.id()),
            name: self.strategy.name(token),
        }
    }

    /// Hands an event to `tracing` and to the strategy's hook.
    pub(super) fn tell(&self, who: &Who, kind: EventKind<'_>) {
        let event = Event::new(who.strategy, who.name.as_deref(), kind);
        #[cfg(feature = "tracing")]
        event.trace();
        self.strategy.notify(&event);
    }

    /// Notes what the operation does from now on.
    #[inline]
    pub(super) fn goes(&mut self, doing: Doing) {
        if let Some(spent) = &mut self.spent {
            spent.goes(doing);
        }
    }

    /// Emits the event of a slow operation that ends. Call it while the token is there.
    #[inline]
    pub(super) fn ends(&mut self, reports: Reports<'_>) {
        if self.spent.is_some() {
            self.ends_slowly(reports);
        }
    }

    // Cold, because most operations are not reported.
    #[cold]
    #[inline(never)]
    fn ends_slowly(&mut self, reports: Reports<'_>) {
        let own = self.strategy.clock();
        let Some(mut spent) = self.spent.take() else {
            return;
        };
        // A dropped operation has only the strategy's clock.
        if spent.is_own || reports.clock.is_some() {
            spent.pass(reports.clock(own).now());
            spent.show(|kind| self.tell(&self.who(), kind));
        }
    }

    /// Ends an operation that succeeded.
    #[inline]
    pub(super) fn succeed(&mut self, reports: Reports<'_>) {
        self.ends(reports);
        if let Some(token) = self.token.take() {
            // A strategy that refuses its own token changes nothing about the success.
            let _recorded = self.strategy.record_success(token, reports);
        }
    }

    /// Gives back what the operation holds.
    // Cold, because most operations have ended when they are dropped.
    #[cold]
    fn cancel(&mut self, reports: Reports<'_>) {
        self.ends(reports);
        if let Some(token) = self.token.take() {
            // A strategy that refuses its own token has nothing to give back.
            let _recorded = self.strategy.record_cancelled(token, reports);
        }
    }
}

impl<S: RetryStrategy> Drop for Open<S> {
    #[inline]
    fn drop(&mut self) {
        if self.token.is_some() {
            self.cancel(Reports::new());
        }
    }
}
