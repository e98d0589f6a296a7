//! Values that share no cache line.

use core::{fmt, ops::Deref};

/// A value that shares no cache line with another.
///
/// The alignment is 128 bytes where the processor fetches lines of 64 in pairs or has lines of 128,
/// and 64 elsewhere. Only speed depends on this.
#[derive(Default)]
#[cfg_attr(
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "powerpc64"
    ),
    repr(align(128))
)]
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "powerpc64"
    )),
    repr(align(64))
)]
pub struct Padded<T>(T);

impl<T> Padded<T> {
    /// Creates a padded value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Shows the value alone.
impl<T: fmt::Debug> fmt::Debug for Padded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_no_line() {
        let pair = [Padded::new(0_u8), Padded::new(1)];
        let [first, second] = [&raw const *pair[0], &raw const *pair[1]].map(<*const u8>::addr);
        assert!(second - first >= 64, "{first} {second}");
        assert_eq!(first % 64, 0);
    }
}
