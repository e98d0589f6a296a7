//! A snapshot as the counters and gauges of the crate `metrics`.

use ::metrics::{Label, counter, gauge};

use super::snapshot::StrategySnapshot;

impl StrategySnapshot {
    /// Hands the snapshot to the recorder of the crate `metrics`, labelled `strategy` with `name`.
    ///
    /// To be called from wherever metrics are collected, every second for example: requests
    /// themselves record nothing.
    ///
    /// | name | kind | value |
    /// |---|---|---|
    /// | `paceline_quota_available` | gauge | tokens |
    /// | `paceline_quota_capacity` | gauge | tokens |
    /// | `paceline_retries_granted_total` | counter | |
    /// | `paceline_retries_refused_total` | counter | by `cause`: `attempts`, `safety`, `quota`, `time`, `other` |
    /// | `paceline_sends_delayed_total` | counter | |
    /// | `paceline_sends_delayed_background_total` | counter | those of them that are background |
    /// | `paceline_sends_refused_total` | counter | |
    /// | `paceline_throttled_total` | counter | failures that were throttling |
    /// | `paceline_cuts_total` | counter | |
    /// | `paceline_credited_tokens_total` | counter | tokens |
    /// | `paceline_send_rate_engaged` | gauge | 1 or 0; this and those below with a send rate only |
    /// | `paceline_send_rate_fill` | gauge | tokens per second |
    /// | `paceline_send_rate_available` | gauge | tokens |
    /// | `paceline_send_rate_measured` | gauge | requests per second |
    /// | `paceline_send_rate_waiting` | gauge | tokens promised to those in line |
    /// | `paceline_send_rate_background_waiting` | gauge | tokens that background waits for |
    /// | `paceline_send_rate_background_released_total` | counter | tokens that background got |
    ///
    /// With [several send rates](crate::config::StrategyBuilder::also) those of the further ones
    /// have the label `limit`, from 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{RetryStrategy, Standard};
    ///
    /// let orders = Standard::new();
    /// orders.snapshot().publish("orders");
    /// ```
    pub fn publish(&self, name: &str) {
        let strategy = Label::new("strategy", String::from(name));
        let labels = [strategy.clone()];
        let (quota, counts) = (&self.quota, &self.counts);
        gauge!("paceline_quota_available", labels.iter()).set(quota.available);
        gauge!("paceline_quota_capacity", labels.iter()).set(quota.capacity);
        for (cause, count) in [
            ("attempts", counts.refused_attempts),
            ("safety", counts.refused_safety),
            ("quota", counts.refused_quota),
            ("time", counts.refused_time),
            ("other", counts.refused_other),
        ] {
            let labels = vec![strategy.clone(), Label::new("cause", cause)];
            counter!("paceline_retries_refused_total", labels).absolute(count);
        }
        counter!("paceline_retries_granted_total", labels.iter()).absolute(counts.granted);
        counter!("paceline_sends_delayed_total", labels.iter()).absolute(counts.delayed);
        counter!("paceline_sends_delayed_background_total", labels.iter())
            .absolute(counts.delayed_background);
        counter!("paceline_sends_refused_total", labels.iter()).absolute(counts.refused_sends);
        counter!("paceline_throttled_total", labels.iter()).absolute(counts.throttled);
        counter!("paceline_cuts_total", labels.iter()).absolute(counts.cuts);
        counter!("paceline_credited_tokens_total", labels.iter()).absolute(counts.credited);
        let rates = core::iter::once(&self.rate).chain(&self.further_rates);
        for (limit, rate) in rates.enumerate() {
            let Some(rate) = rate else { continue };
            let mut labels = labels.to_vec();
            if limit > 0 {
                labels.push(Label::new("limit", limit.to_string()));
            }
            let engaged = u8::from(rate.enabled);
            gauge!("paceline_send_rate_engaged", labels.iter()).set(engaged);
            gauge!("paceline_send_rate_fill", labels.iter()).set(rate.fill_rate);
            gauge!("paceline_send_rate_available", labels.iter()).set(rate.available);
            gauge!("paceline_send_rate_measured", labels.iter()).set(rate.measured_rate);
            let waiting = u32::try_from(rate.waiting).unwrap_or(u32::MAX);
            gauge!("paceline_send_rate_waiting", labels.iter()).set(waiting);
            let waiting = u32::try_from(rate.background.waiting).unwrap_or(u32::MAX);
            gauge!("paceline_send_rate_background_waiting", labels.iter()).set(waiting);
            counter!(
                "paceline_send_rate_background_released_total",
                labels.iter()
            )
            .absolute(rate.background.released);
        }
    }
}
