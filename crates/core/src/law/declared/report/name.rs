//! Names of policies and units.

use core::fmt;

/// The name of a policy or of a unit, without regard to case.
///
/// Names are compared as a whole, by a hash of 64 bits. The first sixteen bytes are kept as text,
/// for diagnostics. Names that differ only later look the same, but are different.
///
/// # Examples
///
/// ```
/// use paceline::law::LimitName;
///
/// let minute = LimitName::new("Premium-Tier-Per-Minute");
/// assert_eq!(minute, LimitName::new("premium-tier-per-minute"));
/// assert_ne!(minute, LimitName::new("premium-tier-per-hour"));
/// assert_eq!(minute.as_str(), "premium-tier-per");
/// ```
#[derive(Clone, Copy, Default)]
pub struct LimitName {
    /// The FNV-1a hash of the name in lower case and of its partition, if any. 0 for the empty
    /// name.
    hash: u64,
    /// The first bytes of the name, padded with zeros.
    text: [u8; Self::SHOWN],
}

impl LimitName {
    const SHOWN: usize = 16;
    pub(super) const EMPTY: Self = Self {
        hash: 0,
        text: [0; Self::SHOWN],
    };
    /// The offset basis and the prime of FNV-1a for 64 bits.
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    /// Creates a name from text. [`as_str`](Self::as_str) shows letters in lower case, and bytes
    /// that are not printable ASCII as `?`.
    #[must_use]
    pub fn new(text: impl AsRef<[u8]>) -> Self {
        Self::of(text.as_ref())
    }

    /// [`new`](Self::new) for constants.
    #[doc(hidden)]
    #[must_use]
    pub const fn of(name: &[u8]) -> Self {
        let mut hash = Self::BASIS;
        let mut text = 0_u128;
        let mut shift = 0_u32;
        let mut rest = name;
        while let [first, after @ ..] = rest {
            let small = first.to_ascii_lowercase();
            hash = Self::hashed(hash, small);
            let shown = if small.is_ascii_graphic() {
                small
            } else {
                b'?'
            };
            // Bytes after the sixteenth are shifted out.
            text |= match (shown as u128).checked_shl(shift) {
                Some(shown) => shown,
                None => 0,
            };
            shift = shift.saturating_add(u8::BITS);
            rest = after;
        }
        match name {
            [] => Self::EMPTY,
            _ => Self {
                hash: Self::not_empty(hash),
                text: text.to_le_bytes(),
            },
        }
    }

    /// Returns the name of one partition of this policy. A policy counts each partition separately.
    ///
    /// The text stays that of the policy. Keys are compared as a whole, with regard to case.
    #[doc(hidden)]
    #[must_use]
    pub fn of_partition(self, key: impl AsRef<[u8]>) -> Self {
        // No name in a header has a zero byte, so no name can pass for a partition.
        let key = key.as_ref().iter().copied();
        let hash = core::iter::once(0).chain(key).fold(self.hash, Self::hashed);
        Self {
            hash: Self::not_empty(hash),
            text: self.text,
        }
    }

    /// Returns the first sixteen bytes of the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.text.iter().position(|byte| *byte == 0);
        let bytes = self.text.get(..length.unwrap_or(Self::SHOWN));
        core::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    const fn hashed(hash: u64, byte: u8) -> u64 {
        (hash ^ byte as u64).wrapping_mul(Self::PRIME)
    }

    /// Returns a hash other than 0, the empty name's.
    const fn not_empty(hash: u64) -> u64 {
        if hash == 0 { 1 } else { hash }
    }

    /// Returns the name as words: the hash, and both halves of the text.
    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    pub(crate) const fn bits(self) -> [u64; 3] {
        let text = u128::from_le_bytes(self.text);
        [self.hash, text as u64, (text >> u64::BITS) as u64]
    }

    /// Returns the name of these [`bits`](Self::bits).
    pub(crate) const fn from_bits([hash, low, high]: [u64; 3]) -> Self {
        let text = low as u128 | ((high as u128) << u64::BITS);
        Self {
            hash,
            text: text.to_le_bytes(),
        }
    }
}

impl PartialEq for LimitName {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for LimitName {}

impl fmt::Debug for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LimitName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
