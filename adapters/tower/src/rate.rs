//! The send rate alone: a layer whose requests wait for their turn.

mod future;
mod layer;

pub use future::{Rated, SendRateFuture};
pub use layer::{SendRateLayer, SendRateService};
