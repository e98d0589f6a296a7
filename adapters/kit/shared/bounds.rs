//! The settings of an operation that adapters have in common. Their `src` have links to this file.

use core::time::Duration;

use paceline::Operation;

/// The user's settings; `None` for paceline's defaults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) deadline: Option<Duration>,
    pub(crate) max_retry_after: Option<Duration>,
    pub(crate) composite: bool,
}

impl Bounds {
    pub(crate) fn apply<S>(self, mut operation: Operation<'_, S>) -> Operation<'_, S> {
        if let Some(span) = self.deadline {
            operation = operation.deadline(span);
        }
        if let Some(span) = self.max_retry_after {
            operation = operation.max_retry_after(span);
        }
        if self.composite {
            operation = operation.composite();
        }
        operation
    }
}
