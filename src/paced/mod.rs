//! The paced law.

mod answer;
mod curve;
mod delivered;
mod memory;
mod settings;

pub(crate) use answer::{Cut, Seen, after_throttle, after_window, first_cut, is_over, started_at};
pub(crate) use curve::{is_starved, rate_at};
pub(crate) use delivered::{Delivered, WINDOW, WindowEnd};
pub(crate) use memory::Memory;
pub use settings::{PacedSettings, PacedSettingsError};
