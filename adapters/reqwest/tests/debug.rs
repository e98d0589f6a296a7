//! What the public types print, those of every feature.
#![cfg(feature = "llm")]

use core::time::Duration;
use std::net::TcpListener;

use kit::Shown;
use paceline::Standard;
use paceline_reqwest::{
    BodyNotRepeatable, ClientService, DeadlinePassed, ModelLimit, ModelPacing, OneShotBody, Pacing,
    Tokens,
};
use reqwest::{Body, Client};
use reqwest_middleware::{ClientBuilder, Error};

#[tokio::test]
async fn every_public_type_prints_in_one_line_of_values() {
    let pacing = Pacing::new(Standard::new()).deadline(Duration::from_secs(9));
    assert_eq!(
        format!("{pacing:?}"),
        "Pacing { strategies: Standard { max_attempts: 3, quota: 500, .. }, one_shot: SendOnce, \
         deadline: Some(9s), max_retry_after: None, .. }"
    );
    let mut shown = Shown::default();
    shown.add(&pacing);
    shown.add(&OneShotBody::Refuse);
    let model = ModelPacing::per_minute(500, 200_000).expect("in range");
    shown.add(&model);
    shown.add(&model.snapshot());
    shown.add(&ModelLimit::InputTokens);
    shown.add(&Tokens::new(7, 4));
    let client = ClientBuilder::new(Client::new());
    let other = ClientBuilder::new(Client::new()).build();
    shown.add(&ClientService::new(other, ()));
    let client = client
        .with(pacing.one_shot_body(OneShotBody::Refuse))
        .build();
    let pieces = futures_util::stream::iter([Ok::<_, std::io::Error>("a")]);
    let request = client
        .post("http://127.0.0.1:9/")
        .body(Body::wrap_stream(pieces));
    let Error::Middleware(refused) = request.send().await.expect_err("it is a stream") else {
        panic!("it was not sent");
    };
    shown.add(
        refused
            .downcast_ref::<BodyNotRepeatable>()
            .expect("it is a stream"),
    );
    // Connects, and is never answered.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", silent.local_addr().expect("it is bound"));
    let pacing = Pacing::new(Standard::new()).deadline(Duration::from_millis(20));
    let client = ClientBuilder::new(Client::new()).with(pacing).build();
    let Error::Middleware(late) = client.get(url).send().await.expect_err("it is late") else {
        panic!("it was answered");
    };
    shown.add(late.downcast_ref::<DeadlinePassed>().expect("it is late"));
    shown.check(env!("CARGO_MANIFEST_DIR"));
}
