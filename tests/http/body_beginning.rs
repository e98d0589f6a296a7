//! Reading the beginning of a response's body for a classifier: how much, and for how long.

use core::{
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use paceline::{
    RetrySafety,
    classify::{
        BodyBeginning, BodyEnd, HttpResponseParts, MAX_REFUSAL_BODY, RefusalClassifier,
        may_fail_late,
    },
    wait::DefaultSleep,
};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

type Piece = Option<Result<&'static [u8], &'static str>>;

/// Reads pieces that are there at once; after the last no other ever comes.
async fn read(pieces: &[Piece], left: Option<Duration>) -> BodyBeginning<&'static str> {
    let mut pieces = pieces.iter().copied();
    let poll_piece = |_: &mut Context<'_>| match pieces.next() {
        Some(piece) => Poll::Ready(piece),
        None => Poll::Pending,
    };
    BodyBeginning::read(DefaultSleep::new(), left, poll_piece).await
}

/// Returns whether a 429 with this body is sent again.
fn again(beginning: &BodyBeginning<&str>) -> RetrySafety {
    let headers = HeaderMap::new();
    let parts = HttpResponseParts::new(StatusCode::TOO_MANY_REQUESTS, &headers);
    let failure = beginning.classify(&RefusalClassifier::new(), parts);
    failure.expect("a refusal").retry_safety()
}

#[tokio::test(start_paused = true)]
async fn a_body_is_read_to_its_end_or_its_failure() {
    let whole = read(&[Some(Ok(b"a")), Some(Ok(b"bc")), None], None).await;
    assert_eq!((&*whole.bytes, whole.end), (&b"abc"[..], BodyEnd::Whole));
    let failed = read(&[Some(Ok(b"a")), Some(Err("lost"))], Some(SECOND)).await;
    assert_eq!(again(&failed), RetrySafety::Yes);
    assert_eq!(
        (&*failed.bytes, failed.end),
        (&b"a"[..], BodyEnd::Failed("lost"))
    );
    let last = read(
        &[
            Some(Ok(br#"{"error":{"code":"insufficient_quota"}}"#)),
            None,
        ],
        None,
    )
    .await;
    assert_eq!(again(&last), RetrySafety::No, "the body says so");
}

#[tokio::test(start_paused = true)]
async fn no_more_is_read_than_a_classifier_gets() {
    const HALF: &[u8] = &[b'x'; MAX_REFUSAL_BODY / 2];
    let half = Some(Ok(HALF));
    // At the limit it is not known yet whether there is more.
    let fits = read(&[half, half, None], None).await;
    assert_eq!(
        (fits.bytes.len(), fits.end),
        (MAX_REFUSAL_BODY, BodyEnd::Whole)
    );
    let long = read(&[half, half, half, half], None).await;
    assert_eq!(
        (long.bytes.len(), &long.end),
        (3 * HALF.len(), &BodyEnd::Long)
    );
    assert_eq!(again(&long), RetrySafety::Yes);
}

#[tokio::test(start_paused = true)]
async fn reading_ends_a_sixteenth_before_the_attempt() {
    let begun = Instant::now();
    let late = read(&[Some(Ok(b"a"))], Some(16 * SECOND)).await;
    assert_eq!(begun.elapsed(), 15 * SECOND);
    assert_eq!((&*late.bytes, &late.end), (&b"a"[..], &BodyEnd::Late));
    assert_eq!(again(&late), RetrySafety::No, "there is no time left");
}

#[test]
fn only_copies_and_the_ends_of_uploads_fail_late() {
    let copy: HeaderMap = [("x-amz-copy-source", "/b/k")]
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .into_iter()
        .collect();
    let none = HeaderMap::new();
    for (method, query, headers, late) in [
        ("PUT", None, &copy, true),
        ("PUT", Some("partNumber=1&uploadId=x"), &copy, true),
        ("PUT", Some("partNumber=1&uploadId=x"), &none, false),
        ("GET", None, &copy, false),
        ("POST", Some("uploadId=x"), &none, true),
        ("POST", Some("a=b&uploadId=x"), &none, true),
        ("POST", Some("uploads"), &none, false),
        ("POST", Some("a=uploadId=x"), &none, false),
        ("POST", None, &none, false),
    ] {
        let method = method.parse().unwrap();
        assert_eq!(
            may_fail_late(&method, query, headers),
            late,
            "{method} {query:?}"
        );
    }
}
