//! What a piece of a body costs in allocations: what it costs without the middleware.
#![cfg(feature = "llm")]

use core::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use async_trait::async_trait;
use bytes::Bytes;
use http::Extensions;
use http_body::{Body as HttpBody, Frame};
use paceline_reqwest::ModelPacing;
use reqwest::{Body, Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};

const PIECE: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";

/// So many pieces.
struct Pieces(usize);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<core::result::Result<Frame<Bytes>, Infallible>>> {
        let left = self.0.checked_sub(1);
        Poll::Ready(left.map(|left| {
            self.0 = left;
            Ok(Frame::data(Bytes::from_static(PIECE.as_bytes())))
        }))
    }
}

/// Answers at once with a stream.
struct Streams(usize);

#[async_trait]
impl Middleware for Streams {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        let response = http::Response::builder().header("content-type", "text/event-stream");
        let response = response.body(Body::wrap(Pieces(self.0)));
        Ok(response.expect("a response").into())
    }
}

/// Counts the allocations of reading so many pieces.
fn allocations(pacing: Option<ModelPacing>, pieces: usize) -> u64 {
    let builder = ClientBuilder::new(reqwest::Client::new());
    let builder = match pacing {
        Some(pacing) => builder.with(pacing),
        None => builder,
    };
    let client = builder.with(Streams(pieces)).build();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let request = client.post("http://localhost/").body("{}");
    let mut response = runtime.block_on(request.send()).expect("all is well");
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            while let Some(piece) = response.chunk().await.expect("a piece") {
                assert_eq!(piece.len(), PIECE.len());
            }
        });
    });
    counted.count_total
}

#[test]
fn a_piece_of_a_body_allocates_nothing() {
    let pacing = ModelPacing::per_minute(60_000, 600_000).expect("in range");
    for pieces in [1, 1_000] {
        let without = allocations(None, pieces);
        assert_eq!(allocations(Some(pacing.clone()), pieces), without);
    }
    let seen = pacing.snapshot();
    assert_eq!(seen.without_usage, 2, "both were listened to");
}
