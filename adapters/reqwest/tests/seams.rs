//! What the middleware hands on besides the outcome: weights, declared limits, true costs.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use kit::{OK, SECOND, Server};
use paceline::{
    Adaptive, RetryStrategy as _, Timestamp,
    law::{LimitReport, LimitReports, PacedSettings},
    set::Weights,
};
use paceline_reqwest::Pacing;
use support::{client, status};

/// One token a second, of which the bucket holds ten, at a time that stands still.
fn ten_tokens() -> Arc<Adaptive> {
    let settings = PacedSettings::fixed(1, SECOND).expect("in range");
    let settings = settings.to_builder().burst(Duration::from_secs(10)).build();
    let builder = Adaptive::builder().paced(settings.expect("in range"));
    let builder = builder.clock(Arc::new(Timestamp::ZERO));
    Arc::new(builder.build().expect("in range"))
}

/// Returns the tokens that are left, in thousandths.
fn left(strategy: &Adaptive) -> String {
    let snapshot = strategy.send_rate().snapshot(strategy.clock().now());
    format!("{:.3}", snapshot.available)
}

#[tokio::test]
async fn a_request_takes_its_weight_and_costs_what_its_response_says() {
    let says = OK.header(("x-cost", "2"));
    let server = Server::with(&[says]).await;
    let strategy = ten_tokens();
    let send = async |pacing| {
        let request = client(pacing).get(&server.url);
        let request = request.with_extension(Weights::from([5]));
        assert_eq!(status(request.send().await), 200);
    };
    send(Pacing::shared(strategy.clone())).await;
    assert_eq!(left(&strategy), "5.000");
    let pacing = Pacing::shared(strategy.clone()).costs_by(|response| {
        let cost = response.headers().get("x-cost")?.to_str().ok()?;
        Some([cost.parse().ok()?].into())
    });
    send(pacing).await;
    assert_eq!(left(&strategy), "3.000");
}

#[tokio::test]
async fn declared_limits_reach_the_strategy() {
    let says = OK.header(("ratelimit", "\"hour\";r=7;t=60"));
    let server = Server::with(&[says]).await;
    let declared = async |pacing: fn(Pacing) -> Pacing| {
        let strategy = Arc::new(Adaptive::declared());
        let client = client(pacing(Pacing::shared(strategy.clone())));
        assert_eq!(status(client.get(&server.url).send().await), 200);
        let limit = strategy
            .send_rate()
            .snapshot(strategy.clock().now())
            .declared;
        limit.map(|limit| format!("{:.0} by {}", limit.remaining, limit.policy))
    };
    assert_eq!(
        declared(|pacing| pacing).await.as_deref(),
        Some("7 by hour")
    );
    let by_another = |pacing: Pacing| {
        pacing.limits_by(|_| LimitReports::from(LimitReport::new(3).limit(9).window(SECOND)))
    };
    assert_eq!(declared(by_another).await.as_deref(), Some("3 by "));
}
