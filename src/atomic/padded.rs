//! A value with cache lines of its own.

use core::ops::Deref;

/// Keeps `T` away from whatever other threads write.
///
/// Two lines of 64 bytes, because processors fetch neighbours in pairs, or one of 128.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Padded<T>(T);

impl<T> Padded<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
