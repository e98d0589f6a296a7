//! Building scopes: how each is made, and how many there may be.

use alloc::boxed::Box;
use core::fmt;

use super::scopes::Scopes;
use crate::{
    Adaptive, RetryStrategy, Standard,
    config::{SettingsError, StrategyBuilder},
};

/// Java's store keeps 128. A state is small, and a client of many tables should not reach the
/// bound.
const MAX_SCOPES: usize = 10_000;

/// Makes the strategy of a key, or with `None` the strategy that operations without a key share.
pub(super) type Make<S> = dyn Fn(Option<&str>) -> Result<S, SettingsError> + Send + Sync;

/// Builds [`Scopes`].
///
/// | setting | default |
/// |---|---|
/// | most scopes | 10,000 |
/// | longest key | 1,280 bytes |
///
/// # Examples
///
/// Each table has its own rate and quota, and one table makes more attempts:
///
/// ```
/// use paceline::{Adaptive, ControlLaw};
///
/// let template = Adaptive::builder().law(ControlLaw::Paced).max_attempts(3);
/// let patient = template.clone().max_attempts(8);
/// let scopes = template
///     .scopes()
///     .exceptions(move |key| (key == "ledger").then(|| patient.clone().name(key).build()))
///     .max_scopes(100_000)
///     .build()?;
/// assert_eq!(scopes.get("orders")?.settings().max_attempts, 3);
/// assert_eq!(scopes.get("ledger")?.settings().max_attempts, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct ScopesBuilder<S> {
    make: Box<Make<S>>,
    max_scopes: usize,
}

impl<S: RetryStrategy + 'static> ScopesBuilder<S> {
    /// Builds each scope's strategy by `make`, which gets the key, or `None` for operations without
    /// a key.
    ///
    /// `make` is called when a key is used for the first time, or again after its scope was
    /// dropped. Two threads may call `make` for one key at once; one result is kept. If `make`
    /// panics, nothing is made and no room is lost. A strategy's events have the name that `make`
    /// gives it.
    pub fn new(
        make: impl Fn(Option<&str>) -> Result<S, SettingsError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            make: Box::new(make),
            max_scopes: MAX_SCOPES,
        }
    }

    /// Asks `make` first for the strategy of a key. If `make` returns `None`, the strategy is built
    /// as without this call.
    ///
    /// Strategies built from one template share their settings in memory; a strategy made here has
    /// its own. An error refuses the scope. Name each strategy by its key, so that its events have
    /// the name.
    pub fn exceptions(
        mut self,
        make: impl Fn(&str) -> Option<Result<S, SettingsError>> + Send + Sync + 'static,
    ) -> Self {
        let rest = self.make;
        self.make = Box::new(move |key| key.and_then(&make).unwrap_or_else(|| rest(key)));
        self
    }

    /// Keeps at most `scopes` states. 0 is an error at `build`.
    pub const fn max_scopes(mut self, scopes: usize) -> Self {
        self.max_scopes = scopes;
        self
    }

    /// Builds the scopes, and the state that operations without a scope share.
    ///
    /// # Errors
    ///
    /// Returns [`SettingsError`] if `max_scopes` is 0, or if the settings are wrong.
    pub fn build(self) -> Result<Scopes<S>, SettingsError> {
        if self.max_scopes == 0 {
            return Err(SettingsError::ZeroMaxScopes);
        }
        let shared = (self.make)(None)?;
        Ok(Scopes::from_parts(self.make, shared, self.max_scopes))
    }
}

impl<S> fmt::Debug for ScopesBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopesBuilder")
            .field("max_scopes", &self.max_scopes)
            .finish_non_exhaustive()
    }
}

impl StrategyBuilder<Standard> {
    /// Builds a strategy for each scope, with these settings. `build` reports wrong settings.
    pub fn scopes(self) -> ScopesBuilder<Standard> {
        ScopesBuilder::new(self.many())
    }
}

impl StrategyBuilder<Adaptive> {
    /// Builds a strategy for each scope, with these settings. `build` reports wrong settings.
    ///
    /// A send rate starts when its scope is first used.
    pub fn scopes(self) -> ScopesBuilder<Adaptive> {
        ScopesBuilder::new(self.many())
    }
}
