//! The structured fields (RFC 9651) in which a service declares limits: lists and dictionaries of
//! numbers.

use core::convert::Infallible;

use sfv::{
    BareItemFromInput, KeyRef, Parser,
    visitor::{
        DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor,
        ParameterVisitor,
    },
};

/// What stands in the place of a number from zero on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Number {
    #[default]
    Absent,
    Is(u64),
    /// A value of another type, or a negative number.
    Wrong,
}

impl Number {
    /// Returns the number if there is one.
    ///
    /// # Errors
    ///
    /// Returns [`Malformed`] if something else is in its place.
    pub(super) fn get(self) -> Result<Option<u64>, Malformed> {
        match self {
            Self::Absent => Ok(None),
            Self::Is(number) => Ok(Some(number)),
            Self::Wrong => Err(Malformed),
        }
    }
}

/// The field is no structured field of its type, or a value in it has the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl From<&BareItemFromInput<'_>> for Number {
    fn from(value: &BareItemFromInput<'_>) -> Self {
        match value {
            BareItemFromInput::Integer(number) => {
                u64::try_from(*number).map_or(Self::Wrong, Self::Is)
            }
            _ => Self::Wrong,
        }
    }
}

/// An item of a list or a dictionary, with the parameters that the drafts define.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// The item itself if it is a string or a token.
    pub(super) name: Option<String>,
    /// The item itself if it is a number, as in the policies of drafts 03 to 07.
    pub(super) value: Number,
    /// `q`, the quota of a policy.
    pub(super) quota: Number,
    /// `w`, the window in seconds.
    pub(super) window: Number,
    /// `r`, what remains.
    pub(super) remaining: Number,
    /// `t`, the seconds until the reset.
    pub(super) reset: Number,
    /// `a`, what is available: another name for `r`.
    pub(super) available: Number,
    /// `c`, what the request cost.
    pub(super) cost: Number,
    /// `qu`, what a quota counts.
    pub(super) unit: Option<String>,
    /// `pk`, the key of the partition.
    pub(super) partition: Partition,
    /// All parameters: names and values, each ended by a byte that no parameter contains.
    pub(super) parameters: Vec<u8>,
}

/// The key of a partition, which should be a byte sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Partition {
    #[default]
    Absent,
    Is(Vec<u8>),
    /// A value that is no text, no bytes and no integer.
    Wrong,
}

impl From<&BareItemFromInput<'_>> for Partition {
    fn from(value: &BareItemFromInput<'_>) -> Self {
        match value {
            BareItemFromInput::ByteSequence(bytes) => Self::Is(bytes.clone()),
            BareItemFromInput::String(text) => Self::Is(text.as_str().into()),
            BareItemFromInput::Token(text) => Self::Is(text.as_str().into()),
            BareItemFromInput::Integer(number) => Self::Is(number.to_string().into()),
            _ => Self::Wrong,
        }
    }
}

impl Member {
    /// Returns what remains and the seconds until the reset. They are `r` and `t`, or without `r`
    /// they are `a` and `t` or `w`.
    pub(super) fn left(&self) -> Result<Option<(u64, Option<u64>)>, Malformed> {
        let (left, reset) = match self.remaining {
            Number::Absent if self.reset == Number::Absent => (self.available, self.window),
            Number::Absent => (self.available, self.reset),
            _ => (self.remaining, self.reset),
        };
        let Some(left) = left.get()? else {
            return Ok(None);
        };
        Ok(Some((left, reset.get()?)))
    }
}

/// Reads a list. Inner lists become members of the wrong type.
pub(super) fn list(field: &[u8]) -> Result<Vec<Member>, Malformed> {
    let mut members = Vec::new();
    let read = Parser::new(field).parse_list_with_visitor(List(&mut members));
    read.map_or(Err(Malformed), |()| Ok(members))
}

/// The dictionary of draft 07.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    pub(super) limit: Member,
    pub(super) remaining: Member,
    pub(super) reset: Member,
}

/// Reads a dictionary. Other keys are checked and ignored.
pub(super) fn dictionary(field: &[u8]) -> Result<Dictionary, Malformed> {
    let mut found = Dictionary::default();
    let read = Parser::new(field).parse_dictionary_with_visitor(&mut found);
    read.map_or(Err(Malformed), |()| Ok(found))
}

struct List<'a>(&'a mut Vec<Member>);

impl<'de> ListVisitor<'de> for List<'_> {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        self.0.push(Member::default());
        Ok(self.0.last_mut())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl<'de> EntryVisitor<'de> for &mut Member {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        self.value = Number::Wrong;
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for &mut Member {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        self.value = Number::from(&item);
        self.name = text(&item);
        Ok(self)
    }
}

/// If a parameter comes twice, the last counts (RFC 9651, section 4.2.3.2).
impl<'de> ParameterVisitor<'de> for &mut Member {
    type Out = ();
    type Error = Infallible;

    fn parameter(
        &mut self,
        key: &'de KeyRef,
        value: BareItemFromInput<'de>,
    ) -> Result<(), Infallible> {
        self.parameters.extend_from_slice(key.as_str().as_bytes());
        self.parameters.push(b'=');
        match Partition::from(&value) {
            Partition::Is(bytes) => self.parameters.extend(bytes),
            _ => self.parameters.extend(format!("{value:?}").into_bytes()),
        }
        self.parameters.push(0x1f);
        let place = match key.as_str() {
            "q" => &mut self.quota,
            "w" => &mut self.window,
            "r" => &mut self.remaining,
            "t" => &mut self.reset,
            "a" => &mut self.available,
            "c" => &mut self.cost,
            "pk" => {
                self.partition = Partition::from(&value);
                return Ok(());
            }
            "qu" => {
                self.unit = text(&value);
                return Ok(());
            }
            _ => return Ok(()),
        };
        *place = Number::from(&value);
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn text(item: &BareItemFromInput<'_>) -> Option<String> {
    match item {
        BareItemFromInput::String(text) => Some(text.as_str().to_owned()),
        BareItemFromInput::Token(text) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

/// If a key comes twice, the last counts (RFC 9651, section 4.2.2).
impl<'de> DictionaryVisitor<'de> for &mut Dictionary {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(match key.as_str() {
            "limit" => Some(&mut self.limit),
            "remaining" => Some(&mut self.remaining),
            "reset" => Some(&mut self.reset),
            _ => None,
        })
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}
