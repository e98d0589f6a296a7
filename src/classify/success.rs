//! Refusals inside of successes: one table of the places where services write them.

#[cfg(feature = "http")]
mod answer;
#[cfg(feature = "http")]
mod graphql;
#[cfg(feature = "http")]
mod pause;

use alloc::vec::Vec;

use super::json::{self, Step};
use crate::Failure;

#[cfg(feature = "http")]
pub use self::{
    graphql::{graphql_cost, graphql_limits},
    pause::pause_after,
};

/// Reads refusals that services send with status 200: of a whole request, or of some items of a
/// batch.
///
/// With the feature `http` it is a classifier of successes, to be paired with `RefusalClassifier`.
/// A request that was refused whole is throttling. A batch that was refused in part is recorded
/// with the refused part, and not retried. [`read`](Self::read) says which items to send again.
///
/// | service | whole request refused, if |
/// |---|---|
/// | [`GraphQl`](Self::GraphQl) | `errors[].extensions.code`, `errors[].type` is `THROTTLED`, `RATE_LIMITED` or the like |
/// | [`Slack`](Self::Slack) | `error` is `ratelimited` |
/// | [`Kraken`](Self::Kraken) | `error[]` begins with `EAPI:Rate limit exceeded` or the like |
/// | [`Etherscan`](Self::Etherscan) | `result` begins with `Max rate limit reached` or the like |
/// | [`Bybit`](Self::Bybit) | `retCode` is 10006 or 10018 |
///
/// | batch | item refused, if | item to be sent again as well, if |
/// |---|---|---|
/// | [`ElasticsearchBulk`](Self::ElasticsearchBulk) | `items[].*.status` is 429 | it is 500 or above |
/// | [`KinesisPutRecords`](Self::KinesisPutRecords) | `Records[].ErrorCode` is `ProvisionedThroughputExceededException` | it is another |
/// | [`FirehosePutRecordBatch`](Self::FirehosePutRecordBatch) | `RequestResponses[].ErrorCode` is `ServiceUnavailableException` | it is another |
/// | [`SqsBatch`](Self::SqsBatch) | `Failed[].Code` is `RequestThrottled` or the like | `Failed[].SenderFault` is `false` |
/// | [`DynamoDbBatch`](Self::DynamoDbBatch) | it is in `UnprocessedItems` or `UnprocessedKeys` | |
///
/// # Examples
///
/// ```
/// use paceline::classify::BodyRefusals;
///
/// let body = br#"{"FailedRecordCount": 1, "Records": [{"SequenceNumber": "21"},
///     {"ErrorCode": "ProvisionedThroughputExceededException"}, {"SequenceNumber": "22"}]}"#;
/// let read = BodyRefusals::KinesisPutRecords.read(body).unwrap();
/// assert_eq!((read.refused, read.items, read.again), (1, 3, vec![1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyRefusals {
    /// GraphQL: [Shopify](https://shopify.dev/docs/api/usage/limits),
    /// [GitHub](https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api),
    /// and other services with their error codes.
    GraphQl,
    /// [Slack's Web API](https://docs.slack.dev/apis/web-api/rate-limits).
    Slack,
    /// [Kraken's REST API](https://docs.kraken.com/api/docs/guides/spot-rest-ratelimits).
    Kraken,
    /// [Etherscan](https://docs.etherscan.io/resources/common-error-messages), and explorers of
    /// other chains with its software. A day's limit is not retried.
    Etherscan,
    /// [Bybit's V5 API](https://bybit-exchange.github.io/docs/v5/rate-limit).
    Bybit,
    /// The [bulk API](https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk) of
    /// Elasticsearch and `OpenSearch`.
    ElasticsearchBulk,
    /// Kinesis Data Streams,
    /// [`PutRecords`](https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html).
    KinesisPutRecords,
    /// Data Firehose,
    /// [`PutRecordBatch`](https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecordBatch.html).
    FirehosePutRecordBatch,
    /// The batches of SQS, for example
    /// [`SendMessageBatch`](https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html).
    SqsBatch,
    /// DynamoDB,
    /// [`BatchWriteItem`](https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html)
    /// and `BatchGetItem`.
    DynamoDbBatch {
        /// How many items the request had, which the answer does not say.
        sent: u32,
    },
}

/// How much of a request a service refused, as [`BodyRefusals::read`] finds it in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedItems {
    /// How many items the service throttled.
    pub refused: u32,
    /// How many items the request had: 1 if it is no batch.
    pub items: u32,
    /// The indices of the items to send again, in ascending order. These are the throttled items,
    /// and the items that failed by the service's fault.
    ///
    /// An index is a position among the items of the request. For
    /// [`SqsBatch`](BodyRefusals::SqsBatch) it is a position in `Failed`, whose `Id` names the
    /// item. For [`DynamoDbBatch`](BodyRefusals::DynamoDbBatch) the list is empty: the answer
    /// returns the items themselves, in the form to be sent again.
    pub again: Vec<u32>,
}

impl RefusedItems {
    /// Returns the failure to record, or `None` if the service throttled no item.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        match self.refused {
            0 => None,
            refused => Some(Failure::partly_throttled(refused, self.items)),
        }
    }
}

/// Where a service writes its refusals.
struct Table {
    /// The paths of the items of a batch.
    items: &'static [Path],
    /// Values that mark an item as throttled.
    throttled: &'static [Row],
    /// Values that mark an item as failed by the service's fault.
    failed: &'static [Row],
}

impl Table {
    /// Returns the table of a service that refuses whole requests, or does not list the items.
    const fn whole(throttled: &'static [Row]) -> Self {
        Self {
            items: &[],
            throttled,
            failed: &[],
        }
    }
}

/// A path, and the values that count there. Without values an object or array counts. A `*` ends a
/// prefix.
type Row = (Path, &'static [&'static str]);

/// A pattern of [`json::leads_to`].
type Path = &'static [&'static str];

impl BodyRefusals {
    /// Reads the body of a success. Returns `None` if the body is cut, or is no JSON.
    #[must_use]
    pub fn read(&self, body: &[u8]) -> Option<RefusedItems> {
        let table = self.table();
        let (mut items, mut refused) = (0_u32, 0_u32);
        let mut again = Vec::new();
        let mut last = None; // the item that was counted last
        json::walk(body, |path, value| {
            let is_among = |rows: &[Row]| rows.iter().any(|row| holds(row, path, value));
            if table.items.iter().any(|items| json::leads_to(path, items)) {
                items = items.saturating_add(1);
            }
            let is_throttled = is_among(table.throttled);
            if !is_throttled && !is_among(table.failed) {
                return;
            }
            let item = path.iter().find(|step| step.name.is_none());
            let item = item.map_or(0, |step| step.index);
            if table.items.is_empty() {
                refused = refused.saturating_add(1);
                return;
            }
            if is_throttled && last != Some(item) {
                refused = refused.saturating_add(1);
                last = Some(item);
            }
            if again.last() != Some(&item) {
                again.push(item);
            }
        })?;
        let items = match *self {
            Self::DynamoDbBatch { sent } => sent.max(refused),
            _ if table.items.is_empty() => 1,
            _ => items,
        };
        Some(RefusedItems {
            refused: refused.min(items),
            items,
            again,
        })
    }

    const fn table(self) -> Table {
        match self {
            Self::GraphQl => Table::whole(&[
                (
                    &["errors", "[]", "extensions", "code"],
                    &["THROTTLED", "RATE_LIMIT*", "RATELIMITED"],
                ),
                (&["errors", "[]", "type"], &["THROTTLED", "RATE_LIMIT*"]),
                (&["errors", "[]", "message"], &["Throttled"]),
            ]),
            Self::Slack => Table::whole(&[(&["error"], &["ratelimited", "rate_limited"])]),
            Self::Kraken => Table::whole(&[(
                &["error", "[]"],
                &[
                    "EAPI:Rate limit exceeded*",
                    "EOrder:Rate limit exceeded*",
                    "EService: Throttled*",
                    "EService:Throttled*",
                ],
            )]),
            Self::Etherscan => Table::whole(&[(
                &["result"],
                &[
                    "Max rate limit reached*",
                    "Max calls per sec rate limit reached*",
                    "Max daily rate limit reached*",
                ],
            )]),
            Self::Bybit => Table::whole(&[(&["retCode"], &["10006", "10018"])]),
            Self::DynamoDbBatch { .. } => Table::whole(&[
                (&["UnprocessedItems", "*", "[]"], &[]),
                (&["UnprocessedKeys", "*", "Keys", "[]"], &[]),
            ]),
            Self::ElasticsearchBulk => Table {
                items: &[&["items", "[]"]],
                throttled: &[(&["items", "[]", "*", "status"], &["429"])],
                failed: &[(&["items", "[]", "*", "status"], &["5*"])],
            },
            Self::KinesisPutRecords => Table {
                items: &[&["Records", "[]"]],
                throttled: &[(
                    &["Records", "[]", "ErrorCode"],
                    &["ProvisionedThroughputExceededException"],
                )],
                failed: &[(&["Records", "[]", "ErrorCode"], &["*"])],
            },
            Self::FirehosePutRecordBatch => Table {
                items: &[&["RequestResponses", "[]"]],
                throttled: &[(
                    &["RequestResponses", "[]", "ErrorCode"],
                    &["ServiceUnavailableException"],
                )],
                failed: &[(&["RequestResponses", "[]", "ErrorCode"], &["*"])],
            },
            Self::SqsBatch => Table {
                items: &[&["Successful", "[]"], &["Failed", "[]"]],
                throttled: &[(
                    &["Failed", "[]", "Code"],
                    &[
                        "RequestThrottled*",
                        "Throttl*",
                        "TooManyRequests*",
                        "KmsThrottled*",
                    ],
                )],
                failed: &[(&["Failed", "[]", "SenderFault"], &["false"])],
            },
        }
    }
}

/// Returns `true` if a row of a table matches the value at `path`.
fn holds((pattern, words): &Row, path: &[Step<'_>], value: Option<&[u8]>) -> bool {
    if !json::leads_to(path, pattern) {
        return false;
    }
    let Some(value) = value else {
        return words.is_empty();
    };
    words.iter().any(|word| match word.strip_suffix('*') {
        // A missing value matches no prefix.
        Some(beginning) => {
            value.starts_with(beginning.as_bytes()) && !matches!(value, b"" | b"null")
        }
        None => value == word.as_bytes(),
    })
}
