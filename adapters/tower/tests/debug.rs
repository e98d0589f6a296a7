//! What the public types print.

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kit::Shown;
use paceline::{
    Failure, RetryQuota, SendLimiter, SendRate, SendSet, Standard, Timestamp,
    classify::RefusalClassifier, law::PacedSettings, set::Weights,
};
use paceline_tower::{
    BoxError, Buffered, Classify, Clones, Conclude, GrpcResults, HttpRequests, HttpResults,
    QuotaBudget, ReadBodies, Refused, Replay, RetryLayer, RetryPolicy, SendRateLayer, SendSetLayer,
};
use tower::{Layer, ServiceExt, service_fn};

/// Hands the outcome on instead of the response.
#[derive(Clone, Copy)]
struct Outcomes;

impl<Res, E> Classify<Res, E> for Outcomes {
    type Answer<O: Conclude> = Option<O>;

    fn classify(&self, _: Result<&Res, &E>) -> Option<Failure> {
        None
    }

    fn answer<O: Conclude>(&self, _: Res, outcome: Option<O>) -> Option<O> {
        outcome
    }
}

/// A service that prints.
#[derive(Debug)]
struct Inner;

async fn answered(_: u32) -> Result<Response<Full<Bytes>>, BoxError> {
    Ok(Response::new(Full::from("x")))
}

#[tokio::test]
async fn every_public_type_prints_in_one_line_of_values() {
    let mut shown = Shown::default();
    let retries = RetryLayer::new(Standard::new(), Outcomes);
    shown.add(&retries);
    shown.add(&retries.layer(Inner));
    let mut service = retries.layer(service_fn(answered).map_response(|_| ()));
    shown.add(&tower::Service::call(&mut service, 1));
    shown.add(
        &service
            .oneshot(1)
            .await
            .expect("an answer")
            .expect("its outcome"),
    );
    let grpc = RetryLayer::new(Standard::new(), GrpcResults::new());
    let response = grpc.layer(service_fn(answered)).oneshot(1).await;
    shown.add(response.expect("an answer").body());

    let fixed = PacedSettings::fixed(10, Duration::from_secs(1)).expect("in range");
    let rate = Arc::new(SendRate::paced(fixed, Timestamp::ZERO));
    let rated = SendRateLayer::new(SendLimiter::new(rate).clock(Timestamp::ZERO), Outcomes);
    shown.add(&rated);
    shown.add(&rated.layer(Inner));
    let mut service = rated.layer(service_fn(answered));
    shown.add(&tower::Service::call(&mut service, 1));
    shown.add(
        &service
            .oneshot(1)
            .await
            .expect("an answer")
            .expect("its outcome"),
    );
    let set = || {
        SendLimiter::new(SendSet::new([Arc::new(SendRate::paced(
            fixed,
            Timestamp::ZERO,
        ))]))
    };
    let weights = |_: &u32| Weights::from([1]);
    let rated_by_set = SendSetLayer::new(set().clock(Timestamp::ZERO), Outcomes, weights);
    shown.add(&rated_by_set);
    shown.add(&rated_by_set.layer(Inner));
    let service = rated_by_set.layer(service_fn(answered));
    shown.add(
        &service
            .oneshot(1)
            .await
            .expect("an answer")
            .expect("its outcome"),
    );
    let refusing = rated.within(Duration::ZERO).layer(service_fn(answered));
    let refused = refusing.oneshot(1).await.expect_err("the token is gone");
    shown.add(refused.downcast_ref::<Refused>().expect("by the rate"));

    let request = Request::new(Full::<Bytes>::from("a secret"));
    let body = Buffered::up_to(9).sendable(request).into_body();
    assert_eq!(
        format!("{body:?}"),
        "Replayed { read: 8, is_whole: true, .. }"
    );
    shown.add(&body);
    shown.add(&Buffered::up_to(9));
    let codes = GrpcResults::new().retrying(10);
    assert_eq!(format!("{codes:?}"), "GrpcResults([10, 14])");
    shown.add(&codes);
    shown.add(&RetryPolicy::new(Standard::new(), Outcomes));
    shown.add(&QuotaBudget::new(Arc::new(RetryQuota::new(20))));
    shown.add(&Clones);
    shown.add(&HttpRequests);
    shown.add(&HttpResults::new());
    let bodies = ReadBodies::new(RefusalClassifier::new());
    shown.add(&bodies);
    shown.add(&bodies.layer(Inner));
    shown.check(env!("CARGO_MANIFEST_DIR"));
}
