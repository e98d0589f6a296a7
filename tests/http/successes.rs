//! Refusals inside of successes: what each service writes, to the byte, and what it comes to.

use core::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use paceline::{
    Failure, Outcome, Part, RetryAfter, RetrySafety,
    classify::{
        BodyRefusals, Classifier, HttpResponseParts, RefusalClassifier, graphql_cost,
        graphql_limits, pause_after,
    },
    law::{Dimension, Reset},
};

/// shopify.dev, "API limits", GraphQL Admin API.
const SHOPIFY: &str = r#"{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED","documentation":"https://shopify.dev/api/usage/rate-limits"}}],"extensions":{"cost":{"requestedQueryCost":202,"actualQueryCost":null,"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":118,"restoreRate":50.0}}}}"#;
/// docs.github.com, "Rate limits and query limits for the GraphQL API".
const GITHUB: &str = r#"{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for user ID 18112345."}]}"#;
const BULK: &str = r#"{"took":30,"errors":true,"items":[
    {"index":{"_index":"a","_id":"1","status":201,"_shards":{"total":2,"failed":0}}},
    {"index":{"_index":"a","_id":"2","status":429,"error":{"type":"es_rejected_execution_exception","reason":"rejected execution","status":400}}},
    {"create":{"_index":"a","_id":"3","status":409,"error":{"type":"version_conflict_engine_exception"}}},
    {"delete":{"_index":"a","_id":"4","status":503}},
    {"update":{"_index":"a","_id":"5","status":429}}]}"#;

fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = of.iter();
    pairs
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

/// Returns what a 200 with this body is.
fn of_200(
    reader: BodyRefusals,
    body: &str,
    fields: &[(&'static str, &'static str)],
) -> Option<Failure> {
    let headers = headers(fields);
    let parts = HttpResponseParts::new(StatusCode::OK, &headers);
    let parts = parts.with_local_time(Duration::from_secs(1_665_397_625));
    let failure = reader.classify(&parts.with_refusal(body));
    let refused = HttpResponseParts::new(StatusCode::NOT_FOUND, &headers).with_refusal(body);
    assert_eq!(reader.classify(&refused), None, "no success: {body}");
    failure
}

fn wait(failure: &Failure) -> Option<u128> {
    match failure.retry_after()? {
        RetryAfter::AtLeast(span) => Some(span.as_millis()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_request_refused_in_a_200_is_throttled_and_sent_again() {
    use BodyRefusals::{Bybit, Etherscan, GraphQl, Kraken, Slack};
    let bybit = [
        ("x-bapi-limit", "5"),
        ("x-bapi-limit-status", "0"),
        ("x-bapi-limit-reset-timestamp", "1665397625986"),
    ];
    let after = [("retry-after", "30")];
    let none = [].as_slice();
    let cases = [
        (GraphQl, SHOPIFY, none, Some(1_680)), // (202 - 118) points at 50/s
        (
            GraphQl,
            r#"{"errors":[{"message":"Throttled"}]}"#,
            none,
            None,
        ),
        (GraphQl, GITHUB, none, None),
        (GraphQl, GITHUB, &after, Some(30_000)),
        (
            GraphQl,
            r#"{"errors":[{"type":"RATE_LIMIT","code":"graphql_rate_limit","message":"API rate limit already exceeded for user ID 5."}]}"#,
            none,
            None,
        ),
        (
            Slack,
            r#"{"ok":false,"error":"ratelimited"}"#,
            &after,
            Some(30_000),
        ),
        (
            Kraken,
            r#"{"error":["EAPI:Rate limit exceeded"]}"#,
            none,
            None,
        ),
        (
            Kraken,
            r#"{"error":["EOrder:Rate limit exceeded"],"result":{}}"#,
            none,
            None,
        ),
        (
            Kraken,
            r#"{"error":["EService: Throttled: 1665397630"]}"#,
            none,
            Some(5_000),
        ),
        (
            Etherscan,
            r#"{"status":"0","message":"NOTOK","result":"Max calls per sec rate limit reached (5/sec)"}"#,
            none,
            None,
        ),
        (
            Etherscan,
            r#"{"status":"0","message":"NOTOK","result":"Max rate limit reached"}"#,
            none,
            None,
        ),
        (
            Etherscan,
            r#"{"status":"0","message":"NOTOK","result":"Max rate limit reached, please use API Key for higher rate limit"}"#,
            none,
            None,
        ),
        (
            Bybit,
            r#"{"retCode":10006,"retMsg":"Too many visits. Exceeded the API Rate Limit.","result":{},"time":1665397625012}"#,
            &bybit,
            Some(974),
        ),
    ];
    for (reader, body, fields, hint) in cases {
        let failure = of_200(reader, body, fields).expect(body);
        assert!(failure.is_throttle(), "{body}");
        assert_eq!(failure.retry_safety(), RetrySafety::Yes, "{body}");
        assert_eq!((failure.part(), wait(&failure)), (None, hint), "{body}");
        for end in 0..body.len() {
            assert_eq!(
                of_200(reader, &body[..end], fields),
                None,
                "cut: {}",
                &body[..end]
            );
        }
    }
}

#[test]
fn a_success_that_only_looks_like_a_refusal_is_none() {
    use BodyRefusals::{Bybit, ElasticsearchBulk, Etherscan, GraphQl, Kraken, Slack};
    let cases = [
        (
            GraphQl,
            r#"{"data":{"errors":[{"type":"RATE_LIMITED"}],"code":"THROTTLED"}}"#,
        ),
        (
            GraphQl,
            r#"{"errors":[{"message":"Field 'x' is THROTTLED","extensions":{"code":"undefinedField"}}]}"#,
        ),
        (Slack, r#"{"ok":true,"messages":[{"error":"ratelimited"}]}"#),
        (Slack, r#"{"ok":false,"error":"channel_not_found"}"#),
        (
            Kraken,
            r#"{"error":[],"result":{"error":["EAPI:Rate limit exceeded"]}}"#,
        ),
        (
            Etherscan,
            r#"{"status":"1","message":"OK","result":"59562"}"#,
        ),
        (Bybit, r#"{"retCode":0,"result":{"retCode":10006}}"#),
        (
            ElasticsearchBulk,
            r#"{"errors":false,"items":[{"index":{"status":201}}]}"#,
        ),
        (ElasticsearchBulk, "[1,2,3]"),
        (ElasticsearchBulk, "<html>"),
    ];
    for (reader, body) in cases {
        assert_eq!(of_200(reader, body, &[]), None, "{body}");
    }
}

#[test]
fn a_limit_of_a_day_is_not_waited_for() {
    let body = r#"{"status":"0","message":"NOTOK","result":"Max daily rate limit reached. 110000 (100%) of 100000 day/limit"}"#;
    let failure = of_200(BodyRefusals::Etherscan, body, &[]).expect("a refusal");
    assert_eq!(failure.retry_safety(), RetrySafety::No);
}

#[test]
fn a_batch_says_how_many_of_how_many_and_which_to_send_again() {
    use BodyRefusals::{
        DynamoDbBatch, ElasticsearchBulk, FirehosePutRecordBatch, KinesisPutRecords, SqsBatch,
    };
    let kinesis = r#"{"FailedRecordCount":2,"Records":[{"SequenceNumber":"21269319989900637946712965403778482371","ShardId":"shardId-000000000001"},{"ErrorCode":"ProvisionedThroughputExceededException","ErrorMessage":"Rate exceeded for shard shardId-000000000001 in stream exampleStreamName under account 111111111111."},{"ErrorCode":"InternalFailure","ErrorMessage":"Internal service failure."},{"ErrorCode":null,"ShardId":"s"},{"ErrorCode":""}]}"#;
    let firehose = r#"{"FailedPutCount":2,"Encrypted":false,"RequestResponses":[{"ErrorCode":"ServiceUnavailableException","ErrorMessage":"Slow down."},{"RecordId":"a"},{"ErrorCode":"InternalFailure"}]}"#;
    let sqs = r#"{"Failed":[{"Code":"InvalidMessageContents","Id":"a","SenderFault":true},{"Code":"RequestThrottled","Id":"b","SenderFault":true},{"Code":"InternalError","Id":"c","SenderFault":false},{"SenderFault":false,"Code":"ThrottlingException","Id":"d"}],"Successful":[{"Id":"e","MessageId":"1"}]}"#;
    let write = r#"{"UnprocessedItems":{"Forum":[{"PutRequest":{"Item":{"Name":{"L":[{"S":"a"},{"S":"b"}]}}}},{"DeleteRequest":{"Key":{"Name":{"S":"c"}}}}],"Thread":[{"PutRequest":{"Item":{}}}]},"ConsumedCapacity":[{"TableName":"Forum"}]}"#;
    let get = r#"{"Responses":{"Forum":[{"Name":{"S":"a"}}]},"UnprocessedKeys":{"Forum":{"Keys":[{"Name":{"S":"b"}},{"Name":{"S":"c"}}],"AttributesToGet":["Name"]}}}"#;
    let cases = [
        (ElasticsearchBulk, BULK, (2, 5), vec![1, 3, 4]),
        (KinesisPutRecords, kinesis, (1, 5), vec![1, 2]),
        (FirehosePutRecordBatch, firehose, (1, 3), vec![0, 2]),
        (SqsBatch, sqs, (2, 5), vec![1, 2, 3]),
        (DynamoDbBatch { sent: 25 }, write, (3, 25), vec![]),
        (DynamoDbBatch { sent: 3 }, get, (2, 3), vec![]),
        (DynamoDbBatch { sent: 0 }, get, (2, 2), vec![]),
    ];
    for (reader, body, (refused, items), again) in cases {
        let read = reader.read(body.as_bytes()).expect(body);
        assert_eq!((read.refused, read.items), (refused, items), "{body}");
        assert_eq!(read.again, again, "{body}");
        let failure = of_200(reader, body, &[]).expect("some were refused");
        assert_eq!(Outcome::from(&failure), Part::outcome(refused, items));
        let once = refused < items;
        let safety = if once {
            RetrySafety::No
        } else {
            RetrySafety::Yes
        };
        assert_eq!(failure.retry_safety(), safety, "a part is not sent again");
        assert_eq!(reader.read(&body.as_bytes()[..body.len() - 1]), None, "cut");
    }
    let none = br#"{"UnprocessedItems":{}}"#;
    let read = DynamoDbBatch { sent: 25 }.read(none).expect("whole");
    assert_eq!((read.refused, read.failure()), (0, None));
}

#[test]
fn a_member_that_stands_twice_counts_once() {
    let body = br#"{"items":[{"index":{"status":429,"status":429}},{"index":{"status":201}}]}"#;
    let read = BodyRefusals::ElasticsearchBulk.read(body).expect("JSON");
    assert_eq!((read.refused, read.items, read.again), (1, 2, vec![0]));
}

#[test]
fn only_short_json_of_a_success_is_wanted() {
    let wants = |status: u16, kind: Option<&str>, length: &str| {
        let mut response = Response::builder().status(status);
        if let Some(kind) = kind {
            response = response.header("content-type", kind);
        }
        let response = response.header("content-length", length).body(());
        let response = response.expect("a response");
        BodyRefusals::GraphQl.wants_body(&HttpResponseParts::of(&response))
    };
    assert!(wants(200, Some("application/json; charset=utf-8"), "65536"));
    assert!(wants(200, Some("application/graphql-response+JSON"), "1"));
    assert!(wants(200, Some("application/x-amz-json-1.1"), "1"));
    assert!(wants(200, None, "1"));
    assert!(!wants(200, Some("text/csv"), "1"));
    assert!(!wants(200, Some("application/json"), "65537"));
    assert!(!wants(500, Some("application/json"), "1"));
    let chain = (BodyRefusals::GraphQl, RefusalClassifier::new());
    let limited = Response::builder()
        .status(429)
        .body(())
        .expect("a response");
    assert!(chain.wants_body(&HttpResponseParts::of(&limited)));
}

#[test]
fn graphql_declares_points_and_says_what_a_query_cost() {
    let fields = headers(&[("date", "Sun, 06 Nov 1994 08:49:37 GMT")]);
    let parts = HttpResponseParts::new(StatusCode::OK, &fields);
    assert!(graphql_limits(&parts).is_empty(), "no body");
    let throttled = parts.with_refusal(SHOPIFY);
    let limits = graphql_limits(&throttled);
    let report = limits.iter().next().expect("a limit");
    assert_eq!(
        (report.counts(), report.remaining()),
        (Dimension::Tokens, 118)
    );
    let full = Duration::from_millis(17_640); // (1000 - 118) points at 50/s
    assert_eq!(report.declared_reset(), Some(Reset::In(full)));
    assert_eq!(graphql_cost(&throttled), None, "it was refused");
    let github = r#"{"data":{"viewer":{"login":"octocat"},"rateLimit":{"limit":5000,"cost":1,"remaining":4999,"resetAt":"2026-11-22T08:30:00Z"}}}"#;
    let read = parts.with_refusal(github);
    let limits = graphql_limits(&read);
    let report = limits.iter().next().expect("a limit");
    assert_eq!(
        (report.counts(), report.remaining()),
        (Dimension::Tokens, 4_999)
    );
    let at = Duration::from_secs(1_795_336_200);
    assert_eq!(report.declared_reset(), Some(Reset::At(at)));
    assert_eq!(limits.date(), Some(Duration::from_secs(784_111_777)));
    assert_eq!(graphql_cost(&read), Some(1));
}

#[test]
fn a_success_may_ask_for_a_pause() {
    let asks = |status: u16, fields: &[(&'static str, &'static str)], body: &str| {
        let headers = headers(fields);
        let status = StatusCode::from_u16(status).expect("a status");
        let parts = HttpResponseParts::new(status, &headers).with_refusal(body);
        pause_after(&parts).map(|span| span.as_secs())
    };
    let after = [("retry-after", "14")];
    assert_eq!(asks(200, &after, ""), Some(14), "Azure DevOps");
    assert_eq!(asks(204, &[("backoff", "30")], ""), Some(30), "Zotero");
    let stack_exchange =
        r#"{"items":[{"backoff":3}],"has_more":true,"backoff":10,"quota_max":300}"#;
    assert_eq!(asks(200, &[], stack_exchange), Some(10));
    assert_eq!(asks(200, &[], r#"{"items":[{"backoff":3}]}"#), None);
    assert_eq!(asks(200, &[], r#"{"backoff":10,"#), None, "cut");
    assert_eq!(asks(200, &[("retry-after", "0")], ""), None);
    assert_eq!(asks(202, &after, ""), None, "when to ask for the result");
    assert_eq!(asks(429, &after, stack_exchange), None);
}
