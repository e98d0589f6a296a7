//! The bars on standard error, one for each mode.

use core::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{mode::Mode, number::grouped};

const TEMPLATE: &str = "{prefix:<9} {bar:32} {pos:>6}/{len}  {msg}";

/// The bars of a run. They draw themselves only if standard error is a terminal.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    bars: MultiProgress,
}

impl Progress {
    /// Adds the bar of `mode`, which counts up to `objects`.
    pub(crate) fn bar(&self, mode: Mode, objects: u32) -> Bar {
        let bar = self.bars.add(ProgressBar::new(objects.into()));
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(mode.name());
        Bar(bar)
    }
}

/// The bar of one mode. Its clones are the same bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Moves the bar by one object that is done, copied or not.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }

    /// Shows what has been lost and refused so far.
    pub(crate) fn show(&self, failed: u64, throttled: u64) {
        let (failed, throttled) = (grouped(failed), grouped(throttled));
        self.0
            .set_message(format!("{failed} failed, throttled {throttled} times"));
    }

    /// Leaves the bar as it is, with the time that the mode took.
    pub(crate) fn finish(&self, failed: u64, throttled: u64, elapsed: Duration) {
        let (failed, throttled) = (grouped(failed), grouped(throttled));
        let seconds = elapsed.as_secs_f64();
        self.0.finish_with_message(format!(
            "{failed} failed, throttled {throttled} times, {seconds:.1} s"
        ));
    }
}
