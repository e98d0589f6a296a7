//! Just as much JSON as it takes to find the members of objects that have plain values.

/// A member of an object: its name, and its value as it is written, without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) is_text: bool,
    /// How many objects and arrays it stands in.
    pub(super) depth: usize,
}

/// Returns the members of all objects of a text, at any depth, none if it does not begin like JSON.
/// Text behind the outermost object or array is not read.
///
/// One pass without allocation, whatever the bytes.
pub(super) fn members(text: &[u8]) -> Members<'_> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let text = text.trim_ascii_start();
    Members {
        rest: if matches!(text.first(), Some(b'{' | b'[')) {
            text
        } else {
            &[]
        },
        depth: 0,
    }
}

pub(super) struct Members<'a> {
    rest: &'a [u8],
    /// The objects and arrays that have begun and not ended.
    pub(super) depth: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.rest = &[];
                    }
                }
                b'"' => {
                    let (name, rest) = string(rest)?;
                    self.rest = rest;
                    let Some(value) = rest.trim_ascii_start().strip_prefix(b":") else {
                        continue; // a string that is no name
                    };
                    let value = value.trim_ascii_start();
                    let is_text = match value.first()? {
                        b'{' | b'[' => {
                            self.rest = value;
                            continue;
                        }
                        byte => *byte == b'"',
                    };
                    let (value, rest) = if is_text {
                        string(value.get(1..)?)?
                    } else {
                        let is_end = |byte: &u8| b",}] \t\r\n".contains(byte);
                        let end = value.iter().position(is_end).unwrap_or(value.len());
                        value.split_at_checked(end)?
                    };
                    self.rest = rest;
                    return Some(Member {
                        name,
                        value,
                        is_text,
                        depth: self.depth,
                    });
                }
                _ => {}
            }
        }
    }
}

/// Returns the string of which `text` is behind the first quote, as it is written, and what
/// follows.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some((text.get(..end)?, text.get(end.checked_add(1)?..)?))
}
