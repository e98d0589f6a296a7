//! What takes a turn, what is sent again, and what it costs: an operator for S3 against a server on
//! loopback.

mod support;

use core::{error::Error as _, time::Duration};

use kit::{BROKEN, OK, OVERLOADED, SECOND, SLOW_DOWN, Said, Server, fixed};
use opendal::{ErrorKind, Operator};
use paceline::{Failure, classify::HttpResponseParts, operation::Stop};
use paceline_opendal::PacingLayer;
use support::{operator, standard};
use tokio::time::{Instant, timeout};

/// What says that an object is there.
const OBJECT: Said = OK.body("").header(("content-length", "3"));

/// Ten reads and two writes a second.
fn lanes() -> PacingLayer {
    let lane = |rate| fixed(rate).build().expect("the settings are in range");
    PacingLayer::new(lane(10), lane(2))
}

async fn write(operator: &Operator, path: &str) {
    operator.write(path, "one").await.expect("it is written");
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_stand_in_lines_of_their_own_which_clones_share() {
    let server = Server::with(&[OK.body("").header(("content-length", "0"))]).await;
    let layer = lanes();
    let same = operator(&server, layer.clone());
    let (one, other) = (operator(&server, layer), operator(&server, lanes()));
    let begun = Instant::now();
    let mut ends = Vec::new();
    for operator in [&one, &one, &same, &other] {
        write(operator, "x").await;
        ends.push(begun.elapsed().as_millis() / 10);
    }
    for operator in [&one, &same, &other] {
        operator.stat("x").await.expect("it is there");
        ends.push(begun.elapsed().as_millis() / 10);
    }
    assert_eq!(ends, [0, 50, 100, 100, 100, 110, 110]);
    assert_eq!(server.methods(), "PUT PUT PUT PUT HEAD HEAD HEAD");
}

#[tokio::test(start_paused = true)]
async fn each_page_and_each_part_is_a_turn() {
    let pages = [
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>\
         <Contents><Key>a</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>\
         </ListBucketResult>",
        "<ListBucketResult><IsTruncated>false</IsTruncated>\
         <Contents><Key>b</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>\
         </ListBucketResult>",
    ];
    let server = Server::with(&pages.map(|page| OK.body(page))).await;
    let operator = operator(&server, lanes());
    let begun = Instant::now();
    let listed = operator.list("").await.expect("a list");
    assert_eq!(listed.len(), 2);
    assert_eq!(server.methods(), "GET GET");
    operator.stat("x").await.expect("it is there");
    assert_eq!(begun.elapsed().as_millis() / 10, 20);
}

#[tokio::test]
async fn a_status_decides_whether_it_is_sent_again_and_what_that_costs() {
    // Status, sends, quota left of 500.
    let expected = [
        (200, 1, 500),
        (403, 1, 500),
        (404, 1, 500),
        (408, 3, 472),
        (429, 3, 490),
        (500, 3, 472),
        (501, 1, 500),
        (503, 3, 490),
    ];
    for (code, sends, left) in expected {
        let server = Server::with(&[Said::new(code)]).await;
        let (layer, strategy) = standard();
        let answer = operator(&server, layer).write("x", "one").await;
        let seen = (server.requests(), strategy.quota().available());
        assert_eq!(
            (answer.is_ok(), seen),
            (code == 200, (sends, left)),
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_success_pays_back() {
    for first in [SLOW_DOWN, BROKEN, Said::RESET] {
        let server = Server::with(&[first, OK]).await;
        let (layer, strategy) = standard();
        let answer = operator(&server, layer).write("x", "one").await;
        assert_eq!((answer.is_ok(), server.requests()), (true, 2));
        assert_eq!(strategy.quota().available(), 500);
    }
}

#[tokio::test]
async fn what_never_got_a_connection_was_not_sent() {
    let server = Server::with(&[OK]).await;
    let (layer, strategy) = standard();
    let operator = operator(&server, layer);
    drop(server);
    tokio::task::yield_now().await; // the server's task ends, and with it its socket
    let write = operator.write_with("x", "one").if_not_exists(true).await;
    write.expect_err("it is refused");
    assert_eq!(strategy.quota().available(), 472); // two retries, though it has a condition
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_the_services_word_and_a_wrong_one_is_none() {
    for (value, seconds) in [("7", 7), ("soon", 0), ("-7", 0)] {
        let server = Server::with(&[OVERLOADED.header(("retry-after", value)), OK]).await;
        let (layer, _) = standard();
        let operator = operator(&server, layer);
        let begun = Instant::now();
        write(&operator, "x").await;
        assert_eq!((begun.elapsed().as_secs(), server.requests()), (seconds, 2));
    }
}

#[tokio::test]
async fn a_classifier_of_ones_own_has_the_say() {
    let server = Server::with(&[Said::new(418), OK]).await;
    let (layer, _) = standard();
    let layer = layer.classifier(|answer: &HttpResponseParts<'_>| {
        (answer.status() == 418).then(Failure::transient)
    });
    write(&operator(&server, layer), "x").await;
    assert_eq!(server.requests(), 2);
}

/// S3 may answer 200 before it knows how a copy ends.
#[tokio::test(start_paused = true)]
async fn an_error_in_a_success_is_paced_and_retried() {
    const LATE: Said = OK.body("<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>");
    const COPIED: Said = OK.body(
        "<CopyObjectResult><ETag>\"x\"</ETag>\
         <LastModified>2009-10-12T17:50:30.000Z</LastModified></CopyObjectResult>",
    );
    let server = Server::with(&[OBJECT, LATE, LATE, COPIED]).await;
    let (layer, strategy) = standard();
    let copied = operator(&server, layer).copy("a", "b").await;
    copied.expect("the third is let through");
    assert_eq!(server.methods(), "HEAD PUT PUT PUT");
    // Five for each of the two retries of a throttle, and the last five back.
    assert_eq!(strategy.quota().available(), 495);
    // Given up, it is the service's own error.
    let server = Server::with(&[OBJECT, LATE]).await;
    let (layer, _) = standard();
    let error = operator(&server, layer).copy("a", "b").await;
    let error = error.expect_err("it is refused each time");
    assert_eq!(server.methods(), "HEAD PUT PUT PUT");
    assert!(error.to_string().contains("SlowDown"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_refusal_decides() {
    let final_one = SLOW_DOWN.body(r#"{"error":{"code":"insufficient_quota"}}"#);
    let server = Server::with(&[final_one]).await;
    for (layer, sends) in [(standard().0, 3), (standard().0.deadline(SECOND), 6)] {
        let error = operator(&server, layer).stat("x").await;
        error.expect_err("it is refused");
        // The answer to a HEAD has no body.
        assert_eq!(server.requests(), sends);
    }
    let error = operator(&server, standard().0.deadline(SECOND))
        .read("x")
        .await;
    let error = error.expect_err("it is refused");
    assert!(error.to_string().contains("insufficient_quota"), "{error}");
    assert_eq!(server.requests(), 7);
}

/// The host's own deadline ends all, also a retry that is waited for.
#[tokio::test(start_paused = true)]
async fn a_timeout_of_the_host_ends_the_request() {
    use opendal::layers::TimeoutLayer;

    let waits = OVERLOADED.header(("retry-after", "30"));
    for (answer, sends) in [(Said::NEVER, 1), (waits, 1)] {
        let server = Server::with(&[answer]).await;
        let (layer, strategy) = standard();
        let timeout = TimeoutLayer::new().with_timeout(Duration::from_millis(300));
        let operator = operator(&server, layer).layer(timeout);
        let begun = Instant::now();
        let error = operator.stat("x").await;
        error.expect_err("it takes too long");
        assert_eq!(begun.elapsed().as_millis(), 300);
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(server.requests(), sends);
        assert_eq!(strategy.quota().available(), 500);
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_does_not_fit_leaves_the_answer() {
    let waits = OVERLOADED.header(("retry-after", "30"));
    let server = Server::with(&[waits]).await;
    let operator = operator(&server, standard().0.deadline(SECOND));
    let error = operator.stat("x").await.expect_err("it is refused");
    assert!(error.source().is_none(), "not of the layer: {error:?}");
    assert!(error.to_string().contains("503"), "{error}");
    assert_eq!(server.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_dropped_in_line_gives_the_place_back() {
    let server = Server::with(&[OK]).await;
    let operator = operator(&server, lanes());
    write(&operator, "x").await;
    let begun = Instant::now();
    for _ in 0..4 {
        let write = operator.write("y", "one");
        assert!(timeout(Duration::from_millis(60), write).await.is_err());
    }
    write(&operator, "z").await;
    assert_eq!(
        (begun.elapsed().as_millis() / 10, server.requests()),
        (50, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_does_not_wait_says_so() {
    let refusing = || {
        fixed(10)
            .name("orders")
            .fail_fast(true)
            .build()
            .expect("the settings are in range")
    };
    let server = Server::with(&[OK]).await;
    let operator = operator(&server, PacingLayer::new(refusing(), refusing()));
    write(&operator, "x").await;
    let error = operator
        .write("y", "one")
        .await
        .expect_err("it would have to wait");
    assert_eq!(
        (error.kind(), error.is_temporary()),
        (ErrorKind::RateLimited, true)
    );
    let refused = error
        .source()
        .and_then(|source| source.downcast_ref::<Stop>());
    let refused = refused.expect("its own error");
    assert_eq!(refused.name(), Some("orders"));
    assert!(error.to_string().contains("orders: not sent"), "{error}");
    let wait = refused.wait();
    assert!(wait > Duration::ZERO && wait < SECOND, "{wait:?}");
    assert_eq!(server.methods(), "PUT");
}

#[tokio::test]
async fn inside_of_an_attempt_a_request_is_sent_once() {
    let server = Server::with(&[BROKEN]).await;
    let (layer, strategy) = standard();
    let operator = operator(&server, layer);
    let outer = paceline::operation::OuterAttempt::new();
    let read = paceline::operation::within_async(Some(outer), operator.stat("x"));
    read.await.expect_err("it is broken");
    assert_eq!((server.requests(), strategy.quota().available()), (1, 500));
    operator.stat("x").await.expect_err("it is broken");
    assert_eq!(server.requests(), 4);
}
