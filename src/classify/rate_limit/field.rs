//! Just as much of structured fields (RFC 9651) as it takes to read the header `RateLimit`.

use core::time::Duration;

use super::RateLimit;
use crate::headers::number;

/// The most digits of an integer in a structured field.
const LONGEST: usize = 15;

/// What is left to read.
struct Rest<'a>(&'a [u8]);

/// A value: an integer that is not negative, or anything else.
enum Bare {
    Integer(u64),
    Other,
}

/// The two numbers that count, as far as they are known.
#[derive(Default)]
struct Quota {
    remaining: Option<u64>,
    reset: Option<u64>,
}

/// Returns the tightest quota of a field, or `None` if it is not well formed or names none.
pub(super) fn parse(field: &[u8]) -> Option<RateLimit> {
    let mut rest = Rest(field);
    let (mut tightest, mut dictionary) = (None, Quota::default());
    loop {
        let listed = rest.member(&mut dictionary)?;
        merge(&mut tightest, &listed);
        rest.skip(b" \t");
        if rest.0.is_empty() {
            merge(&mut tightest, &dictionary);
            return tightest;
        }
        rest.eat(b',')?;
        rest.skip(b" \t");
    }
}

fn merge(tightest: &mut Option<RateLimit>, quota: &Quota) {
    let Some(remaining) = quota.remaining else {
        return;
    };
    let reset = quota.reset.map(Duration::from_secs);
    let limit = RateLimit { remaining, reset };
    *tightest = Some(tightest.map_or(limit, |other| limit.tighter(other)));
}

impl Quota {
    /// Takes over a number that counts. Anything else in its place makes the field worthless.
    fn set(&mut self, key: &[u8], names: [&[u8]; 2], value: &Bare) -> Option<()> {
        let place = if key == names[0] {
            &mut self.remaining
        } else if key == names[1] {
            &mut self.reset
        } else {
            return Some(());
        };
        let Bare::Integer(number) = *value else {
            return None;
        };
        *place = Some(number);
        Some(())
    }
}

impl<'a> Rest<'a> {
    /// Reads `key=value` into `dictionary`, or an item of a list, and the parameters of either.
    fn member(&mut self, dictionary: &mut Quota) -> Option<Quota> {
        let before = self.0;
        match self.key() {
            Some(key) if self.eat(b'=').is_some() => {
                let value = self.bare()?;
                dictionary.set(key, [b"remaining", b"reset"], &value)?;
            }
            _ => {
                self.0 = before;
                self.bare()?;
            }
        }
        let mut listed = Quota::default();
        while self.eat(b';').is_some() {
            self.skip(b" ");
            let key = self.key()?;
            let value = if self.eat(b'=').is_some() {
                self.bare()?
            } else {
                Bare::Other
            };
            listed.set(key, [b"r", b"t"], &value)?;
        }
        Some(listed)
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        let first = self.0.first()?;
        if !first.is_ascii_lowercase() && *first != b'*' {
            return None;
        }
        let in_key = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        };
        Some(self.take(in_key))
    }

    fn bare(&mut self) -> Option<Bare> {
        match *self.0.first()? {
            b'0'..=b'9' => return self.integer(),
            b'"' => self.string()?,
            b'%' => {
                self.eat(b'%')?;
                self.string()?;
            }
            b'-' | b'@' => {
                self.0 = self.0.get(1..)?;
                self.eat(b'-');
                self.integer()?;
            }
            b'?' => {
                self.eat(b'?')?;
                self.eat(b'0').or_else(|| self.eat(b'1'))?;
            }
            b':' => {
                self.eat(b':')?;
                self.take(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.eat(b':')?;
            }
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.take(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
            }
            _ => return None,
        }
        Some(Bare::Other)
    }

    /// Reads an integer. A fraction is something else.
    fn integer(&mut self) -> Option<Bare> {
        let digits = self.take(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > LONGEST {
            return None;
        }
        if self.eat(b'.').is_none() {
            return number(digits).map(Bare::Integer);
        }
        let fraction = self.take(|byte| byte.is_ascii_digit());
        (1..=3).contains(&fraction.len()).then_some(Bare::Other)
    }

    fn string(&mut self) -> Option<()> {
        self.eat(b'"')?;
        loop {
            self.take(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
            if self.eat(b'"').is_some() {
                return Some(());
            }
            self.eat(b'\\')?;
            self.eat(b'"').or_else(|| self.eat(b'\\'))?;
        }
    }

    /// Takes the bytes up to the first that is not like that.
    fn take(&mut self, like: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !like(*byte));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }

    fn skip(&mut self, spaces: &[u8]) {
        self.take(|byte| spaces.contains(&byte));
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }
}
