//! `google.rpc.RetryInfo` in the details of a status of gRPC.

use alloc::vec::Vec;
use core::time::Duration;

use crate::RetryAfter;

/// The last part of the type's URL.
const RETRY_INFO: &[u8] = b"/google.rpc.RetryInfo";
/// The longest value that is read, in bytes. Servers bound all trailers together to 8 KiB by
/// default.
const LONGEST: usize = 65_536;

impl RetryAfter {
    /// Reads the delay of a `google.rpc.RetryInfo` from the value of the header or trailer
    /// `grpc-status-details-bin`: a `google.rpc.Status` in base64, with padding or without.
    ///
    /// The first `RetryInfo` counts. A negative delay is a hint of zero. Other values give `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::RetryAfter;
    ///
    /// // A `RetryInfo` of 1.5 s.
    /// let details = "GjIKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBgoECAEQAQ";
    /// let hint = RetryAfter::parse_status_details(details);
    /// assert_eq!(hint, Some(RetryAfter::AtLeast(Duration::new(1, 1))));
    /// ```
    pub fn parse_status_details(value: impl AsRef<[u8]>) -> Option<Self> {
        let value = value.as_ref().trim_ascii();
        let status = from_base64(value.get(..LONGEST).unwrap_or(value))?;
        let mut details = Fields(&status).filter_map(|field| field.bytes(3));
        details.find_map(retry_info).map(Self::AtLeast)
    }
}

/// Returns the delay in a `google.protobuf.Any`, if the `Any` is a `RetryInfo`.
fn retry_info(any: &[u8]) -> Option<Duration> {
    let mut fields = Fields(any);
    fields
        .find_map(|field| field.bytes(1))
        .filter(|url| url.ends_with(RETRY_INFO))?;
    let info = Fields(any).find_map(|field| field.bytes(2))?;
    let delay = Fields(info).find_map(|field| field.bytes(1))?;
    let (mut seconds, mut nanos) = (0_u64, 0_u64);
    for field in Fields(delay) {
        match field {
            Field {
                number: 1,
                value: Value::Number(value),
            } => seconds = value,
            Field {
                number: 2,
                value: Value::Number(value),
            } => nanos = value,
            _ => {}
        }
    }
    // Negative numbers have the highest bit set, and count as zero.
    let seconds = i64::try_from(seconds).map_or(0, i64::unsigned_abs);
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000);
    Some(Duration::new(seconds, nanos.unwrap_or(0)))
}

/// The fields of a message of Protocol Buffers. The iterator ends at the first malformed field.
struct Fields<'a>(&'a [u8]);

struct Field<'a> {
    number: u64,
    value: Value<'a>,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A value of a fixed length.
    Other,
}

impl<'a> Field<'a> {
    /// Returns the bytes of the field of this number.
    fn bytes(&self, number: u64) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) if self.number == number => Some(bytes),
            _ => None,
        }
    }
}

impl<'a> Fields<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return None,
        };
        Some(Field {
            number: tag >> 3,
            value,
        })
    }
}

/// Decodes base64 of the standard alphabet, or returns `None` for other text.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text
        .iter()
        .rposition(|byte| *byte != b'=')
        .map(|last| &text[..=last])?;
    let (mut bits, mut count) = (0_u32, 0_u32);
    let mut bytes = Vec::with_capacity(digits.len());
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit.wrapping_sub(b'A'),
            b'a'..=b'z' => digit.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => digit.wrapping_sub(b'0').wrapping_add(52),
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits.wrapping_shl(6) | u32::from(value);
        count = count.saturating_add(6);
        if count >= 8 {
            count = count.saturating_sub(8);
            bytes.push(bits.wrapping_shr(count).to_le_bytes()[0]);
        }
    }
    Some(bytes)
}
