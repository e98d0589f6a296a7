//! A setting that may be changed while others go by it.

use super::sync::{AtomicU64, Ordering::Relaxed};

/// One word that is replaced as a whole.
#[derive(Debug)]
pub(crate) struct Setting(AtomicU64);

impl Setting {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed, here and below: all that belongs together is in the one word, and nothing is published with it. Who
        // reads the old value goes by what held a moment sooner.
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}
