//! How long operations may take, and wait.

use core::time::Duration;

use paceline::Operation;

/// What a user has set; `None` for paceline's defaults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) deadline: Option<Duration>,
    pub(crate) max_retry_after: Option<Duration>,
}

impl Bounds {
    pub(crate) fn apply<S>(self, mut operation: Operation<'_, S>) -> Operation<'_, S> {
        if let Some(span) = self.deadline {
            operation = operation.deadline(span);
        }
        if let Some(span) = self.max_retry_after {
            operation = operation.max_retry_after(span);
        }
        operation
    }
}
