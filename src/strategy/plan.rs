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
    pub(super) name: Option<Arc<str>>,
}

impl<P> Plan<P> {
    /// Makes one more engine, of this name if it is not that of all.
    pub(super) fn engine(&self, name: Option<&str>) -> Engine<P> {
        let mark = Mark {
            issuer: StrategyId::new(),
            max_attempts: self.common.most,
            success_credit: self.common.settings.success_credit,
        };
        Engine {
            mark,
            is_watched: self.common.hook.is_some(),
            name: name.map(Arc::from).or_else(|| self.name.clone()),
            common: Arc::clone(&self.common),
            quota: self.quota.another(),
            counts: Counts::new(),
        }
    }
}
