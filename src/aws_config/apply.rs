//! From settings to strategies.

use alloc::sync::Arc;

use super::{RetryConfig, RetryMode};
use crate::{Adaptive, ControlLaw, Legacy, RetryStrategy, Standard, config::StrategyBuilder};

impl RetryConfig {
    /// Builds a strategy of the chosen mode, or else [`Standard`].
    ///
    /// The strategy has its own quota, and in adaptive mode its own send rate. Build one strategy
    /// for each resource that is throttled separately, and share it.
    #[must_use]
    pub fn build_strategy(&self) -> Arc<dyn RetryStrategy> {
        match self.mode().unwrap_or_default() {
            RetryMode::Standard => Arc::new(Standard::builder().config(self).build_checked()),
            RetryMode::Adaptive => Arc::new(
                Adaptive::builder()
                    .law(ControlLaw::Aws)
                    .config(self)
                    .build_checked(),
            ),
            RetryMode::Legacy => {
                let legacy = Legacy::new();
                Arc::new(match self.max_attempts() {
                    Some(sends) => legacy.max_attempts(sends),
                    None => legacy,
                })
            }
        }
    }
}

impl<M> StrategyBuilder<M> {
    /// Takes over the settings of `config`, except settings that the builder makes, before or
    /// after.
    ///
    /// The builder's mode stays.
    pub fn config(mut self, config: &RetryConfig) -> Self {
        if let Some(generation) = config.generation() {
            self = self.generation_unless_set(generation);
        }
        //= AWS: The default number of maximum attempts is set by the retry_mode setting, unless
        //= overridden by the max_attempts setting.
        match config.max_attempts() {
            Some(sends) => self.max_attempts_unless_set(sends.get()),
            None => self,
        }
    }
}
