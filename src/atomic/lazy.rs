//! Memory that is not there before somebody needs it.

#[cfg(all(loom, feature = "loom"))]
pub(super) use eager::Lazy;
#[cfg(not(all(loom, feature = "loom")))]
pub(super) use late::Lazy;

#[cfg(not(all(loom, feature = "loom")))]
mod late {
    use alloc::boxed::Box;

    use once_cell::race::OnceBox;

    /// A value that is made when it is first needed, and stays.
    ///
    /// Nobody waits: of two threads that make it at once, one lets its own go. Who finds the value
    /// finds it whole (its pointer is stored with release and loaded with acquire).
    #[derive(Debug)]
    pub(crate) struct Lazy<T>(OnceBox<T>);

    impl<T> Lazy<T> {
        /// Creates an empty one; `_make` is for models, which have the value from the start.
        pub(crate) fn new(_make: impl FnOnce() -> T) -> Self {
            Self(OnceBox::new())
        }

        /// Returns the value if it has been made.
        pub(crate) fn get(&self) -> Option<&T> {
            self.0.get()
        }

        /// Returns the value, and makes it if need be.
        pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
            self.0.get_or_init(|| Box::new(make()))
        }
    }
}

/// Loom explores what it knows of: here the value is there from the start, and its pointer is none
/// of its business.
#[cfg(all(loom, feature = "loom"))]
mod eager {
    use alloc::boxed::Box;

    #[derive(Debug)]
    pub(crate) struct Lazy<T>(Box<T>);

    impl<T> Lazy<T> {
        pub(crate) fn new(make: impl FnOnce() -> T) -> Self {
            Self(Box::new(make()))
        }

        #[expect(clippy::unnecessary_wraps, reason = "as the other one")]
        pub(crate) fn get(&self) -> Option<&T> {
            Some(&self.0)
        }

        pub(crate) fn get_or_make(&self, _make: impl FnOnce() -> T) -> &T {
            &self.0
        }
    }
}
