//! What a healthy request costs in allocations, beside a middleware that does nothing.

mod support;

use async_trait::async_trait;
use http::Extensions;
use paceline::{Adaptive, Standard};
use paceline_reqwest::Pacing;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use support::bare;

/// Answers at once that all is well.
struct Well;

#[async_trait]
impl Middleware for Well {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        Ok(http::Response::new("").into())
    }
}

/// Sends, and keeps a copy meanwhile if told to.
struct Idle {
    copies: bool,
}

#[async_trait]
impl Middleware for Idle {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let _copy = if self.copies {
            request.try_clone()
        } else {
            None
        };
        next.run(request, extensions).await
    }
}

/// Counts the allocations of one request, once everything is warm.
fn allocations(middleware: impl Middleware) -> u64 {
    let client = ClientBuilder::new(bare().build().expect("a client"))
        .with(middleware)
        .with(Well)
        .build();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let get = || {
        let request = client
            .get("http://localhost/a/path")
            .header("accept", "text/plain");
        let request = request.header("x-mark", "7").body("one of these");
        runtime.block_on(request.send()).expect("all is well");
    };
    for _ in 0..3 {
        get();
    }
    allocation_counter::measure(get).count_total
}

#[test]
fn a_healthy_request_allocates_its_copy_and_nothing_else() {
    let (idle, copying) = (Idle { copies: false }, Idle { copies: true });
    let (idle, copying) = (allocations(idle), allocations(copying));
    let by_host = || Pacing::by_host(|_| Adaptive::paced());
    assert_eq!(allocations(Pacing::new(Standard::new())), copying);
    assert_eq!(allocations(Pacing::new(Adaptive::paced())), copying);
    assert_eq!(allocations(by_host()), copying);
    let once = Standard::builder()
        .max_attempts(1)
        .build()
        .expect("in range");
    assert_eq!(allocations(Pacing::new(once)), idle);
    assert!(idle < copying, "{idle} {copying}");
    println!("{idle} without, {copying} with a copy");
}
