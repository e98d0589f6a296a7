//! A profile file read the plain way: one character after the other, every property on its own.

use std::collections::BTreeMap;

use paceline::aws_config::ProfileFileFault::{
    self, NoEquals, NoName, NothingToContinue, OutsideSection, SubPropertyNoEquals,
    SubPropertyNoName, UnclosedSection,
};

pub(crate) type Profiles = BTreeMap<String, BTreeMap<String, String>>;

/// Who owns what follows a section's line.
#[derive(Clone, Debug, PartialEq)]
enum Owner {
    Ignored,
    Profile(String),
    PlainDefault,
}

/// Returns the profiles of a file, or its first bad line and what is wrong there.
pub(crate) fn read(credentials: bool, text: &str) -> Result<Profiles, (usize, ProfileFileFault)> {
    let mut owners = Vec::new();
    let mut properties: Vec<(Owner, String, String)> = Vec::new();
    let (mut continues, mut nested) = (false, false);
    for (index, line) in lines(text).into_iter().enumerate() {
        let fail = |fault| Err((index + 1, fault));
        let first = line.chars().next();
        if line.chars().all(is_space) || matches!(first, Some('#' | ';')) {
            continue;
        }
        let owner = owners.last().cloned();
        match first {
            Some('[') => {
                let Some(inside) = bracketed(line) else {
                    return fail(UnclosedSection);
                };
                owners.push(owner_of(credentials, &inside));
                continues = false;
            }
            _ if owner.is_none() => return fail(OutsideSection),
            Some(' ' | '\t') if !continues => return fail(NothingToContinue),
            Some(' ' | '\t') => {
                let added = trimmed(line);
                match halves(&added) {
                    None if nested => return fail(SubPropertyNoEquals),
                    Some((name, _)) if nested && name.is_empty() => {
                        return fail(SubPropertyNoName);
                    }
                    _ => {}
                }
                let (_, _, value) = properties.last_mut().expect("one is continued");
                *value = format!("{value}\n{added}");
            }
            _ => {
                let Some((key, value)) = halves(line) else {
                    return fail(NoEquals);
                };
                if key.is_empty() {
                    return fail(NoName);
                }
                (continues, nested) = (true, value.is_empty());
                properties.extend(owner.map(|owner| (owner, key.to_ascii_lowercase(), value)));
            }
        }
    }
    Ok(sorted(&owners, properties))
}

fn sorted(owners: &[Owner], properties: Vec<(Owner, String, String)>) -> Profiles {
    let default = || "default".to_owned();
    let prefixed = owners.contains(&Owner::Profile(default()));
    let name = |owner: &Owner| match owner {
        Owner::Profile(name) => Some(name.clone()),
        Owner::PlainDefault if !prefixed => Some(default()),
        Owner::PlainDefault | Owner::Ignored => None,
    };
    let names = owners.iter().filter_map(name);
    let mut profiles: Profiles = names.map(|name| (name, BTreeMap::new())).collect();
    for (owner, key, value) in properties {
        if let Some(name) = name(&owner) {
            if key.chars().all(is_name) {
                profiles.entry(name).or_default().insert(key, value);
            }
        }
    }
    profiles
}

fn owner_of(credentials: bool, inside: &str) -> Owner {
    let inside = trimmed(inside);
    if credentials {
        return match inside.as_str() {
            "" => Owner::Ignored,
            name => Owner::Profile(name.to_owned()),
        };
    }
    if inside == "default" {
        return Owner::PlainDefault;
    }
    let rest = inside.strip_prefix("profile").unwrap_or_default();
    if !rest.starts_with(is_space) {
        return Owner::Ignored;
    }
    unquoted(&trimmed(rest)).map_or(Owner::Ignored, Owner::Profile)
}

/// The one word that `text` is, letter by letter.
fn unquoted(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let quote = chars.next().filter(|c| "\"'".contains(*c));
    let name: String = match quote {
        Some(_) => chars.collect(),
        None => {
            return (!text.contains(|c| is_space(c) || "\"'\\".contains(c))).then(|| text.into());
        }
    };
    let name = name.strip_suffix(quote?)?;
    let wrong = name.contains(quote?) || quote == Some('"') && name.contains('\\');
    (!wrong && !name.is_empty()).then(|| name.to_owned())
}

/// What stands between the brackets of a line, if they are there and nothing but a comment follows.
fn bracketed(line: &str) -> Option<String> {
    let code: String = line.chars().take_while(|c| !"#;".contains(*c)).collect();
    let code = trimmed(&code);
    let long_enough = code.len() > 1 && code.starts_with('[') && code.ends_with(']');
    long_enough.then(|| code[1..code.len() - 1].to_owned())
}

/// What stands before and behind the first equals sign that is not in a comment.
fn halves(line: &str) -> Option<(String, String)> {
    let (mut key, mut value, mut seen, mut after_space) =
        (String::new(), String::new(), false, false);
    for c in line.chars() {
        if after_space && (c == '#' || c == ';') {
            break;
        }
        after_space = is_space(c);
        match (seen, c) {
            (false, '=') => seen = true,
            (false, c) => key.push(c),
            (true, c) => value.push(c),
        }
    }
    seen.then(|| (trimmed(&key), trimmed(&value)))
}

/// Lines end with LF or CR LF; nothing after the last one is no line.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    for line in &mut lines {
        if let Some(whole) = line.strip_suffix('\n') {
            *line = whole.strip_suffix('\r').unwrap_or(whole);
        }
    }
    lines
}

fn trimmed(text: &str) -> String {
    let skipped: String = text.chars().skip_while(|c| is_space(*c)).collect();
    let mut chars: Vec<char> = skipped.chars().collect();
    while chars.last().is_some_and(|c| is_space(*c)) {
        chars.pop();
    }
    chars.into_iter().collect()
}

fn is_space(c: char) -> bool {
    c == ' ' || c == '\t'
}

fn is_name(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' | '/' | '.' | '%' | '@' | ':' | '+')
}
