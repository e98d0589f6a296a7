//! Batches: how many items a request sends, and how many of them its answer refuses.

use alloc::sync::Arc;
use core::fmt;

use aws_smithy_runtime_api::client::interceptors::context::{Input, InterceptorContext, Output};
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use paceline::{Failure, RetrySafety};

type Count<T> = dyn Fn(&T) -> Option<usize> + Send + Sync;

/// An operation that sends several items, and whose output says how many were refused.
#[derive(Clone)]
pub(crate) struct Batch {
    items: Arc<Count<Input>>,
    refused: Arc<Count<Output>>,
}

/// How many items an operation sends, from its input to its first attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items(pub(crate) u32);

impl Storable for Items {
    type Storer = StoreReplace<Self>;
}

impl Batch {
    pub(crate) fn new<I, O>(
        items: impl Fn(&I) -> usize + Send + Sync + 'static,
        refused: impl Fn(&O) -> usize + Send + Sync + 'static,
    ) -> Self
    where
        I: fmt::Debug + Send + Sync + 'static,
        O: fmt::Debug + Send + Sync + 'static,
    {
        Self {
            items: Arc::new(move |input: &Input| input.downcast_ref().map(&items)),
            refused: Arc::new(move |output: &Output| output.downcast_ref().map(&refused)),
        }
    }
}

/// Returns how many items there are in `input`, if it is a batch's input.
pub(crate) fn items(batches: &[Batch], input: &Input) -> Option<Items> {
    let items = batches.iter().find_map(|batch| (batch.items)(input))?;
    Some(Items(u32::try_from(items).unwrap_or(u32::MAX).max(1)))
}

/// Returns the failure of a batch of `items` items, if the output says that some were refused.
///
/// The caller sends refused items again, so this failure is never retried here.
pub(crate) fn failure(
    batches: &[Batch],
    context: &InterceptorContext,
    items: u32,
) -> Option<Failure> {
    let output = context.output_or_error()?.ok()?;
    let refused = batches.iter().find_map(|batch| (batch.refused)(output))?;
    let refused = u32::try_from(refused).unwrap_or(u32::MAX);
    let failure = Failure::partly_throttled(refused, items);
    (refused > 0).then(|| failure.with_retry_safety(RetrySafety::No))
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}
