//! Counts of responses and their tokens.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use paceline::snapshot::StrategySnapshot;

use super::Tokens;

/// Relaxed throughout: each is a count, and publishes nothing else.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) settled: AtomicU64,
    pub(super) without_usage: AtomicU64,
    pub(super) wrong_usage: AtomicU64,
    pub(super) cut: AtomicU64,
    input: AtomicU64,
    output: AtomicU64,
}

pub(super) fn one(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

impl Counts {
    pub(super) fn used(&self, tokens: Tokens) {
        self.input.fetch_add(tokens.input().into(), Relaxed);
        self.output.fetch_add(tokens.output().into(), Relaxed);
    }

    pub(super) fn snapshot(&self, strategy: &StrategySnapshot) -> ModelSnapshot {
        ModelSnapshot {
            settled: self.settled.load(Relaxed),
            without_usage: self.without_usage.load(Relaxed),
            wrong_usage: self.wrong_usage.load(Relaxed),
            cut: self.cut.load(Relaxed),
            input_tokens: self.input.load(Relaxed),
            output_tokens: self.output.load(Relaxed),
            strategy: *strategy,
        }
    }
}

/// What a [`ModelPacing`](crate::ModelPacing) has counted so far, for diagnostics.
///
/// The four counts of responses contain only successes whose bodies have ended.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ModelSnapshot {
    /// Responses that were settled with the usage in their bodies.
    pub settled: u64,
    /// Responses that ended without a usage. The estimate stays spent.
    pub without_usage: u64,
    /// Responses with an impossible usage: below zero, with a fraction, or above 10,000,000. The
    /// estimate stays spent.
    pub wrong_usage: u64,
    /// Responses that were dropped or broke off before their usage came. The estimate stays spent,
    /// or the known usage if it is more.
    pub cut: u64,
    /// The tokens of all prompts with a known usage.
    pub input_tokens: u64,
    /// The tokens of all answers with a known usage.
    pub output_tokens: u64,
    /// The strategy: its limits, its waits, its throttles.
    pub strategy: StrategySnapshot,
}

/// In one line.
impl fmt::Display for ModelSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} settled, {} without usage, {} wrong, {} cut; {} tokens in, {} out; {}",
            self.settled,
            self.without_usage,
            self.wrong_usage,
            self.cut,
            self.input_tokens,
            self.output_tokens,
            self.strategy
        )
    }
}

/// As `Display`, in one line.
impl fmt::Debug for ModelSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelSnapshot({self})")
    }
}
