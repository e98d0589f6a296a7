//! gRPC: what its status codes mean, wherever in a response they stand.

mod body;
mod results;
mod status;

use alloc::sync::Arc;

pub use body::GrpcBody;
use paceline::RetryStrategy;
pub use results::GrpcResults;

use crate::{Buffered, RetryLayer};

/// The longest request that is kept to be sent again.
const LIMIT: usize = 65_536;

impl<S: RetryStrategy> RetryLayer<S, GrpcResults, Buffered> {
    /// Creates the layer for gRPC, as tonic's.
    ///
    /// Unary requests of up to 64 KiB are sent again, and so are streams that are there in full,
    /// and of that length; [`replay`](Self::replay) with another [`Buffered`] changes that.
    /// Calls may be carried out twice, unless [`idempotency`](Self::idempotency) says
    /// otherwise: all of them are POST. The deadline of a call (`grpc-timeout`) is that of its
    /// operation, and every attempt is told what is left of it.
    ///
    /// The service in the layer is sent [`Replayed`](crate::Replayed) bodies: for a tonic channel
    /// put `.map_request(|call: Request<Replayed<Body>>| call.map(Body::new))` between the two.
    pub fn grpc(strategy: S) -> Self {
        RetryLayer::shared(Arc::new(strategy), GrpcResults::new()).replay(Buffered::up_to(LIMIT))
    }
}
