//! A snapshot of scopes as counters and gauges of the crate `metrics`.

use alloc::string::String;

use ::metrics::{Label, counter, gauge};

use super::scopes::ScopesSnapshot;
use crate::strategy::metrics::{Described, describe};

pub(crate) const PUBLISHED: [Described; 4] = [
    Described::gauge("paceline_scopes", "Scopes that there are."),
    Described::gauge("paceline_scopes_max", "The most scopes that there may be."),
    Described::counter(
        "paceline_scopes_evicted_total",
        "Scopes dropped since the beginning.",
    ),
    Described::counter(
        "paceline_scopes_refused_total",
        "Scopes refused for want of room.",
    ),
];

impl ScopesSnapshot {
    /// Hands the snapshot to the recorder of the crate `metrics`, labelled `scopes` with `name`.
    ///
    /// | name | kind |
    /// |---|---|
    /// | `paceline_scopes` | gauge |
    /// | `paceline_scopes_max` | gauge |
    /// | `paceline_scopes_evicted_total` | counter |
    /// | `paceline_scopes_refused_total` | counter |
    ///
    /// The state of a scope is published by the scope's own snapshot. A label for each of very many
    /// keys costs more than the scopes do.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{RetryStrategy, Standard};
    ///
    /// let tables = Standard::builder().scopes().build()?;
    /// tables.snapshot().publish("tables");
    /// tables.for_each(|table, state| state.snapshot().publish(table));
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn publish(&self, name: &str) {
        describe(&PUBLISHED);
        let labels = [Label::new("scopes", String::from(name))];
        // A gauge takes no `u64`.
        let shown = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        gauge!("paceline_scopes", labels.iter()).set(shown(self.scopes));
        gauge!("paceline_scopes_max", labels.iter()).set(shown(self.max_scopes));
        counter!("paceline_scopes_evicted_total", labels.iter()).absolute(self.evicted);
        counter!("paceline_scopes_refused_total", labels.iter()).absolute(self.refused);
    }
}
