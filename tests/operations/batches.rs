//! Batches whose answers say in the body which items were refused: no item is lost, and few are
//! refused.

use core::fmt::Write as _;
use core::time::Duration;

use crate::support::{Arc, Hands, ms};
use paceline::{
    Adaptive, Clock, RetryStrategyExt, Timestamp, backoff::SeededRandom, classify::BodyRefusals,
    law::PacedSettings,
};

/// How a service answers a batch of which it took some items: `true` for each item that it took.
struct Format {
    refusals: BodyRefusals,
    /// What stands before the items, between them, and behind them.
    around: [&'static str; 3],
    taken: &'static str,
    refused: &'static str,
    /// Whether the answer lists the refused items alone.
    lists_refused: bool,
}

const FORMATS: [Format; 4] = [
    Format {
        refusals: BodyRefusals::ElasticsearchBulk,
        around: [r#"{"took": 3, "errors": true, "items": ["#, ", ", "]}"],
        taken: r#"{"index": {"_index": "a", "status": 201}}"#,
        refused: r#"{"index": {"status": 429, "error": {"type": "es_rejected_execution_exception"}}}"#,
        lists_refused: false,
    },
    Format {
        refusals: BodyRefusals::KinesisPutRecords,
        around: [r#"{"FailedRecordCount": 1, "Records": ["#, ", ", "]}"],
        taken: r#"{"SequenceNumber": "49", "ShardId": "shardId-000000000000"}"#,
        refused: r#"{"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "Rate exceeded"}"#,
        lists_refused: false,
    },
    Format {
        refusals: BodyRefusals::FirehosePutRecordBatch,
        around: [r#"{"FailedPutCount": 1, "RequestResponses": ["#, ", ", "]}"],
        taken: r#"{"RecordId": "r"}"#,
        refused: r#"{"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}"#,
        lists_refused: false,
    },
    Format {
        refusals: BodyRefusals::SqsBatch,
        around: [r#"{"Successful": [{"Id": "a"}], "Failed": ["#, ", ", "]}"],
        taken: "",
        refused: r#"{"Id": "b", "Code": "RequestThrottled", "SenderFault": false}"#,
        lists_refused: true,
    },
];

impl Format {
    fn body(&self, taken: usize, items: usize) -> String {
        let [before, between, behind] = self.around;
        let mut body = String::from(before);
        let mut first = true;
        for item in 0..items {
            let is_taken = item < taken;
            if is_taken && self.lists_refused {
                continue;
            }
            let text = if is_taken { self.taken } else { self.refused };
            let between = if first { "" } else { between };
            write!(body, "{between}{text}").unwrap();
            first = false;
        }
        body + behind
    }
}

#[test]
fn items_that_bodies_refuse_are_sent_again_and_none_is_lost() {
    for format in FORMATS {
        let hands = Arc::new(Hands::default());
        let strategy = Adaptive::builder()
            .paced(PacedSettings::new())
            .clock(hands.clone())
            .random(Arc::new(SeededRandom::new(7)))
            .max_attempts(20)
            .build()
            .unwrap();
        // A hundred items a second, and as many saved up.
        let (mut saved, mut last) = (100, Timestamp::ZERO);
        let (mut written, mut refused) = (Vec::<u32>::new(), 0);
        for batch in 0..40 {
            let mut left: Vec<u32> = (batch * 25..batch * 25 + 25).collect();
            let operation = strategy.operation().clock(&hands).weight(25);
            let done = operation.sleep_by(|span| hands.sleep(span)).run(|_| {
                hands.sleep(ms(20));
                let minted = hands.now().saturating_since(last).as_millis() as usize / 10;
                last = last.saturating_add(Duration::from_millis(minted as u64 * 10));
                saved = (saved + minted).min(100);
                let taken = left.len().min(saved);
                saved -= taken;
                let body = format.body(taken, left.len());
                let read = format.refusals.read(body.as_bytes()).expect("it is whole");
                let first = if format.lists_refused { taken } else { 0 };
                let again: Vec<u32> = read
                    .again
                    .iter()
                    .map(|index| left[first + *index as usize])
                    .collect();
                written.extend(left.iter().filter(|item| !again.contains(item)));
                refused += again.len();
                left = again;
                read.failure().map_or(Ok(()), Err)
            });
            done.unwrap();
        }
        let what = format.refusals;
        assert!(
            written.iter().copied().eq(0..1_000),
            "{what:?}: each once, in order"
        );
        assert!(refused <= 60, "{what:?}: {refused}");
    }
}
