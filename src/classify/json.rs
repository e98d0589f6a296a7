//! A minimal reader of JSON. It finds members with plain values, and walks through all values with
//! their paths.

use alloc::vec::Vec;

/// A member of an object: its name, and its value as it is written, without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) is_text: bool,
    /// How many objects and arrays enclose the member.
    pub(super) depth: usize,
}

/// Returns the members with plain values of all objects in a text, at any depth. A text that does
/// not begin with `{` or `[` has none. Text after the outermost object or array is not read.
///
/// The search is one pass and allocates nothing.
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
    /// The number of open objects and arrays.
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

/// Returns the string that `text` begins with, after its opening quote, and the text after its
/// closing quote. Escapes stay.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some((text.get(..end)?, text.get(end.checked_add(1)?..)?))
}

/// The deepest nesting that [`walk`] follows.
const DEEPEST: usize = 128;

/// One step to a value: the name of a member, or the place of an element in its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// `None` for an element of an array.
    pub(super) name: Option<&'a [u8]>,
    pub(super) index: u32,
}

/// Returns `true` if `path` matches `pattern`, in which `[]` is any element and `*` any step.
pub(super) fn leads_to(path: &[Step<'_>], pattern: &[&str]) -> bool {
    // From the end, where paths differ most.
    let mut steps = path.iter().zip(pattern).rev();
    path.len() == pattern.len()
        && steps.all(|(step, wanted)| match (*wanted, step.name) {
            ("*", _) | ("[]", None) => true,
            (_, name) => name == Some(wanted.as_bytes()),
        })
}

/// Calls `visit` for each value of a text, with the path to the value. `visit` gets the bytes of a
/// plain value; a string has no quotes. For an object or an array it gets `None`.
///
/// Returns `None` if the text ends too early, is no JSON, or is nested deeper than 128. Text behind
/// the outermost value is not read. The walk is one pass, whatever the bytes.
pub(super) fn walk<'a>(
    text: &'a [u8],
    mut visit: impl FnMut(&[Step<'a>], Option<&'a [u8]>),
) -> Option<()> {
    let mut path: Vec<Step<'a>> = Vec::new();
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    loop {
        rest = rest.trim_ascii_start();
        let (first, inside) = rest.split_first()?;
        match first {
            b'{' | b'[' => {
                visit(&path, None);
                let inside = inside.trim_ascii_start();
                let (is_object, next) = (*first == b'{', inside.first()?);
                if is_object == (*next == b'}') && (is_object || *next == b']') {
                    rest = inside.get(1..)?;
                } else if path.len() < DEEPEST {
                    let name;
                    (name, rest) = if is_object {
                        key(inside).map(|(name, rest)| (Some(name), rest))?
                    } else {
                        (None, inside)
                    };
                    path.push(Step { name, index: 0 });
                    continue;
                } else {
                    return None;
                }
            }
            b'"' => {
                let value;
                (value, rest) = string(inside)?;
                visit(&path, Some(value));
            }
            _ => {
                let is_end = |byte: &u8| b",}] \t\r\n".contains(byte);
                let value;
                (value, rest) = rest.split_at_checked(rest.iter().position(is_end)?)?;
                if !matches!(value, b"true" | b"false" | b"null") && !is_number(value) {
                    return None;
                }
                visit(&path, Some(value));
            }
        }
        // After a value: closes what ends here, and goes to the next value.
        loop {
            let Some(step) = path.last_mut() else {
                return Some(());
            };
            let (byte, next) = rest.trim_ascii_start().split_first()?;
            rest = next;
            match (byte, &mut step.name) {
                (b',', name) => {
                    step.index = step.index.saturating_add(1);
                    if let Some(name) = name {
                        (*name, rest) = key(rest.trim_ascii_start())?;
                    }
                    break;
                }
                (b'}', Some(_)) | (b']', None) => {
                    path.pop();
                }
                _ => return None,
            }
        }
    }
}

/// Returns the name of the member that `text` begins with, and the text after its colon.
fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = string(text.strip_prefix(b"\"")?)?;
    Some((name, rest.trim_ascii_start().strip_prefix(b":")?))
}

fn is_number(value: &[u8]) -> bool {
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    value.iter().any(u8::is_ascii_digit) && value.iter().all(is_of_number)
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String, vec::Vec};

    use super::*;

    /// Returns the paths and values of a text, or nothing if it is no JSON.
    fn walked(text: &str) -> Option<Vec<String>> {
        let mut seen = Vec::new();
        walk(text.as_bytes(), |path, value| {
            let steps = path.iter().map(|step| match step.name {
                Some(name) => String::from_utf8_lossy(name).into_owned(),
                None => format!("{}", step.index),
            });
            let value = value.map_or("..".into(), String::from_utf8_lossy);
            seen.push(format!("{}={value}", steps.collect::<Vec<_>>().join(".")));
        })?;
        Some(seen)
    }

    #[test]
    fn each_value_is_walked_to_with_its_path() {
        let seen = walked(r#" {"a": [1, {"b\"": null}, []], "c" : "x,}" , "d":{}} {"#);
        let seen = seen.expect("JSON");
        let expected = "=.. a=.. a.0=1 a.1=.. a.1.b\\\"=null a.2=.. c=x,} d=..";
        assert_eq!(seen.join(" "), expected);
    }

    #[test]
    fn what_is_cut_or_no_json_is_nothing() {
        let whole = r#"{"a":[{"b":"c","d":[true,-1.5e3]},"e"],"f":{}}"#;
        assert!(walked(whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(walked(&whole[..end]), None, "{}", &whole[..end]);
        }
        for wrong in [
            "{]",
            "[}",
            "{\"a\":1]",
            "[1}",
            "{a:1}",
            "{\"a\" 1}",
            "{\"a\":x}",
            "[1 2]",
            "[1,]",
            "<a>",
        ] {
            assert_eq!(walked(wrong), None, "{wrong}");
        }
        let deep = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(walked(&deep(DEEPEST)).is_some());
        assert_eq!(walked(&deep(DEEPEST.saturating_add(2))), None);
    }

    #[test]
    fn a_pattern_leads_to_its_values_only() {
        let mut seen = Vec::new();
        let text = br#"{"items":[{"index":{"status":201}},{"create":{"status":429,"x":1}}]}"#;
        walk(text, |path, value| {
            if leads_to(path, &["items", "[]", "*", "status"]) {
                seen.push((path[1].index, value.expect("a number")));
            }
        });
        assert_eq!(seen, [(0, &b"201"[..]), (1, b"429")]);
    }
}
