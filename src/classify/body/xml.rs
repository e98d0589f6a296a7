//! A minimal reader of XML that finds an error code.

use super::bare_code;

/// The reader's place on the path from the root to the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Root,
    Response,
    Errors,
    Error,
    /// Off the path, this many elements deep.
    Beside(usize, Side),
}

/// The element where the reader left the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Response,
    Errors,
    Error,
}

/// What follows in the text.
enum Part<'a> {
    Open { name: &'a [u8], empty: bool },
    Close,
    Nothing,
}

/// Returns the code of the error in `rest`.
pub(super) fn error_code(mut rest: &[u8]) -> Option<&str> {
    let mut place = Place::Root;
    loop {
        let tag = rest.iter().position(|byte| *byte == b'<')?;
        let (part, behind) = part(rest.get(tag..)?)?;
        rest = behind;
        place = match part {
            Part::Nothing => place,
            Part::Open {
                name: b"Code",
                empty: false,
            } if place == Place::Error => {
                let end = rest.iter().position(|byte| *byte == b'<')?;
                return bare_code(rest.get(..end)?);
            }
            Part::Open { name, empty } => {
                let inner = place.inside(name)?;
                if empty { place } else { inner }
            }
            Part::Close => place.outside()?,
        };
    }
}

impl Place {
    /// Returns the place inside an element that opens, or `None` if the root is no error.
    fn inside(self, name: &[u8]) -> Option<Self> {
        let beside = |side| Some(Self::Beside(1, side));
        match (self, name) {
            (Self::Root, b"Response") => Some(Self::Response),
            (Self::Root, b"ErrorResponse") | (Self::Response, b"Errors") => Some(Self::Errors),
            (Self::Root | Self::Errors, b"Error") => Some(Self::Error),
            (Self::Root, _) => None,
            (Self::Response, _) => beside(Side::Response),
            (Self::Errors, _) => beside(Side::Errors),
            (Self::Error, _) => beside(Side::Error),
            (Self::Beside(depth, side), _) => Some(Self::Beside(depth.saturating_add(1), side)),
        }
    }

    /// Returns the place behind the element that closes, or `None` if no error code follows.
    fn outside(self) -> Option<Self> {
        match self {
            Self::Beside(0 | 1, Side::Response) => Some(Self::Response),
            Self::Beside(0 | 1, Side::Errors) => Some(Self::Errors),
            Self::Beside(0 | 1, Side::Error) => Some(Self::Error),
            Self::Beside(depth, side) => Some(Self::Beside(depth.saturating_sub(1), side)),
            // The first error had no code, or there was no error.
            Self::Root | Self::Response | Self::Errors | Self::Error => None,
        }
    }
}

/// Reads the tag that `text` begins with, and returns the text after it.
fn part(text: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let nothing = |rest| (Part::Nothing, rest);
    if let Some(inner) = text.strip_prefix(b"<!--") {
        return behind(inner, b"-->").map(nothing);
    }
    if let Some(inner) = text.strip_prefix(b"<![CDATA[") {
        return behind(inner, b"]]>").map(nothing);
    }
    if let Some(inner) = text.strip_prefix(b"<?") {
        return behind(inner, b"?>").map(nothing);
    }
    if let Some(inner) = text.strip_prefix(b"</") {
        return behind(inner, b">").map(|rest| (Part::Close, rest));
    }
    if text.starts_with(b"<!") {
        return None; // a document type, which can say anything
    }
    let inner = text.get(1..)?;
    let end = tag_end(inner)?;
    let (tag, rest) = (inner.get(..end)?, inner.get(end.checked_add(1)?..)?);
    let empty = tag.ends_with(b"/");
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
    let name = tag.split(is_end).next()?;
    Some((Part::Open { name, empty }, rest))
}

/// Returns where the tag ends, which is at the first `>` outside an attribute.
fn tag_end(tag: &[u8]) -> Option<usize> {
    let mut quote = None;
    tag.iter().position(|byte| {
        match (quote, *byte) {
            (None, b'>') => return true,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
        false
    })
}

/// Returns the text after the first `end`.
fn behind<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(end.len()).position(|window| window == end)?;
    text.get(at.checked_add(end.len())?..)
}
