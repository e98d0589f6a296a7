//! Memory that is not there before it is needed.

use alloc::boxed::Box;

use once_cell::race::OnceBox;

/// A value that is made when it is first needed, and stays.
///
/// No thread waits: of two threads that make the value at once, one drops its value. A thread that
/// finds the value finds it whole (its pointer is stored with release and loaded with acquire).
#[derive(Debug)]
pub struct Lazy<T>(OnceBox<T>);

impl<T> Lazy<T> {
    /// Creates an empty cell; `_make` is for models, which have the value from the start.
    pub fn new(_make: impl FnOnce() -> T) -> Self {
        Self(OnceBox::new())
    }

    /// Returns the value if it has been made.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Returns the value, and makes it if need be.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }
}
