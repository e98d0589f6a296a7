//! That a layer for `OpenDAL` 0.57 paces and repeats the requests of an operator for S3.

extern crate alloc;

use alloc::sync::Arc;
use std::sync::Mutex;

use http::{Request, Response};
use opendal::{
    Buffer, Error, ErrorKind, Operator, Result,
    layers::HttpClientLayer,
    raw::{HttpBody, HttpClient, HttpFetch},
    services::S3,
};
use paceline::Standard;
use paceline_opendal_0_57::{Lanes, PacingLayer};

/// Fails once with this status, or without an answer, and notes the methods.
#[derive(Clone)]
struct Scripted(Option<u16>, Arc<Mutex<Vec<String>>>);

impl HttpFetch for Scripted {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let mut seen = self.1.lock().expect("no panic in here");
        seen.push(request.method().to_string());
        let status = match (seen.len(), self.0) {
            (1, Some(status)) => status,
            (1, None) => return Err(Error::new(ErrorKind::Unexpected, "lost").set_temporary()),
            _ => 200,
        };
        let body = "<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted><Key>b</Key></Deleted></DeleteResult>";
        let body = futures_util::stream::iter([Ok(Buffer::from(body))]);
        let response = Response::builder().status(status).header("etag", "\"x\"");
        Ok(response
            .body(HttpBody::new(body, None))
            .expect("a response"))
    }
}

/// Returns an operator whose first request fails so, its strategy, and the methods it sent.
fn failing(status: Option<u16>) -> (Operator, Arc<Standard>, Arc<Mutex<Vec<String>>>) {
    let service = S3::default()
        .bucket("logs")
        .region("us-east-1")
        .access_key_id("test")
        .secret_access_key("testtest")
        .disable_config_load()
        .disable_ec2_metadata();
    let strategy = Arc::new(kit::standard().build().expect("in range"));
    let lanes = Lanes::shared(strategy.clone(), strategy.clone());
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let client = HttpClient::with(Scripted(status, seen.clone()));
    let operator = Operator::new(service).expect("a service");
    let operator = operator.layer(HttpClientLayer::new(client));
    let operator = operator.layer(PacingLayer::by(move |_| lanes.clone()));
    (operator.finish(), strategy, seen)
}

fn methods(seen: &Mutex<Vec<String>>) -> String {
    seen.lock().expect("no panic in here").join(" ")
}

#[tokio::test]
async fn requests_are_repeated_and_paid() {
    for failure in [Some(500), Some(503), None] {
        let (operator, strategy, seen) = failing(failure);
        operator.write("a", "one").await.expect("the second time");
        assert_eq!(methods(&seen), "PUT PUT", "{failure:?}");
        assert_eq!(strategy.quota().available(), 500);

        let (operator, _, seen) = failing(failure);
        operator
            .delete_iter(["a", "b"])
            .await
            .expect("the second time");
        assert_eq!(methods(&seen), "POST POST", "{failure:?}");
    }
}

#[tokio::test]
async fn a_condition_is_not_repeated_if_no_answer_came() {
    let (operator, _, seen) = failing(None);
    let write = operator.write_with("a", "one").if_not_exists(true).await;
    write.expect_err("the answer is lost");
    assert_eq!(methods(&seen), "PUT");
}
