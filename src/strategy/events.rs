//! What goes to `tracing`: changes of state, and nothing that every request does.
//!
//! Without the feature `tracing` each of these is empty.

use super::token::StrategyId;
#[cfg(feature = "tracing")]
use crate::law::Dimension;
use crate::{SendRateSnapshot, snapshot::DeclaredLimit};

/// Emits that the quota refused a retry, after it had granted the one before.
pub(super) fn quota_exhausted(strategy: StrategyId, available: u32, needed: u32) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "paceline", ?strategy, available, needed, "retry quota exhausted");
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, available, needed);
}

/// Emits that the quota granted a retry, after it had refused the one before.
pub(super) fn quota_recovered(strategy: StrategyId, available: impl FnOnce() -> u32) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "paceline", ?strategy, available = available(), "retry quota recovered");
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, available);
}

/// Emits that sends are limited from now on.
pub(super) fn engaged(strategy: StrategyId, state: impl FnOnce() -> SendRateSnapshot) {
    #[cfg(feature = "tracing")]
    {
        let fill_rate = state().fill_rate;
        tracing::warn!(target: "paceline", ?strategy, fill_rate, "send rate engaged");
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, state);
}

/// Emits that a throttle lowered the rate of a limiter that was engaged.
pub(super) fn cut(strategy: StrategyId, state: impl FnOnce() -> SendRateSnapshot) {
    #[cfg(feature = "tracing")]
    {
        let fill_rate = state().fill_rate;
        tracing::info!(target: "paceline", ?strategy, fill_rate, "send rate cut");
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, state);
}

/// Emits that a background request waits for the first time, behind the line.
pub(super) fn background(strategy: StrategyId) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "paceline", ?strategy, "background waits for the first time");
    #[cfg(not(feature = "tracing"))]
    let _ = strategy;
}

/// Emits that the service declares a limit that was not known, or has changed one.
pub(super) fn declared(strategy: StrategyId, limit: impl FnOnce() -> Option<DeclaredLimit>) {
    #[cfg(feature = "tracing")]
    if let Some(limit) = limit() {
        let (dimension, policy) = (limit.dimension, limit.policy);
        tracing::info!(
            target: "paceline", ?strategy, limit = limit.limit, window = ?limit.window, %dimension, %policy,
            "limit declared"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, limit);
}

/// Emits that the service throttled although enough was left of the limit that it declares.
pub(super) fn contradicted(strategy: StrategyId, limit: impl FnOnce() -> Option<DeclaredLimit>) {
    #[cfg(feature = "tracing")]
    if let Some(limit) = limit() {
        let (dimension, policy) = (limit.dimension, limit.policy);
        tracing::warn!(
            target: "paceline", ?strategy, limit = limit.limit, %dimension, %policy,
            "declared limit contradicted"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, limit);
}

/// Emits that a limiter that obeys declared limits has had several answers and no report.
#[cfg(feature = "tracing")]
pub(super) fn unheard(strategy: StrategyId, dimension: Option<Dimension>) {
    let dimension = dimension.unwrap_or_default();
    tracing::warn!(target: "paceline", ?strategy, %dimension, "no declared limits heard");
}

/// Emits that sends are no longer limited.
#[cfg(feature = "tracing")]
pub(super) fn recovered(strategy: StrategyId) {
    tracing::info!(target: "paceline", ?strategy, "send rate recovered");
}
