//! What an operation tells its host.

use core::{error::Error, fmt};

use super::{Attempt, Stop};
use crate::wait::Rest;

/// What the host of an [`Attempts`](super::Attempts) does next.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Sleep for a backoff. No place in line is held meanwhile.
    Sleep(Rest),
    /// Wait in line. Ask again at the end of the rest, or when the waker is woken.
    InLine(Rest),
    /// Send this attempt.
    Send(Attempt),
    /// Stop. There is no further attempt.
    Stop(Stop),
}

/// What follows a failed attempt.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// There is another attempt, after this backoff. [`Attempts::next`](super::Attempts::next) says
    /// the same.
    Again(Rest),
    /// There is no other attempt. The host sleeps [`Stop::delay`], which is nearly always zero, and
    /// returns the failure.
    Stop(Stop),
}

/// An outcome was reported while no attempt was under way. Nothing has changed.
#[derive(Debug, PartialEq, Eq)]
pub struct NotSending;

impl fmt::Display for NotSending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an outcome was reported while no attempt was under way")
    }
}

impl Error for NotSending {}
