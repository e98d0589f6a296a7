//! Strings in JSON.

/// Returns the string of which `text` is behind the first quote, as it is written, and what
/// follows.
pub(super) fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some((text.get(..end)?, text.get(end.checked_add(1)?..)?))
}
