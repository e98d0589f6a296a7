//! A ledger as words, and back.

use super::clock::Clock;
use super::ledger::{Kind, Ledger, Source, Within};
use super::report::LimitName;
use super::seen::Seen;

const fn signed(bits: u64) -> i64 {
    i64::from_ne_bytes(bits.to_ne_bytes())
}

const fn bits(value: i64) -> u64 {
    u64::from_ne_bytes(value.to_ne_bytes())
}

fn within(mut word: impl FnMut() -> u64) -> Within {
    Within {
        lo: signed(word()),
        hi: signed(word()),
    }
}

impl Ledger {
    /// The words that a ledger takes.
    pub(crate) const WORDS: usize = 25;

    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let kind = match self.kind {
            Kind::Unknown => 0,
            Kind::Refill => 1,
            Kind::Window => 2,
            Kind::Sliding => 3,
        };
        let source = match self.source {
            Source::Guessed => 0,
            Source::Learned => 1,
            Source::Told => 2,
        };
        let flags = kind
            | (source << 2)
            | (u64::from(self.kind_told) << 4)
            | (u64::from(self.fresh) << 5)
            | (u64::from(self.first) << 6)
            | (u64::from(self.clock.offset.is_some()) << 7)
            | (u64::from(self.told) << 8)
            | (u64::from(self.moved) << 9)
            | (u64::from(self.doubt) << 17)
            | (u64::from(self.limit_told) << 25)
            | (u64::from(self.clock.millis) << 26)
            | (u64::from(self.given_up) << 27)
            | (u64::from(self.opens) << 28)
            | (u64::from(self.seen.cheaper) << 29)
            | (u64::from(self.seen.dear) << 30)
            | (u64::from(self.unhelped) << 31);
        let [hash, text_low, text_high] = self.policy.bits();
        let offset = self.clock.offset.unwrap_or_default();
        [
            flags,
            hash,
            text_low,
            text_high,
            self.limit,
            self.window,
            bits(self.left),
            self.position,
            self.at,
            bits(self.reset.lo),
            bits(self.reset.hi),
            self.rolled,
            bits(offset.lo),
            bits(offset.hi),
            bits(self.seen.others),
            bits(self.seen.own),
            bits(self.seen.net),
            self.seen.heaviest,
            self.seen.trip,
            self.pause,
            self.contradicted,
            bits(self.kept),
            self.heard_at,
            self.told_order,
            self.told_left,
        ]
    }

    pub(crate) fn from_words(words: &[u64; Self::WORDS]) -> Self {
        // In the order of `to_words`.
        let mut words = words.iter();
        let mut word = || words.next().copied().unwrap_or(0);
        let flags = word();
        let is = |bit: u32| flags & (1 << bit) != 0;
        let count = |bit: u32| u8::try_from((flags >> bit) & 0xff).unwrap_or(0);
        Self {
            kind: match flags & 3 {
                0 => Kind::Unknown,
                1 => Kind::Refill,
                2 => Kind::Window,
                _ => Kind::Sliding,
            },
            source: match (flags >> 2) & 3 {
                0 => Source::Guessed,
                1 => Source::Learned,
                _ => Source::Told,
            },
            kind_told: is(4),
            fresh: is(5),
            first: is(6),
            told: is(8),
            moved: count(9),
            doubt: count(17),
            limit_told: is(25),
            given_up: is(27),
            opens: is(28),
            unhelped: is(31),
            policy: LimitName::from_bits([word(), word(), word()]),
            limit: word(),
            window: word(),
            left: signed(word()),
            position: word(),
            at: word(),
            reset: within(&mut word),
            rolled: word(),
            clock: Clock {
                offset: Some(within(&mut word)).filter(|_| is(7)),
                millis: is(26),
            },
            seen: Seen {
                others: signed(word()),
                own: signed(word()),
                net: signed(word()),
                cheaper: is(29),
                dear: is(30),
                heaviest: word(),
                trip: word(),
            },
            pause: word(),
            contradicted: word(),
            kept: signed(word()),
            heard_at: word(),
            told_order: word(),
            told_left: word(),
        }
    }
}
