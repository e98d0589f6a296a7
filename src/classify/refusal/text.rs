//! What a refusal says to people, in a body of JSON, XML or plain text.

use alloc::vec::Vec;
use core::{mem, time::Duration};

use crate::headers::{
    decimal,
    time::{SECOND, When, when},
};

const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// The longest text of a span, in bytes.
const LONGEST_SPAN: usize = 32;

/// What a text says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "a text says any of them")]
pub(super) struct Told {
    /// The request asks for more than the limit has: `Limit 30000, Requested 36278`.
    pub(super) is_too_large: bool,
    /// A limit is zero: `limit: 0`.
    pub(super) is_nothing: bool,
    /// There were too many requests.
    pub(super) is_too_fast: bool,
    /// All callers send too many requests: `high traffic`, `systems are busy`.
    pub(super) is_overloaded: bool,
    /// The shortest window that is named: `per day`, `5 hours`, `daily`.
    pub(super) window: Option<Duration>,
    /// When to come back: `try again in 10 minutes`, `banned until 1620286253180`.
    pub(super) again: Option<When>,
}

impl Told {
    /// Returns `true` if every window that is named is longer than an hour.
    pub(super) fn is_of_hours(&self) -> bool {
        self.window > Some(Duration::from_nanos(HOUR))
    }
}

/// Reads a text.
pub(super) fn read(text: &[u8]) -> Told {
    let text = plain(text);
    let (mut reading, mut rest) = (Reading::default(), text.as_slice());
    while let Some(start) = rest.iter().position(u8::is_ascii_alphanumeric) {
        let (gap, token) = rest.split_at(start);
        let (number, longer) = number(token);
        let end = if longer.is_empty() {
            let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
            let word = token.iter().take_while(is_letter).count();
            reading.word(gap, &token[..word]);
            word
        } else if let Some(span) = span(longer) {
            reading.span(reading.before[1], span);
            longer.len()
        } else {
            reading.number(gap, number, &token[number.len()..]);
            number.len()
        };
        rest = &token[end..];
    }
    reading.told.is_too_fast |= reading.rate == [true; 2];
    reading.told
}

/// Returns the number that a text begins with, and the longest beginning that may be a span, such
/// as `7m12s`. Both are empty without a digit.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let joins = |(at, byte): &(usize, &u8)| {
        let is_inside = b".,".contains(byte) && at.checked_add(1).is_some_and(is_digit);
        byte.is_ascii_digit() || is_inside
    };
    if !is_digit(0) {
        return (&[], &[]);
    }
    let bytes = || text.iter().enumerate();
    let digits = bytes().take_while(joins).count();
    let belongs = |byte: &(usize, &u8)| joins(byte) || byte.1.is_ascii_alphabetic();
    let longer = bytes().take(LONGEST_SPAN).take_while(belongs).count();
    (&text[..digits], &text[..longer])
}

/// Reads `45.5s` and `7m12s`.
fn span(text: &[u8]) -> Option<Duration> {
    match when(text, SECOND)? {
        When::In(span) if text.last()?.is_ascii_alphabetic() => Some(span),
        _ => None,
    }
}

/// Returns the text in lower case, without escapes, and with `_` before a capital inside a word.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let (mut was_small, mut is_escaped) = (false, false);
    for byte in text {
        if mem::take(&mut is_escaped) {
            continue;
        }
        is_escaped = *byte == b'\\';
        if was_small && byte.is_ascii_uppercase() {
            plain.push(b'_');
        }
        was_small = byte.is_ascii_lowercase();
        plain.push(byte.to_ascii_lowercase());
    }
    plain
}

/// The meaning of the next number.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Label {
    #[default]
    Other,
    Limit,
    Quota,
    Requested,
    /// The length of a window. The field has the nanoseconds of its unit.
    Window(u64),
}

#[derive(Default)]
struct Reading<'a> {
    told: Told,
    /// The last two words.
    before: [&'a [u8]; 2],
    /// The number just before the next word.
    count: Option<&'a [u8]>,
    /// Whether that number is a price.
    priced: bool,
    /// A window such as "daily", and how many more words may stand before its limit.
    period: Option<(Duration, u8)>,
    /// The last word as a unit in nanoseconds, if no number precedes the word.
    unit: Option<u64>,
    label: Label,
    limit: Option<u64>,
    requested: Option<u64>,
    /// Whether the next span is a wait, after a word such as "retry".
    waits: bool,
    retries: bool,
    /// Whether "rate limit" was read, and whether "exceeded" was.
    rate: [bool; 2],
}

impl<'a> Reading<'a> {
    fn word(&mut self, gap: &[u8], word: &'a [u8]) {
        let count = self.count.take();
        let [first, second] = self.before;
        self.before = [second, word];
        match (first, second, word) {
            (_, b"too", b"frequent" | b"frequently")
            | (b"too", b"many", b"requests" | b"calls" | b"queries" | b"visits")
            | (b"too", b"much", b"request")
            | (_, b"rate", b"limited") => self.told.is_too_fast = true,
            (_, b"rate", b"limit") => self.rate[0] |= gap == b" ",
            (.., b"overloaded" | b"busy")
            | (_, b"high", b"traffic" | b"demand" | b"load")
            | (_, b"rejected", b"execution")
            | (_, b"circuit", b"breaking") => self.told.is_overloaded = true,
            (b"larger", b"than", b"max" | b"maximum") => self.told.is_too_large = true,
            // A usage limit is a plan's, whatever its window.
            (_, b"usage", b"limit") if gap.len() == 1 => self.window(Duration::MAX),
            (.., b"exceeded" | b"exceeds" | b"reached") => self.rate[1] = true,
            (.., b"again" | b"retry" | b"wait" | b"available" | b"reset" | b"resets") => {
                self.retries = true;
            }
            _ => {}
        }
        let is_left = matches!(second, b"remaining" | b"left" | b"available");
        self.label = match (word, self.label) {
            (b"limit" | b"quota", _) if is_left => Label::Other,
            (b"quota", _) | (b"limit", Label::Quota) => Label::Quota,
            (b"limit" | b"allowed", _) => Label::Limit,
            (b"requested", _) => Label::Requested,
            (b"of", _) if second == b"request" => Label::Requested,
            (b"duration" | b"window" | b"period" | b"interval", _) => Label::Window(SECOND),
            (_, Label::Window(_)) => unit(word).map_or(Label::Other, Label::Window),
            (b"is" | b"of" | b"was" | b"value" | b"token" | b"tokens" | b"units", label) => label,
            _ => Label::Other,
        };
        let each = matches!(second, b"per" | b"a" | b"an" | b"each" | b"every");
        let is_rate = gap.trim_ascii() == b"/" || each || matches!(second, b"this" | b"current");
        match (unit(word), count) {
            (Some(_), _) if mem::take(&mut self.priced) => {}
            (Some(unit), _) if is_rate => self.window(Duration::from_nanos(unit)),
            (Some(unit), Some(count)) => {
                if let Some(span) = decimal(count, unit) {
                    self.span(second, span);
                }
            }
            _ => {}
        }
        self.period(second, word, count.is_none());
        self.waits = self.retries && matches!(word, b"in" | b"after" | b"for" | b"wait");
    }

    /// Notes a window such as "daily" beside a limit. Elsewhere the word may describe a plan.
    fn period(&mut self, before: &[u8], word: &[u8], is_bare: bool) {
        let unit = mem::replace(&mut self.unit, unit(word).filter(|_| is_bare));
        if let Some(nanos) = unit.filter(|nanos| is_limit(word) && *nanos > SECOND) {
            self.window(Duration::from_nanos(nanos));
        }
        if let Some(nanos) = period(word) {
            self.period = Some((Duration::from_nanos(nanos), 4));
        }
        let Some((period, words)) = self.period else {
            return;
        };
        if is_limit(word) || is_limit(before) || word == b"exceeded" {
            self.window(period);
        }
        let left = words.saturating_sub(1);
        self.period = (left > 0).then_some((period, left));
    }

    fn number(&mut self, gap: &[u8], digits: &'a [u8], rest: &[u8]) {
        self.count = Some(digits);
        self.priced = gap.ends_with(b"$");
        let label = mem::take(&mut self.label);
        if gap.is_empty() {
            return; // a part of a name
        }
        if self.before[1] == b"until" {
            let time = when(digits, SECOND).filter(|when| matches!(when, When::At(_)));
            self.told.again = self.told.again.or(time);
        }
        // A number in JSON belongs to a report, and "0 of 5" or "0 left" is no limit.
        let is_told = gap.contains(&b'"');
        let is_part =
            rest.starts_with(b"/") || rest.starts_with(b" of") || rest.starts_with(b" left");
        match (label, value(digits)) {
            (Label::Limit, Some(0)) => self.told.is_nothing |= !is_told && !is_part,
            (Label::Quota, Some(0)) => self.told.is_nothing |= !is_part,
            (Label::Limit | Label::Quota, limit) => self.limit = limit,
            (Label::Requested, count) if !rest.starts_with(b" time") => self.requested = count,
            (Label::Window(unit), _) => {
                if let Some(span) = decimal(digits, unit) {
                    self.window(span);
                }
            }
            _ => {}
        }
        if let (Some(limit), Some(requested)) = (self.limit, self.requested) {
            self.told.is_too_large |= requested > limit;
            (self.limit, self.requested) = (None, None);
        }
    }

    /// Takes a span for a wait or a window. A long span may be neither, as in a trial of 14 days.
    fn span(&mut self, before: &[u8], span: Duration) {
        let is_window = matches!(
            before,
            b"in" | b"within" | b"for" | b"every" | b"over" | b"per"
        );
        if mem::take(&mut self.waits) {
            self.told.again.get_or_insert(When::In(span));
        } else if is_window || span <= Duration::from_nanos(HOUR) {
            self.window(span);
        } else {
            self.period = Some((span, 4));
        }
    }

    fn window(&mut self, window: Duration) {
        let known = self.told.window.unwrap_or(window);
        self.told.window = Some(known.min(window));
    }
}

/// Reads a number with commas and a fraction, rounded up.
fn value(digits: &[u8]) -> Option<u64> {
    let digits: Vec<u8> = digits
        .iter()
        .copied()
        .filter(|byte| *byte != b',')
        .collect();
    u64::try_from(decimal(&digits, 1)?.as_nanos()).ok()
}

fn is_limit(word: &[u8]) -> bool {
    matches!(
        word,
        b"limit" | b"limits" | b"quota" | b"quotas" | b"window" | b"cap" | b"caps"
    )
}

/// Returns the nanoseconds of a unit of time.
fn unit(word: &[u8]) -> Option<u64> {
    Some(match word {
        b"ms" | b"millis" | b"millisecond" | b"milliseconds" => SECOND / 1_000,
        b"s" | b"sec" | b"secs" | b"second" | b"seconds" => SECOND,
        b"min" | b"mins" | b"minute" | b"minutes" => 60 * SECOND,
        b"h" | b"hr" | b"hrs" | b"hour" | b"hours" => HOUR,
        b"day" | b"days" => DAY,
        b"week" | b"weeks" => 7 * DAY,
        b"month" | b"months" => 30 * DAY,
        b"year" | b"years" => 365 * DAY,
        _ => return None,
    })
}

/// Returns the nanoseconds of a window that one word names: "daily limit".
fn period(word: &[u8]) -> Option<u64> {
    Some(match word {
        b"hourly" => HOUR,
        b"daily" | b"today" => DAY,
        b"weekly" => 7 * DAY,
        b"monthly" => 30 * DAY,
        b"yearly" | b"annual" => 365 * DAY,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_request_above_the_limit_is_too_large() {
        for text in [
            "on tokens per min (TPM): Limit 30000, Requested 36278. The input must be reduced",
            "rate limit of 30,000 tokens, requested: 36,278",
            "a request of 36278 tokens exceeds the limit of 30000",
            r#"{"requested_tokens": 36278, "limit": 30000}"#,
            "<Limit>30000</Limit><Requested>36278</Requested>",
            "requestedUnits=12 allowed=10",
            "grpc: received message larger than max (5194304 vs. 4194304)",
        ] {
            assert!(read(text.as_bytes()).is_too_large, "{text}");
        }
        for text in [
            "",
            "Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.",
            "Limit 30000, Requested 30000",
            "Limit 5: requested 7 times in a second",
            "Requested 36278",
            "request 36278 hit the limit of 5",
            "Limit 100, Requested 7; limit 3, used 3, requested 1",
        ] {
            assert!(!read(text.as_bytes()).is_too_large, "{text}");
        }
    }

    #[test]
    fn a_limit_of_zero_lets_nothing_through() {
        for text in [
            "Quota exceeded for metric: requests, limit: 0, model: x",
            "your limit is 0",
            r#"{"quota_limit_value": "0"}"#,
            r#"{"quotaValue": 0}"#,
        ] {
            assert!(read(text.as_bytes()).is_nothing, "{text}");
        }
        for text in [
            "limit: 0.0167",
            "limit: 10",
            "limit remaining: 0",
            "remaining limit: 0",
            "remaining_quota: 0",
            "quota: 0 left",
            "quota: 0/1000",
            "limit: 0 of 5 are left",
            "limit0",
            // A report of concurrent requests, as in headers.
            r#"{"limit": 0, "remaining": 0}"#,
        ] {
            assert!(!read(text.as_bytes()).is_nothing, "{text}");
        }
    }

    #[test]
    fn the_shortest_window_counts() {
        for (text, window) in [
            ("Queries per day", Some(86_400)),
            ("GenerateRequestsPerDayPerProject", Some(86_400)),
            ("Gemini25ProRequestsPerDay", Some(86_400)),
            ("ReadRequestsPerMinutePerUser", Some(60)),
            ("free-models-per-day", Some(86_400)),
            ("requests/month", Some(30 * 86_400)),
            ("You have exceeded the DAILY quota", Some(86_400)),
            ("Usage limit reached for 5 hour", Some(18_000)),
            ("within 24h", Some(86_400)),
            ("duration_s: 86400", Some(86_400)),
            ("window_minutes=300", Some(18_000)),
            ("5 calls per minute and 500 calls per day", Some(60)),
            ("60 requests in 60 seconds", Some(60)),
            ("\\nper day", Some(86_400)),
            ("100/day", Some(86_400)),
            ("your limit for today", None),
            ("the limit today", Some(86_400)),
            ("the quota (monthly)", Some(30 * 86_400)),
            ("your daily free request quota", Some(86_400)),
            ("the 5-hour limit", Some(18_000)),
            ("throttle APPLICATION DAY limit", Some(86_400)),
            ("the second limit", None),
            ("1000 API calls / month", Some(30 * 86_400)),
            ("your limit for the current month", Some(30 * 86_400)),
            ("daily request count exceeded", Some(86_400)),
            ("Monthly product cap", Some(30 * 86_400)),
            ("exceeded today", None),
            ("100 requests in 24 hours", Some(86_400)),
            ("rate limit exceeded: your 14-day trial", None),
            ("upgrade your monthly plan", None),
            ("upgrade for $29/month, or $5.50 per week", None),
            ("see your daily usage", None),
            ("the day after", None),
            ("2026-02-06 05:34:34", None),
        ] {
            let told = read(text.as_bytes());
            assert_eq!(told.window, window.map(seconds), "{text}");
        }
        assert!(read(b"usage_limit_reached").is_of_hours());
        assert!(!read(b"current usage: 196279, limit: 200000").is_of_hours());
        assert!(!read(b"1000 requests per hour").is_of_hours());
    }

    #[test]
    fn a_long_text_is_read_in_one_pass() {
        for part in [&b"1a"[..], b"1,", b"a1"] {
            assert_eq!(read(&part.repeat(1 << 17)), Told::default());
        }
    }

    #[test]
    fn a_wait_is_no_window() {
        let span = |millis| Some(When::In(Duration::from_millis(millis)));
        for (text, again) in [
            ("Please try again in 10 minutes.", span(600_000)),
            ("Please retry in 45.578s.", span(45_578)),
            ("Try again in 7m12s", span(432_000)),
            ("Please retry after 1 second.", span(1_000)),
            ("wait 30 seconds", span(30_000)),
            ("Expected available in 12 seconds.", span(12_000)),
            ("reset in 51 seconds", span(51_000)),
            ("Rate limits reset every minute.", None),
            ("60 requests in 60 seconds: try again later", None),
            ("Please wait a few minutes before you try again", None),
            (
                "IP banned until 1620286253180",
                Some(When::At(Duration::from_millis(1_620_286_253_180))),
            ),
            ("until 5", None),
        ] {
            assert_eq!(read(text.as_bytes()).again, again, "{text}");
        }
        let both = read(b"Your daily limit. Try again in 5 minutes.");
        assert_eq!((both.again, both.is_of_hours()), (span(300_000), true));
    }

    #[test]
    fn words_say_that_all_are_refused() {
        for text in [
            "We are experiencing high traffic",
            "Systems are busy",
            "The engine is overloaded",
            "es_rejected_execution_exception",
            "circuit_breaking_exception",
        ] {
            assert!(read(text.as_bytes()).is_overloaded, "{text}");
        }
        for text in ["compute units per second capacity", "a high rate"] {
            assert!(!read(text.as_bytes()).is_overloaded, "{text}");
        }
    }

    #[test]
    fn words_say_that_there_were_too_many_requests() {
        for text in [
            "Access too frequent. Please try again",
            "Too many requests",
            "There have been too many calls",
            "Way too much request weight used",
            "You are being rate limited.",
            "API rate limit exceeded for user ID 1.",
            "You have exceeded a secondary rate limit.",
        ] {
            assert!(read(text.as_bytes()).is_too_fast, "{text}");
        }
        for text in [
            "Resource not accessible by integration",
            "https://docs.github.com/rest/rate-limit: authorization exceeded",
            "too many failed attempts",
        ] {
            assert!(!read(text.as_bytes()).is_too_fast, "{text}");
        }
    }
}
