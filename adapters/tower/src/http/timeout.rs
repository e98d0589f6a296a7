//! The deadline of a call of gRPC, in the header `grpc-timeout` of its request.

use core::{str, time::Duration};

use http::{HeaderMap, HeaderValue};

const TIMEOUT: &str = "grpc-timeout";

/// The units with their nanoseconds, the finest first.
const UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// The most digits of a value.
const DIGITS: usize = 8;

/// Returns the time that a call may take, if its headers say so ("gRPC over HTTP2", Timeout).
pub(super) fn read(headers: &HeaderMap) -> Option<Duration> {
    let (unit, digits) = headers.get(TIMEOUT)?.as_bytes().split_last()?;
    let (_, nanos) = UNITS.into_iter().find(|(letter, _)| letter == unit)?;
    let fits = (1..=DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let value: u64 = str::from_utf8(digits).ok().filter(|_| fits)?.parse().ok()?;
    Some(Duration::from_nanos(value.saturating_mul(nanos)))
}

/// Sets the time that a call may take to `left`, if its headers say a time.
pub(super) fn shorten(headers: &mut HeaderMap, left: Duration) {
    if !headers.contains_key(TIMEOUT) {
        return;
    }
    let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    for (unit, nanos) in UNITS {
        let value = left.checked_div(nanos).unwrap_or_default();
        let text = alloc::format!("{value}{}", char::from(unit));
        if text.len() <= DIGITS.saturating_add(1) {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(TIMEOUT, value);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static(TIMEOUT),
            HeaderValue::from_static(value),
        )])
    }

    #[test]
    fn each_unit_is_read() {
        let read = |value| read(&headers(value));
        assert_eq!(read("7n"), Some(Duration::from_nanos(7)));
        assert_eq!(read("300000u"), Some(Duration::from_millis(300)));
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        assert_eq!(read("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(read("2M"), Some(Duration::from_secs(120)));
        assert_eq!(read("1H"), Some(Duration::from_secs(3_600)));
        for wrong in ["", "1", "S", "-1S", "1.5S", "1s", "100000000S", "+1S"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert_eq!(super::read(&HeaderMap::new()), None);
    }

    #[test]
    fn what_is_left_has_eight_digits() {
        let shortened = |left| {
            let mut headers = headers("1H");
            shorten(&mut headers, left);
            headers[TIMEOUT].clone()
        };
        assert_eq!(shortened(Duration::from_nanos(99_999_999)), "99999999n");
        assert_eq!(shortened(Duration::from_nanos(100_000_999)), "100000u");
        assert_eq!(shortened(Duration::from_secs(100)), "100000m");
        assert_eq!(shortened(Duration::from_secs(100_000)), "100000S");
        assert_eq!(shortened(Duration::MAX), "5124095H");
        let mut none = HeaderMap::new();
        shorten(&mut none, Duration::ZERO);
        assert!(none.is_empty());
    }
}
