//! Just as much JSON as it takes to find the members of objects that have plain values.

use crate::classify::quoted::string;

/// A member of an object, at any depth: its name, and its value as it is written, without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) is_text: bool,
}

/// Returns the members of all objects of a text, none if it does not begin like JSON.
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
    }
}

pub(super) struct Members<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        loop {
            let quote = self.rest.iter().position(|byte| *byte == b'"')?;
            let (name, rest) = string(self.rest.get(quote.checked_add(1)?..)?)?;
            self.rest = rest;
            let Some(value) = rest.trim_ascii_start().strip_prefix(b":") else {
                continue; // a string that is no name
            };
            let value = value.trim_ascii_start();
            match value.first()? {
                b'"' => {
                    let (value, rest) = string(value.get(1..)?)?;
                    self.rest = rest;
                    return Some(Member {
                        name,
                        value,
                        is_text: true,
                    });
                }
                b'{' | b'[' => self.rest = value,
                _ => {
                    let is_end = |byte: &u8| b",}] \t\r\n".contains(byte);
                    let end = value.iter().position(is_end).unwrap_or(value.len());
                    let (value, rest) = value.split_at_checked(end)?;
                    self.rest = rest;
                    return Some(Member {
                        name,
                        value,
                        is_text: false,
                    });
                }
            }
        }
    }
}
