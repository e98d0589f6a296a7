//! What a healthy request costs in allocations, beside a layer that does nothing.

use http::{Request, Response};
use opendal::{
    Buffer, HttpBody, HttpTransport, HttpTransporter, OperationContext, Operator, Result,
    raw::{Layer, Servicer},
    services::S3,
};
use paceline::{Adaptive, Standard};
use paceline_opendal::PacingLayer;

/// Answers at once that all is well.
struct Well;

impl HttpTransport for Well {
    async fn fetch(&self, _: Request<Buffer>) -> Result<Response<HttpBody>> {
        let nothing = bytes::Bytes::new();
        let body = HttpBody::new(
            futures_util::stream::iter([Ok(Buffer::from(nothing))]),
            Some(0),
        );
        Ok(Response::new(body))
    }
}

/// Keeps a copy of each request while it is sent.
#[derive(Clone, Debug)]
struct Copying;

struct Copies(HttpTransporter);

impl HttpTransport for Copies {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        self.0.fetch(request.clone()).await
    }
}

impl Layer for Copying {
    fn apply_context(&self, _: Servicer, inner: OperationContext) -> OperationContext {
        let transport = Copies(inner.http_transport().clone());
        inner.with_http_transport(HttpTransporter::new(transport))
    }
}

/// Counts the allocations of one request, once everything is warm.
fn allocations(layer: impl Layer) -> u64 {
    let service = S3::default()
        .endpoint("http://localhost")
        .bucket("logs")
        .region("us-east-1")
        .skip_signature()
        .disable_config_load()
        .disable_ec2_metadata();
    let well = OperationContext::new().with_http_transport(HttpTransporter::new(Well));
    let operator = Operator::new(service)
        .expect("a service")
        .with_context(well)
        .layer(layer);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let write = || {
        runtime
            .block_on(operator.write("x", "one"))
            .expect("all is well");
    };
    for _ in 0..3 {
        write();
    }
    allocation_counter::measure(write).count_total
}

#[test]
fn a_healthy_request_allocates_its_copy_and_nothing_else() {
    let copying = allocations(Copying);
    let standard = PacingLayer::new(Standard::new(), Standard::new());
    assert_eq!(allocations(standard), copying);
    let adaptive = PacingLayer::new(Adaptive::paced(), Adaptive::paced());
    assert_eq!(allocations(adaptive), copying);
}
