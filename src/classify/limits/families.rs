//! Families of headers with one header for each number, whose names say what is counted.

use core::time::Duration;

use super::reader::Reader;
use crate::headers::time::SECOND;
use crate::law::{Dimension, LimitName, LimitReport, Reset};

/// The time in which Shopify's bucket fills, under every plan.
const SHOPIFY_WINDOW: Duration = Duration::from_secs(20);
const MILLISECOND: u64 = SECOND / 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The limit of a plan, in millionths of the plan.
const PARTS: u64 = 1_000_000;

/// The headers of one limit, and the facts that they leave out.
pub(super) struct Family {
    pub(super) limit: &'static str,
    pub(super) left: Left,
    /// The first header with a valid reset counts.
    resets: [&'static str; 2],
    /// The nanoseconds of a unit of the reset.
    unit: u64,
    counts: Dimension,
    /// The name of the limit, if there are several of one dimension.
    policy: &'static str,
    window: Window,
    back: Back,
}

/// How a service says what is left of a limit.
#[derive(Clone, Copy)]
pub(super) enum Left {
    /// The header of what remains.
    Is(&'static str),
    /// The header of the used fraction, the value that means all, and the header of the state,
    /// which overrides the fraction. The limit is [`PARTS`].
    Used(&'static str, u64, &'static str),
}

/// The time in which a limit may be used up once.
enum Window {
    Untold,
    Nanos(u64),
    /// The header of the window, and the nanoseconds of its unit.
    In(&'static str, u64),
}

/// How a limit comes back.
enum Back {
    /// Little by little.
    Refills,
    /// Little by little, unless the reset is a time.
    RefillsInSpans,
    /// All at once.
    Windows,
    /// All at once if there is no reset. The header names say the window.
    WindowsUntold,
}

const REQUESTS: Dimension = Dimension::Requests;
const TOKENS: Dimension = Dimension::Tokens;
const INPUT: Dimension = Dimension::Named(LimitName::of(b"input-tokens"));
const OUTPUT: Dimension = Dimension::Named(LimitName::of(b"output-tokens"));
/// What a subscription allows in hours or days, in [`PARTS`].
const PLAN: Dimension = Dimension::Named(LimitName::of(b"plan"));

/// Makes the names of the headers for a limit, its rest, and its reset.
macro_rules! names {
    ($stem:literal..) => {
        [
            concat!($stem, "-limit"),
            concat!($stem, "-remaining"),
            concat!($stem, "-reset"),
        ]
    };
    (..$end:literal) => {
        [
            concat!("x-ratelimit-limit-", $end),
            concat!("x-ratelimit-remaining-", $end),
            concat!("x-ratelimit-reset-", $end),
        ]
    };
}

const fn family(
    [limit, remaining, reset]: [&'static str; 3],
    counts: Dimension,
    policy: &'static str,
    window: Window,
    back: Back,
) -> Family {
    Family {
        limit,
        left: Left::Is(remaining),
        resets: [reset, ""],
        unit: SECOND,
        counts,
        policy,
        window,
        back,
    }
}

const fn in_millis(family: Family) -> Family {
    Family {
        unit: MILLISECOND,
        ..family
    }
}

/// A plan. The first header says how much of `whole` is used; the others are the state and two
/// resets.
const fn plan(
    [used, state, first, second]: [&'static str; 4],
    whole: u64,
    policy: &'static str,
    window: Window,
) -> Family {
    Family {
        left: Left::Used(used, whole, state),
        resets: [first, second],
        ..family([""; 3], PLAN, policy, window, Back::Windows)
    }
}

#[rustfmt::skip]
pub(super) const FAMILIES: [Family; 27] = [
    // "Rate limits", OpenAI API; "Rate Limits", GroqDocs. Azure and GitHub Models send the window,
    // too. SambaNova and DigitalOcean send a reset since 1970, with another meaning.
    family(names!(.."requests"), REQUESTS, "", Window::In("x-ratelimit-renewalperiod-requests", SECOND), Back::RefillsInSpans),
    family(names!(.."tokens"), TOKENS, "", Window::In("x-ratelimit-renewalperiod-tokens", SECOND), Back::RefillsInSpans),
    // "Rate limits", Claude Docs: a token bucket. All limits are for a minute.
    family(names!("anthropic-ratelimit-requests"..), REQUESTS, "", Window::Nanos(MINUTE), Back::Refills),
    family(names!("anthropic-ratelimit-tokens"..), TOKENS, "", Window::Nanos(MINUTE), Back::Refills),
    family(names!("anthropic-ratelimit-input-tokens"..), INPUT, "", Window::Nanos(MINUTE), Back::Refills),
    family(names!("anthropic-ratelimit-output-tokens"..), OUTPUT, "", Window::Nanos(MINUTE), Back::Refills),
    // "Service tiers", Claude Docs.
    family(names!("anthropic-priority-input-tokens"..), INPUT, "priority", Window::Nanos(MINUTE), Back::Refills),
    family(names!("anthropic-priority-output-tokens"..), OUTPUT, "priority", Window::Nanos(MINUTE), Back::Refills),
    // "Rate limits and usage tiers", Mistral AI.
    family(names!(.."req-minute"), REQUESTS, "", Window::Nanos(MINUTE), Back::WindowsUntold),
    family(names!(.."tokens-minute"), TOKENS, "", Window::Nanos(MINUTE), Back::WindowsUntold),
    // "Rate Limits", Cerebras Inference; "Rate limits", SambaNova.
    family(names!(.."requests-minute"), REQUESTS, "minute", Window::Nanos(MINUTE), Back::WindowsUntold),
    family(names!(.."requests-hour"), REQUESTS, "hour", Window::Nanos(HOUR), Back::WindowsUntold),
    family(names!(.."requests-day"), REQUESTS, "day", Window::Nanos(DAY), Back::WindowsUntold),
    family(names!(.."tokens-hour"), TOKENS, "hour", Window::Nanos(HOUR), Back::WindowsUntold),
    family(names!(.."tokens-day"), TOKENS, "day", Window::Nanos(DAY), Back::WindowsUntold),
    // "Quota-Specific Response Headers", DigitalOcean Docs.
    family(names!(.."tokens-per-minute"), TOKENS, "", Window::Nanos(MINUTE), Back::WindowsUntold),
    // "Rate limiting", Linear Developers: a leaky bucket. All limits are for an hour.
    family(names!("x-ratelimit-requests"..), REQUESTS, "", Window::Nanos(HOUR), Back::Refills),
    family(names!("x-ratelimit-complexity"..), TOKENS, "", Window::Nanos(HOUR), Back::Refills),
    // "Rate Limit", KuCoin API: pools by weights, which are not sent.
    in_millis(family(names!("gw-ratelimit"..), REQUESTS, "", Window::Untold, Back::Windows)),
    // "Rate Limits", BigCommerce.
    in_millis(family(["x-rate-limit-requests-quota", "x-rate-limit-requests-left", "x-rate-limit-time-reset-ms"], REQUESTS, "", Window::In("x-rate-limit-time-window-ms", MILLISECOND), Back::Windows)),
    // "Rate limiting", Fastly.
    family(["", "fastly-ratelimit-remaining", "fastly-ratelimit-reset"], REQUESTS, "", Window::Untold, Back::Windows),
    // "Rate limits", Trello.
    family(["x-rate-limit-api-token-max", "x-rate-limit-api-token-remaining", ""], REQUESTS, "token", Window::In("x-rate-limit-api-token-interval-ms", MILLISECOND), Back::Windows),
    family(["x-rate-limit-api-key-max", "x-rate-limit-api-key-remaining", ""], REQUESTS, "key", Window::In("x-rate-limit-api-key-interval-ms", MILLISECOND), Back::Windows),
    // A plan of Claude: <https://github.com/1jehuang/jcode/issues/1183>.
    plan(["anthropic-ratelimit-unified-5h-utilization", "anthropic-ratelimit-unified-5h-status", "anthropic-ratelimit-unified-5h-reset", ""], 1, "5h", Window::Nanos(5 * HOUR)),
    plan(["anthropic-ratelimit-unified-7d-utilization", "anthropic-ratelimit-unified-7d-status", "anthropic-ratelimit-unified-7d-reset", ""], 1, "7d", Window::Nanos(7 * DAY)),
    // A plan of Codex: <https://github.com/router-for-me/CLIProxyAPI/issues/1666>.
    plan(["x-codex-primary-used-percent", "", "x-codex-primary-reset-after-seconds", "x-codex-primary-reset-at"], 100, "primary", Window::In("x-codex-primary-window-minutes", MINUTE)),
    plan(["x-codex-secondary-used-percent", "", "x-codex-secondary-reset-after-seconds", "x-codex-secondary-reset-at"], 100, "secondary", Window::In("x-codex-secondary-window-minutes", MINUTE)),
];

pub(super) fn read(reader: &mut Reader<'_>) {
    for family in &FAMILIES {
        if let Some(report) = family.report(reader) {
            reader.push(report);
        }
    }
}

impl Family {
    fn report(&self, reader: &mut Reader<'_>) -> Option<LimitReport> {
        let report = match self.left {
            Left::Is(header) => LimitReport::new(reader.count(header)?),
            Left::Used(header, whole, state) => {
                // In `amount` the whole counts as a second, and a part as a microsecond.
                let unit = SECOND.checked_div(whole)?;
                let used = reader.amount(header, unit)?.div_ceil(SECOND / PARTS);
                let left = match reader.single(state) {
                    Some(b"rejected") => 0,
                    Some(_) => PARTS.saturating_sub(used).max(1),
                    None => PARTS.saturating_sub(used),
                };
                LimitReport::new(left).limit(PARTS)
            }
        };
        let mut report = report.dimension(self.counts);
        report = report.policy(LimitName::of(self.policy.as_bytes()));
        if let Some(limit) = reader.count(self.limit) {
            report = report.limit(limit);
        }
        let reset = reader.reset(&self.resets, self.unit);
        if let Some(reset) = reset {
            report = report.reset(reset);
        }
        let window = match self.window {
            Window::Untold => None,
            Window::Nanos(nanos) => Some(nanos),
            Window::In(header, unit) => reader.amount(header, unit).filter(|nanos| *nanos > 0),
        };
        if let Some(nanos) = window {
            report = report.window(Duration::from_nanos(nanos));
        }
        Some(match (&self.back, reset) {
            (Back::Windows, _) | (Back::WindowsUntold, None) => report.refills(false),
            (Back::WindowsUntold, _) | (Back::RefillsInSpans, Some(Reset::At(_))) => report,
            (Back::Refills | Back::RefillsInSpans, _) => report.refills(true),
        })
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
        let minute = Duration::from_nanos(MINUTE);
        reader.push(left.window(minute).refills(false));
    }
}

/// Names of two limits, and their windows in nanoseconds.
type Windows = [(&'static str, u64); 2];
/// Strava's headers for all requests and for reads, and their limits.
const STRAVA: [([&str; 2], Windows); 2] = [
    (
        ["x-ratelimit-limit", "x-ratelimit-usage"],
        [("15m", HOUR / 4), ("day", DAY)],
    ),
    (
        ["x-readratelimit-limit", "x-readratelimit-usage"],
        [("read-15m", HOUR / 4), ("read-day", DAY)],
    ),
];

/// "Rate Limits", Strava Developers: lists of the requests allowed and used in a quarter of an hour
/// and in a day. Windows begin at multiples of their length.
pub(super) fn strava(reader: &mut Reader<'_>) {
    // `3,250` are two counts.
    let pair = |value: &[u8]| {
        let mut parts = value.split(|byte| *byte == b',').map(super::counts::count);
        let pair = [parts.next()??, parts.next()??];
        parts.next().is_none().then_some(pair)
    };
    for ([limit, used], names) in STRAVA {
        let Some(used) = reader.read(used, pair) else {
            continue;
        };
        let limits = reader.read(limit, pair).into_iter().flatten();
        for ((limit, used), (name, window)) in limits.zip(used).zip(names) {
            let left = LimitReport::new(limit.saturating_sub(used)).limit(limit);
            let left = left.policy(LimitName::of(name.as_bytes()));
            reader.push(left.window(Duration::from_nanos(window)).refills(false));
        }
    }
}

/// "Usage Plans and Rate Limits", Selling Partner API: a rate in requests a second, without what is
/// left. The report says one left of two, in the time of two requests, which paces at this rate.
pub(super) fn selling_partner(reader: &mut Reader<'_>) {
    let Some(rate) = reader.amount("x-amzn-ratelimit-limit", SECOND) else {
        return;
    };
    match (2 * SECOND * SECOND).checked_div(rate) {
        Some(nanos @ 1..) => {
            let pair = LimitReport::new(1).limit(2).refills(true);
            reader.push(pair.window(Duration::from_nanos(nanos)));
        }
        _ => reader.ignore(),
    }
}
