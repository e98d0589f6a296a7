//! Just as much JSON as it takes to find an error code.

use super::bare_code;
use crate::classify::quoted::string;

/// Where codes are, the most telling first.
const KEYS: [&[u8]; 3] = [b"__type", b"code", b"Code"];

/// Where a reader of the outermost object is.
#[derive(Clone, Copy)]
enum Place {
    /// The next string is a key.
    Key,
    /// Behind a key. The next string, if it is not inside something else, is its value.
    Behind { rank: usize },
    /// Behind a value.
    Value,
}

/// Returns the code of the error that `text` is: an object.
pub(super) fn error_code(text: &[u8]) -> Option<&str> {
    let mut codes = [None; KEYS.len()];
    let mut rest = text.strip_prefix(b"{")?;
    let (mut depth, mut place) = (1_usize, Place::Key);
    while depth > 0 {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        match byte {
            b'"' => {
                let (string, behind) = string(rest)?;
                rest = behind;
                if depth == 1 {
                    place = place.behind(string, &mut codes);
                }
            }
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => place = Place::Key,
            _ => {}
        }
    }
    codes.into_iter().flatten().next()
}

impl Place {
    /// Takes note of a string in the outermost object, and returns the place behind it.
    fn behind<'a>(self, string: &'a [u8], codes: &mut [Option<&'a str>; KEYS.len()]) -> Self {
        match self {
            Self::Key => {
                let rank = KEYS.iter().position(|key| *key == string);
                Self::Behind {
                    rank: rank.unwrap_or(KEYS.len()),
                }
            }
            Self::Behind { rank } => {
                if let Some(code) = codes.get_mut(rank) {
                    *code = code.or_else(|| bare_code(string));
                }
                Self::Value
            }
            Self::Value => self,
        }
    }
}
