//! Fields of a 128-bit word.

/// The bits of a time in a word: nanoseconds since the limiter's start, 146 years of them.
pub(crate) const TIME_BITS: u32 = 62;

/// The last time that a word holds. Later times count as this time.
pub(crate) const LAST_TIME: u64 = (1 << TIME_BITS) - 1;

/// A field of `width` bits, `shift` bits up.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    shift: u32,
    width: u32,
}

impl Field {
    /// Returns a field of `width` bits, at most 64, at the bottom of the word.
    pub(crate) const fn lowest(width: u32) -> Self {
        Self { shift: 0, width }
    }

    /// Returns a field of `width` bits, at most 64, right above this one.
    pub(crate) const fn above(self, width: u32) -> Self {
        Self {
            shift: self.shift.wrapping_add(self.width),
            width,
        }
    }

    /// Returns `true` if this field ends at the top of the word.
    #[allow(
        dead_code,
        reason = "asserted at compile time, which Rust 1.85 does not count as a use"
    )]
    pub(crate) const fn is_last(self) -> bool {
        self.shift.wrapping_add(self.width) == u128::BITS
    }

    const fn mask(self) -> u64 {
        u64::MAX >> u64::BITS.wrapping_sub(self.width)
    }

    /// Returns the field's value in `word`.
    #[expect(clippy::cast_possible_truncation, reason = "masked to the width")]
    pub(crate) const fn get(self, word: u128) -> u64 {
        self.wrapped((word >> self.shift) as u64)
    }

    /// Returns a word that has the low bits of `value` in this field and 0 elsewhere.
    pub(crate) const fn put(self, value: u64) -> u128 {
        (self.wrapped(value) as u128) << self.shift
    }

    /// Returns `value` as the field would hold it.
    pub(crate) const fn wrapped(self, value: u64) -> u64 {
        value & self.mask()
    }

    /// Returns the field's value in `word` plus one, wrapping.
    pub(crate) const fn next(self, word: u128) -> u64 {
        self.wrapped(self.get(word).wrapping_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_holds_its_bits_and_no_others() {
        let low = Field::lowest(3);
        let middle = low.above(64);
        let high = middle.above(61);
        assert!(high.is_last() && !middle.is_last() && !low.is_last());
        assert_eq!(low.put(u64::MAX), 0b111);
        assert_eq!(middle.put(u64::MAX), u128::from(u64::MAX) << 3);
        assert_eq!(high.put(u64::MAX), u128::MAX << 67);
        let word = low.put(5) | middle.put(u64::MAX) | high.put(9);
        assert_eq!(
            (low.get(word), middle.get(word), high.get(word)),
            (5, u64::MAX, 9)
        );
        assert_eq!(
            (low.next(word), middle.next(word), high.next(word)),
            (6, 0, 10)
        );
        assert_eq!((low.wrapped(8), low.wrapped(15)), (0, 7));
        assert_eq!(LAST_TIME, Field::lowest(TIME_BITS).wrapped(u64::MAX));
    }
}
