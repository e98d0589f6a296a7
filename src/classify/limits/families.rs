//! Families of headers with one header for each number, whose names say what is counted.

use core::time::Duration;

use super::reader::Reader;
use crate::law::{Dimension, LimitName, LimitReport};

/// Shopify's bucket is whole again after this time, whatever the plan.
const SHOPIFY_WINDOW: Duration = Duration::from_secs(20);
const MINUTE: Duration = Duration::from_secs(60);

/// The names of the headers for a limit, what remains of it, and its reset.
struct Family {
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
    counts: Dimension,
    back: Back,
}

/// How a limit comes back.
enum Back {
    /// Little by little, in a time that this header may say.
    Refills(&'static str),
    /// Little by little, in a minute.
    RefillsInAMinute,
    /// All at once every minute if there is no reset, as the names say.
    Minutes,
}

const fn family(
    [limit, remaining, reset]: [&'static str; 3],
    counts: Dimension,
    back: Back,
) -> Family {
    Family {
        limit,
        remaining,
        reset,
        counts,
        back,
    }
}

const REQUESTS: Dimension = Dimension::Requests;
const TOKENS: Dimension = Dimension::Tokens;
const INPUT: Dimension = Dimension::Named(LimitName::of(b"input-tokens"));
const OUTPUT: Dimension = Dimension::Named(LimitName::of(b"output-tokens"));

#[rustfmt::skip]
const FAMILIES: [Family; 8] = [
    // "Rate limits", OpenAI API; "Rate Limits", GroqDocs. Azure and GitHub Models say the time,
    // too.
    family(["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"], REQUESTS, Back::Refills("x-ratelimit-renewalperiod-requests")),
    family(["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"], TOKENS, Back::Refills("x-ratelimit-renewalperiod-tokens")),
    // "Rate limits", Claude Docs: a token bucket, whose limits are all of a minute.
    family(["anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"], REQUESTS, Back::RefillsInAMinute),
    family(["anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"], TOKENS, Back::RefillsInAMinute),
    family(["anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"], INPUT, Back::RefillsInAMinute),
    family(["anthropic-ratelimit-output-tokens-limit", "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"], OUTPUT, Back::RefillsInAMinute),
    // "Rate limits and usage tiers", Mistral AI.
    family(["x-ratelimit-limit-req-minute", "x-ratelimit-remaining-req-minute", "x-ratelimit-reset-req-minute"], REQUESTS, Back::Minutes),
    family(["x-ratelimit-limit-tokens-minute", "x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute"], TOKENS, Back::Minutes),
];

pub(super) fn read(reader: &mut Reader<'_>) {
    for family in &FAMILIES {
        let Some(remaining) = reader.count(family.remaining) else {
            continue;
        };
        let mut report = LimitReport::new(remaining).dimension(family.counts);
        if let Some(limit) = reader.count(family.limit) {
            report = report.limit(limit);
        }
        let reset = reader.reset(&[family.reset]);
        if let Some(reset) = reset {
            report = report.reset(reset);
        }
        report = match family.back {
            Back::Refills(renewal) => {
                let report = report.refills(true);
                match reader.count(renewal) {
                    Some(seconds) if seconds > 0 => report.window(Duration::from_secs(seconds)),
                    _ => report,
                }
            }
            Back::RefillsInAMinute => report.window(MINUTE).refills(true),
            Back::Minutes if reset.is_none() => report.window(MINUTE).refills(false),
            Back::Minutes => report.window(MINUTE),
        };
        reader.push(report);
    }
}

/// "REST Admin API rate limits", Shopify: `32/40`, a bucket that leaks a twentieth each second.
pub(super) fn shopify(reader: &mut Reader<'_>) {
    let bucket = |value: &[u8]| {
        let mut parts = value.split(|byte| *byte == b'/').map(super::counts::count);
        let (used, limit) = (parts.next()??, parts.next()??);
        (limit > 0 && parts.next().is_none()).then_some((used, limit))
    };
    if let Some((used, limit)) = reader.read("x-shopify-shop-api-call-limit", bucket) {
        let left = LimitReport::new(limit.saturating_sub(used)).limit(limit);
        reader.push(left.window(SHOPIFY_WINDOW).refills(true));
    }
}

/// "Request weight", Binance Spot API: `X-MBX-USED-WEIGHT-(intervalNum)(intervalLetter)`.
pub(super) fn binance(reader: &mut Reader<'_>, limit: u64) {
    if let Some(used) = reader.count("x-mbx-used-weight-1m") {
        let left = LimitReport::new(limit.saturating_sub(used)).limit(limit);
        let left = left.dimension(Dimension::Tokens);
        reader.push(left.window(MINUTE).refills(false));
    }
}
