//! The send rate alone: a layer whose requests wait for their turn.

mod future;
mod layer;
mod set;

pub use future::{Rated, SendRateFuture};
pub use layer::{SendRateLayer, SendRateService};
pub use set::{RatedSet, SendSetLayer, SendSetService};
