//! What strategies are built from: checked once, whether for one of them or for a million.

use alloc::sync::Arc;

use super::{
    engine::{Common, Engine},
    quota::QuotaSource,
    token::{Mark, StrategyId},
};
use crate::atomic::cells::Counts;

/// What all strategies of one builder share, and what the first of them pays from.
#[derive(Debug)]
pub(super) struct Plan<P> {
    pub(super) common: Arc<Common<P>>,
    pub(super) quota: QuotaSource,
}

impl<P> Plan<P> {
    /// Makes one more engine.
    pub(super) fn engine(&self) -> Engine<P> {
        let mark = Mark {
            issuer: StrategyId::new(),
            max_attempts: self.common.most,
            success_credit: self.common.settings.success_credit,
        };
        Engine {
            mark,
            common: Arc::clone(&self.common),
            quota: self.quota.another(),
            counts: Counts::new(),
        }
    }
}
