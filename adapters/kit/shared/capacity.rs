//! Requests that ask for more tokens than a send rate holds. The adapters have links to this file in
//! their `src`.

use paceline::{
    AcquireError, WeightError,
    operation::{Stop, StopReason},
    set::SetError,
};

/// Returns the capacity of the send rate, if an operation stopped because it asked for more. The
/// operation may take the capacity instead.
pub(crate) fn capacity(stop: &Stop) -> Option<u32> {
    let StopReason::Weight(SetError::Limit { error, .. }) = stop.why() else {
        return None;
    };
    match error {
        AcquireError::Weight(WeightError::AboveCapacity { weight, capacity }) => {
            Some(capacity.max(1)).filter(|less| *less < weight)
        }
        _ => None,
    }
}
