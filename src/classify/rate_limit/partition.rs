//! `RateLimit-Partition`: by which parameters the partitions of each policy are told apart.

use core::convert::Infallible;

use sfv::{
    BareItemFromInput, KeyRef, Parser,
    visitor::{
        EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor,
    },
};

use super::field::{Malformed, Partition};

/// The partition of a policy.
#[derive(Debug, Default)]
pub(in crate::classify) struct Parted {
    pub(in crate::classify) policy: Option<String>,
    /// All parameters: names and values, each with an end that none has in it.
    pub(in crate::classify) key: Vec<u8>,
}

/// Reads the partitions of all policies.
pub(in crate::classify) fn partitions(field: &[u8]) -> Result<Vec<Parted>, Malformed> {
    let mut parted = Vec::new();
    let read = Parser::new(field).parse_list_with_visitor(List(&mut parted));
    read.map_or(Err(Malformed), |()| Ok(parted))
}

struct List<'a>(&'a mut Vec<Parted>);

impl<'de> ListVisitor<'de> for List<'_> {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        self.0.push(Parted::default());
        Ok(self.0.last_mut())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl<'de> EntryVisitor<'de> for &mut Parted {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for &mut Parted {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        self.policy = match item {
            BareItemFromInput::String(text) => Some(text.as_str().to_owned()),
            BareItemFromInput::Token(text) => Some(text.as_str().to_owned()),
            _ => None,
        };
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for &mut Parted {
    type Out = ();
    type Error = Infallible;

    fn parameter(
        &mut self,
        key: &'de KeyRef,
        value: BareItemFromInput<'de>,
    ) -> Result<(), Infallible> {
        self.key.extend_from_slice(key.as_str().as_bytes());
        self.key.push(b'=');
        match Partition::from(&value) {
            Partition::Is(bytes) => self.key.extend(bytes),
            _ => self.key.extend(format!("{value:?}").into_bytes()),
        }
        self.key.push(0x1f);
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}
