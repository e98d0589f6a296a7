//! gRPC: the meaning of its status codes, in headers and in trailers.

mod body;
mod results;
mod status;

use alloc::sync::Arc;

pub use body::GrpcBody;
use paceline::RetryStrategy;
pub use results::GrpcResults;

use crate::{Buffered, RetryLayer};

/// The longest request that is kept to be sent again, in bytes.
const LIMIT: usize = 65_536;

impl<S: RetryStrategy> RetryLayer<S, GrpcResults, Buffered> {
    /// Creates the layer for clients of gRPC, such as tonic's.
    ///
    /// Unary requests of up to 64 KiB are sent again, and so are complete streams of that length.
    /// [`replay`](Self::replay) with another [`Buffered`] changes the length. Calls may be carried
    /// out twice, unless [`idempotency`](Self::idempotency) says otherwise. Their method is always
    /// POST, and decides nothing. The deadline of a call (`grpc-timeout`) is the deadline of its
    /// operation. Each attempt carries the time left.
    ///
    /// The inner service gets [`Replayed`](crate::Replayed) bodies. For a tonic channel put
    /// `.map_request(|call: Request<Replayed<Body>>| call.map(Body::new))` between the layer and
    /// the channel.
    pub fn grpc(strategy: S) -> Self {
        RetryLayer::shared(Arc::new(strategy), GrpcResults::new()).replay(Buffered::up_to(LIMIT))
    }
}
