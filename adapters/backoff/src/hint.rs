//! The service's hint, for loops that adjust their delays.

use core::time::Duration;

use paceline::RetryAfter;

/// The most that a clamped hint adds to the backoff ("Retry behavior 2.1", AWS SDKs and Tools
/// Reference Guide).
const HEADROOM: Duration = Duration::from_secs(5);

/// Returns a function for backon's `adjust`, so that no retry comes before the service wants it.
/// `hint` reads the hint in the error.
///
/// An [`AtLeast`](RetryAfter::AtLeast) hint is added to the delay, so that the delay's jitter
/// spreads the retries after it. A [`Clamped`](RetryAfter::Clamped) hint raises the delay by five
/// seconds at most. Neither shortens the delay, and neither makes a retry where there is none.
///
/// Use it for delays that ignore the error. The delays of [`Retries::split`](crate::Retries::split)
/// contain the hint.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::RetryAfter;
/// use paceline_backoff::retry_after;
///
/// let second = Duration::from_secs(1);
/// let mut adjust = retry_after(|_: &&str| Some(RetryAfter::AtLeast(60 * second)));
/// assert_eq!(adjust(&"slow down", Some(second)), Some(61 * second));
/// assert_eq!(adjust(&"slow down", None), None);
/// ```
pub fn retry_after<E>(
    mut hint: impl FnMut(&E) -> Option<RetryAfter>,
) -> impl FnMut(&E, Option<Duration>) -> Option<Duration> {
    move |error, delay| {
        let delay = delay?;
        Some(match hint(error) {
            Some(RetryAfter::AtLeast(hint)) => hint.saturating_add(delay),
            Some(RetryAfter::Clamped(hint)) => hint.clamp(delay, delay.saturating_add(HEADROOM)),
            _ => delay,
        })
    }
}
