//! Reads the lines of a profile file into sections, whatever their names.
//!
//! The grammar follows the test data for profile parsers that the AWS SDKs share
//! (`profile-parser-tests.json` in smithy-rs). Whitespace is space and tab.

use super::profile_error::ProfileFileFault as Fault;

const WHITESPACE: [char; 2] = [' ', '\t'];
const COMMENT: [char; 2] = ['#', ';'];

/// A section, in the order of the file. Two sections may have one header.
pub(super) struct Section<'a> {
    /// The text between the brackets, trimmed.
    pub(super) header: &'a str,
    pub(super) properties: Vec<Property>,
}

pub(super) struct Property {
    /// The key in lower case.
    pub(super) key: String,
    /// Each continuation is a line of the value.
    pub(super) value: String,
    /// Whether continuations have to be properties.
    nested: bool,
}

/// Returns the sections of `text`, or the number of the first bad line and its fault.
pub(super) fn sections(text: &str) -> Result<Vec<Section<'_>>, (usize, Fault)> {
    let mut sections = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        read_line(line, &mut sections).map_err(|fault| (number, fault))?;
    }
    Ok(sections)
}

fn read_line<'a>(line: &'a str, sections: &mut Vec<Section<'a>>) -> Result<(), Fault> {
    if trim(line).is_empty() || line.starts_with(COMMENT) {
        return Ok(());
    }
    if line.starts_with('[') {
        sections.push(Section {
            header: header(line)?,
            properties: Vec::new(),
        });
        return Ok(());
    }
    let section = sections.last_mut().ok_or(Fault::OutsideSection)?;
    if line.starts_with(WHITESPACE) {
        let property = section.properties.last_mut();
        property.ok_or(Fault::NothingToContinue)?.extend(trim(line))
    } else {
        section.properties.push(Property::read(line)?);
        Ok(())
    }
}

/// Splits the text between the brackets at its first whitespace: `profile NAME`.
pub(super) fn split_header(header: &str) -> Option<(&str, &str)> {
    let (prefix, name) = header.split_once(WHITESPACE)?;
    Some((prefix, trim(name)))
}

/// Returns the name in `text`: one word, or anything in quotes.
///
/// A shell accepts more forms of one word. AWS's command line writes only these.
pub(super) fn name(text: &str) -> Option<&str> {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\'' | b' ' | b'\t' | b'\\');
    let name = match text.as_bytes() {
        // In double quotes a backslash would be an escape.
        [b'"', inside @ .., b'"'] if !inside.iter().any(|byte| matches!(byte, b'"' | b'\\')) => {
            core::str::from_utf8(inside).ok()?
        }
        [b'\'', inside @ .., b'\''] if !inside.contains(&b'\'') => {
            core::str::from_utf8(inside).ok()?
        }
        bytes if bytes.iter().any(is_special) => return None,
        _ => text,
    };
    (!name.is_empty()).then_some(name)
}

fn header(line: &str) -> Result<&str, Fault> {
    let line = line.split(COMMENT).next().unwrap_or(line);
    let inside = trim(line).strip_prefix('[');
    let inside = inside.and_then(|rest| rest.strip_suffix(']'));
    inside.map(trim).ok_or(Fault::UnclosedSection)
}

impl Property {
    fn read(line: &str) -> Result<Self, Fault> {
        let (key, value) = split_property(line).ok_or(Fault::NoEquals)?;
        if key.is_empty() {
            return Err(Fault::NoName);
        }
        Ok(Self {
            key: key.to_ascii_lowercase(),
            value: value.to_owned(),
            nested: value.is_empty(),
        })
    }

    fn extend(&mut self, line: &str) -> Result<(), Fault> {
        if self.nested {
            let (name, _) = split_property(line).ok_or(Fault::SubPropertyNoEquals)?;
            if name.is_empty() {
                return Err(Fault::SubPropertyNoName);
            }
        }
        self.value.push('\n');
        self.value.push_str(line);
        Ok(())
    }
}

/// Splits a line without its comment at its first `=`, both halves trimmed.
fn split_property(line: &str) -> Option<(&str, &str)> {
    let (key, value) = without_comment(line).split_once('=')?;
    Some((trim(key), trim(value)))
}

/// Cuts a line before the first comment sign that whitespace precedes.
fn without_comment(line: &str) -> &str {
    let cut = line.match_indices(COMMENT).find_map(|(at, _)| {
        let before = line.get(..at)?;
        before.ends_with(WHITESPACE).then_some(before)
    });
    cut.unwrap_or(line)
}

fn trim(text: &str) -> &str {
    text.trim_matches(WHITESPACE)
}
