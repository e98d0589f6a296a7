//! What a request is estimated to cost.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use reqwest::Request;

use super::scan::Scan;

/// Bytes of a body that count as one token.
const BYTES: u64 = 4;
/// The tokens of an attached picture or file.
const ATTACHMENT: u64 = 1_000;
/// The output of a request that sets no bound, until the first usage is known.
const FIRST_GUESS: u32 = 500;
/// A new usage has a weight of one eighth.
const SMOOTHING: i64 = 8;

/// The tokens of one request to a language model: an estimate, or the usage.
///
/// In the extensions of a request it replaces the estimate of [`ModelPacing`](crate::ModelPacing).
///
/// # Examples
///
/// ```
/// use paceline_reqwest::Tokens;
///
/// let tokens = Tokens::new(1_200, 300);
/// assert_eq!((tokens.input(), tokens.output(), tokens.total()), (1_200, 300, 1_500));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tokens {
    input: u32,
    output: u32,
}

impl Tokens {
    /// Creates the tokens of a prompt and its answer.
    #[must_use]
    pub const fn new(input: u32, output: u32) -> Self {
        Self { input, output }
    }

    /// Returns the tokens of the prompt.
    #[must_use]
    pub const fn input(self) -> u32 {
        self.input
    }

    /// Returns the tokens of the answer.
    #[must_use]
    pub const fn output(self) -> u32 {
        self.output
    }

    /// Returns all tokens.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.input.saturating_add(self.output)
    }
}

/// The average output so far, which is the estimate for requests without a bound.
#[derive(Debug)]
pub(super) struct UsualOutput(AtomicU32);

impl UsualOutput {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(FIRST_GUESS))
    }

    /// Relaxed, here and below: the number publishes nothing else, and an update lost between two
    /// threads changes an estimate by an eighth.
    pub(super) fn learn(&self, output: u32) {
        let usual = i64::from(self.0.load(Relaxed));
        let difference = i64::from(output).saturating_sub(usual);
        // Rounds away from zero, so that the average arrives.
        let step = difference
            .saturating_add(
                difference
                    .signum()
                    .saturating_mul(SMOOTHING.saturating_sub(1)),
            )
            .checked_div(SMOOTHING);
        let usual = usual.saturating_add(step.unwrap_or(0));
        self.0.store(u32::try_from(usual).unwrap_or(0), Relaxed);
    }

    fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// Estimates a request by its JSON: a token for four bytes, and the bound of the answer. Without a
/// body in memory the estimate is zero.
pub(super) fn estimate(request: &Request, usual: &UsualOutput) -> Tokens {
    let body = request.body().and_then(reqwest::Body::as_bytes);
    body.filter(|body| !body.is_empty())
        .map_or(Tokens::default(), |body| of_json(body, usual))
}

fn of_json(body: &[u8], usual: &UsualOutput) -> Tokens {
    let mut scan = Scan::default();
    scan.feed(body);
    scan.end();
    let (bytes, attachments) = scan.attached();
    let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
    let text = length.saturating_sub(bytes).div_ceil(BYTES);
    let input = text.saturating_add(attachments.saturating_mul(ATTACHMENT));
    let output = scan.max_output().unwrap_or(u64::from(usual.get()));
    Tokens::new(clamped(input), clamped(output))
}

pub(super) fn clamped(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// Returns the tokens of `bytes` bytes of text.
pub(super) const fn of_text(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES)
}

#[cfg(test)]
mod tests {
    use super::{Tokens, UsualOutput, of_json};

    #[test]
    fn a_token_is_four_bytes_and_the_bound_is_the_answer() {
        let usual = UsualOutput::new();
        let of = |body: &str| of_json(body.as_bytes(), &usual);
        let body = r#"{"model": "m", "input": "twenty bytes"}  "#;
        assert_eq!(of(body), Tokens::new(11, 500));
        let body = r#"{"max_tokens":100,"n":2,"prompt":"0123"}"#;
        assert_eq!(of(body), Tokens::new(10, 200));
        let picture = format!(r#"{{"data":"{}","max_tokens":1}}"#, "x".repeat(4_000));
        assert_eq!(of(&picture), Tokens::new(1_007, 1));
        assert_eq!(of("not JSON"), Tokens::new(2, 500));
        assert_eq!(of(r#"{"max_tokens":99999999999}"#).output(), u32::MAX);
    }

    #[test]
    fn the_usual_output_is_learned() {
        let usual = UsualOutput::new();
        usual.learn(1_300);
        assert_eq!(usual.get(), 600);
        for _ in 0..100 {
            usual.learn(0);
        }
        assert_eq!(usual.get(), 0);
        usual.learn(1);
        assert_eq!(usual.get(), 1);
    }
}
