//! The strategies of a storage service. The adapters have links to this file in their `src`.

use alloc::sync::Arc;

use paceline::{Adaptive, RetryStrategy};

/// One strategy for reads and one for writes. Clones share both.
#[derive(Clone, Debug)]
pub struct Lanes {
    pub(crate) read: Arc<dyn RetryStrategy>,
    pub(crate) write: Arc<dyn RetryStrategy>,
}

impl Lanes {
    /// Creates lanes that are not shared.
    pub fn new(read: impl RetryStrategy + 'static, write: impl RetryStrategy + 'static) -> Self {
        Self::shared(Arc::new(read), Arc::new(write))
    }

    /// Creates lanes with an [`Adaptive::bulk`] each, for pipelines that may lose no object to
    /// throttling. A 503 is throttling, as with other lanes.
    #[must_use]
    pub fn bulk() -> Self {
        Self::new(Adaptive::bulk(), Adaptive::bulk())
    }

    /// Creates lanes of strategies that are also used elsewhere. Both may be the same strategy.
    #[must_use]
    pub fn shared(read: Arc<dyn RetryStrategy>, write: Arc<dyn RetryStrategy>) -> Self {
        Self { read, write }
    }

    /// Returns the strategy for reads.
    #[must_use]
    pub fn read(&self) -> &Arc<dyn RetryStrategy> {
        &self.read
    }

    /// Returns the strategy for writes.
    #[must_use]
    pub fn write(&self) -> &Arc<dyn RetryStrategy> {
        &self.write
    }
}
