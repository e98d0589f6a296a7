//! Batches of deletes of which a service on loopback refuses some keys.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use std::sync::Mutex;

use http::Response;
use kit::{OK, Reply, Server};
use paceline::{Adaptive, RetryStrategy as _, TokioClock};
use paceline_opendal::{Lanes, PacingLayer};
use support::{operator, standard};

/// Starts a server that takes the first `takes` keys of each request, and notes how many keys each
/// request had.
async fn server(takes: usize, asked: Arc<Mutex<Vec<usize>>>) -> Server {
    Server::replying(move |_, request| {
        let body = String::from_utf8_lossy(&request.body);
        let keys = body.split("<Key>").skip(1);
        let keys: Vec<_> = keys
            .filter_map(|key| Some(key.split_once('<')?.0.to_owned()))
            .collect();
        let mut asked = asked.lock().expect("no test panicked in here");
        asked.push(keys.len().max(1)); // a single key is in no body
        let refused = keys.iter().skip(takes).map(|key| {
            format!("<Error><Key>{key}</Key><Code>SlowDown</Code><Message>m</Message></Error>")
        });
        let body: String = refused.collect();
        let body = format!("<DeleteResult>{body}</DeleteResult>");
        let status = if keys.is_empty() { 204 } else { 200 };
        let response = Response::builder().status(status);
        let reply = Reply::Ok(response.body(body.into()).expect("a response"));
        async move { reply }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn refused_keys_alone_are_sent_again_and_each_send_counts_once() {
    let asked = Arc::<Mutex<Vec<usize>>>::default();
    let server = server(3, asked.clone()).await;
    let strategy = Adaptive::builder().bulk();
    let strategy = strategy.clock(Arc::new(TokioClock::new())).build();
    let strategy = Arc::new(strategy.expect("in range"));
    let lanes = Lanes::shared(strategy.clone(), strategy.clone());
    let operator = operator(&server, PacingLayer::by(move |_| lanes.clone()));
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    operator.delete_iter(keys).await.expect("they are gone");
    let asked = asked.lock().expect("no test panicked in here").clone();
    assert_eq!(asked, [8, 5, 2]);
    assert_eq!(strategy.snapshot().counts.throttled, 2);
}

/// What is cut, or is no answer to a batch, says nothing, and reaches the service as it is.
#[tokio::test]
async fn an_answer_that_cannot_be_read_counts_as_done() {
    for body in [
        "<DeleteResult><Error><Key>a</Key><Code>SlowDown</Code>",
        "SlowDown",
    ] {
        let server = Server::with(&[OK.body(body)]).await;
        let (layer, strategy) = standard();
        let deleted = operator(&server, layer).delete_iter(["a", "b"]).await;
        deleted.expect_err("it is no answer");
        assert_eq!(server.methods(), "POST");
        assert_eq!(strategy.snapshot().counts.throttled, 0);
    }
}
