//! What the crate `metrics` gets: a snapshot as counters and gauges, and what each request adds.

use ::metrics::{Key, Label, Level, Metadata, Unit, counter, gauge, with_recorder};

use super::{
    builder::StrategyBuilder,
    event::EventKind,
    snapshot::{StrategyCounts, StrategySnapshot},
};
use crate::{SendRateSnapshot, snapshot::RetryQuotaSnapshot};

/// How a metric is described to the recorder.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    pub(crate) help: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Described {
    pub(crate) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self::of(Kind::Counter, Unit::Count, name, help)
    }

    pub(crate) const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self::of(Kind::Gauge, Unit::Count, name, help)
    }

    const fn of(kind: Kind, unit: Unit, name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            kind,
            unit,
            help,
        }
    }
}

/// Declares metrics of a [snapshot](StrategySnapshot::publish): the kind, the name, the help, and the
/// value of each. `$described` lists the metrics, and `$publish` hands them to the recorder.
macro_rules! published {
    (
        $described:ident, $publish:ident($seen:ident: $type:ty):
        $($kind:ident $name:literal $help:literal => $value:expr;)+
    ) => {
        const $described: &[Described] = &[$(Described::$kind($name, $help)),+];

        fn $publish($seen: &$type, labels: &[Label]) {
            $(published!($kind $name labels $value);)+
        }
    };
    (counter $name:literal $labels:ident $value:expr) => {
        counter!($name, $labels.iter()).absolute($value)
    };
    (gauge $name:literal $labels:ident $value:expr) => {
        gauge!($name, $labels.iter()).set($value)
    };
}

published! {
    OF_QUOTA, publish_quota(quota: RetryQuotaSnapshot):
    gauge "paceline_quota_available" "Tokens in the retry quota." => quota.available;
    gauge "paceline_quota_capacity" "The most tokens that the retry quota holds."
        => quota.capacity;
}

published! {
    OF_COUNTS, publish_counts(counts: StrategyCounts):
    counter "paceline_retries_granted_total" "Retries granted." => counts.granted;
    counter "paceline_sends_delayed_total" "Attempts that had to wait in line."
        => counts.delayed;
    counter "paceline_sends_delayed_background_total" "Background attempts that had to wait."
        => counts.delayed_background;
    counter "paceline_sends_refused_total"
        "Attempts refused because they would have had to wait for too long."
        => counts.refused_sends;
    counter "paceline_throttled_total" "Failures that were throttling." => counts.throttled;
    counter "paceline_cuts_total" "Throttles that lowered the send rate." => counts.cuts;
    counter "paceline_credited_tokens_total" "Tokens that successes paid into the quota."
        => counts.credited;
}

published! {
    OF_RATE, publish_rate(rate: SendRateSnapshot):
    gauge "paceline_send_rate_enabled" "1 while sends are limited, else 0."
        => u8::from(rate.enabled);
    gauge "paceline_send_rate_fill"
        "Tokens per second of the send rate; about 10⁹ while not enabled (not under the published law)."
        => rate.fill_rate;
    gauge "paceline_send_rate_available" "Tokens in the bucket of the send rate."
        => rate.available;
    gauge "paceline_send_rate_measured" "Requests per second, as measured." => rate.measured_rate;
    gauge "paceline_send_rate_waiting" "Tokens promised to the attempts in line."
        => u32::try_from(rate.waiting).unwrap_or(u32::MAX);
    gauge "paceline_send_rate_background_waiting" "Tokens that background attempts wait for."
        => u32::try_from(rate.background.waiting).unwrap_or(u32::MAX);
    counter "paceline_send_rate_background_released_total" "Tokens that background attempts got."
        => rate.background.released;
}

/// The metric that has a value for each cause.
const REFUSED: Described = Described::counter(
    "paceline_retries_refused_total",
    "Retries refused, by cause.",
);

/// The metrics of a snapshot.
const PUBLISHED: [&[Described]; 4] = [OF_QUOTA, &[REFUSED], OF_COUNTS, OF_RATE];

/// The metrics of [each request](StrategyBuilder::metrics).
const RECORDED: [Described; 3] = [
    Described::counter("paceline_sends_total", "Attempts sent."),
    Described::of(
        Kind::Histogram,
        Unit::Seconds,
        "paceline_send_wait_seconds",
        "How long attempts waited in line.",
    ),
    Described::of(
        Kind::Histogram,
        Unit::Count,
        "paceline_attempts",
        "Attempts that operations which were sent took, whether they succeeded or not.",
    ),
];

/// Describes metrics to the recorder.
pub(crate) fn describe(metrics: &[Described]) {
    for Described {
        name,
        kind,
        unit,
        help,
    } in metrics
    {
        match kind {
            Kind::Counter => ::metrics::describe_counter!(*name, *unit, *help),
            Kind::Gauge => ::metrics::describe_gauge!(*name, *unit, *help),
            Kind::Histogram => ::metrics::describe_histogram!(*name, *unit, *help),
        }
    }
}

impl<M> StrategyBuilder<M> {
    /// Records each request with the recorder of the crate `metrics`, labelled `strategy` with
    /// `name`. It also [names](Self::name) the strategy, unless `name` is called.
    ///
    /// | name | kind | value |
    /// |---|---|---|
    /// | `paceline_sends_total` | counter | attempts sent, by `class`: `foreground`, `background` |
    /// | `paceline_send_wait_seconds` | histogram | how long each waited in line, by `class` |
    /// | `paceline_attempts` | histogram | attempts of each operation that was sent and has ended |
    ///
    /// All scopes of one builder are recorded together. Without this call, requests
    /// record nothing. [`publish`](StrategySnapshot::publish) has the other metrics.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let orders = Standard::builder().metrics("orders").build()?; // named in logs too
    /// orders.run(|_| Ok::<_, Failure>(())).unwrap(); // one send, one attempt
    /// orders.publish(); // every few seconds, by the same name
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn metrics(mut self, name: &str) -> Self {
        describe(&RECORDED);
        self.choices.metrics_name = Some(name.into());
        let strategy = of_strategy(name);
        let key = |metric: &'static str, labels: &[Label]| {
            Key::from_parts(metric, [strategy.as_slice(), labels].concat())
        };
        let [sends, waits, taken] = RECORDED.map(|metric| metric.name);
        let by_class = ["foreground", "background"].map(|class| {
            let class = [Label::new("class", class)];
            (key(sends, &class), key(waits, &class))
        });
        let taken = key(taken, &[]);
        // The recorder is asked each time, because an exporter may have dropped an idle series. An
        // earlier registration then has no effect.
        self.on_event(move |event| {
            with_recorder(|recorder| match event.kind {
                EventKind::Sent { waited, background } => {
                    let [foreground, behind] = &by_class;
                    let (sends, waits) = if background { behind } else { foreground };
                    recorder.register_counter(sends, &METADATA).increment(1);
                    recorder
                        .register_histogram(waits, &METADATA)
                        .record(waited);
                }
                EventKind::Succeeded { attempts }
                | EventKind::Cancelled { attempts }
                | EventKind::RetryRefused {
                    attempt: attempts, ..
                }
                // After a failed attempt the refusal has recorded the attempts.
                | EventKind::GaveUp {
                    attempts,
                    failure: None,
                    ..
                // An operation that was never sent took no attempts.
                } if attempts > 0 => recorder
                    .register_histogram(&taken, &METADATA)
                    .record(attempts),
                _ => {}
            });
        })
    }
}

/// Returns the label of a strategy; none if it has no name.
fn of_strategy(name: &str) -> Vec<Label> {
    let label = || Label::new("strategy", String::from(name));
    (!name.is_empty()).then(label).into_iter().collect()
}

const METADATA: Metadata<'_> = Metadata::new("paceline", Level::INFO, Some("paceline"));

impl StrategySnapshot {
    /// Hands the snapshot to the recorder of the crate `metrics`, labelled `strategy` with `name`.
    /// [`RetryStrategyExt::publish`](crate::RetryStrategyExt::publish) takes the strategy's own name.
    ///
    /// Call it where metrics are collected, for example every few seconds. Requests record nothing
    /// for it. A series that is no longer published, such as the series of a dropped scope, keeps
    /// its last value until the exporter drops it. Set an idle timeout in the exporter, of a few
    /// times the interval. [`guide::operating`](crate::guide::operating) shows an example.
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
    /// | `paceline_send_rate_enabled` | gauge | 1 or 0; this and those below with a send rate only |
    /// | `paceline_send_rate_fill` | gauge | tokens per second |
    /// | `paceline_send_rate_available` | gauge | tokens |
    /// | `paceline_send_rate_measured` | gauge | requests per second |
    /// | `paceline_send_rate_waiting` | gauge | tokens promised to the attempts in line |
    /// | `paceline_send_rate_background_waiting` | gauge | tokens that background waits for |
    /// | `paceline_send_rate_background_released_total` | counter | tokens that background got |
    ///
    /// With [several send rates](crate::config::StrategyBuilder::also), the metrics of the further
    /// rates have the label `limit`, from 1.
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
        PUBLISHED.into_iter().for_each(describe);
        describe(&RECORDED); // again, if the recorder was installed after the strategies were built
        let labels = of_strategy(name);
        publish_quota(&self.quota, &labels);
        let counts = &self.counts;
        for (cause, count) in [
            ("attempts", counts.refused_attempts),
            ("safety", counts.refused_safety),
            ("quota", counts.refused_quota),
            ("time", counts.refused_time),
            ("other", counts.refused_other),
        ] {
            let labels = [labels.as_slice(), &[Label::new("cause", cause)]].concat();
            counter!(REFUSED.name, labels).absolute(count);
        }
        publish_counts(counts, &labels);
        let rates = core::iter::once(&self.rate).chain(&self.further_rates);
        for (limit, rate) in rates.enumerate() {
            let Some(rate) = rate else { continue };
            let mut labels = labels.clone();
            if limit > 0 {
                labels.push(Label::new("limit", limit.to_string()));
            }
            publish_rate(rate, &labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_metric_as_it_is_described() {
        let page = include_str!("../guide/operating.md");
        let mut listed: Vec<_> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `paceline_"))
            .map(|row| {
                let cells: Vec<_> = row.split(" | ").collect();
                let [name, kind, _labels, help] = cells[..] else {
                    panic!("{row}: four columns")
                };
                let help = help.strip_suffix(" |").expect("the end of a row");
                (
                    format!("paceline_{}", name.trim_end_matches('`')),
                    kind,
                    help,
                )
            })
            .collect();
        #[cfg(feature = "scopes")]
        let scopes = crate::scope::metrics::PUBLISHED.iter();
        #[cfg(not(feature = "scopes"))]
        let scopes = {
            listed.retain(|(name, ..)| !name.starts_with("paceline_scopes"));
            [].iter()
        };
        let mut described: Vec<_> = PUBLISHED
            .into_iter()
            .flatten()
            .chain(&RECORDED)
            .chain(scopes)
            .map(|metric| {
                let kind = match metric.kind {
                    Kind::Counter => "counter",
                    Kind::Gauge => "gauge",
                    Kind::Histogram => "histogram",
                };
                (metric.name.to_owned(), kind, metric.help)
            })
            .collect();
        listed.sort_unstable();
        described.sort_unstable();
        assert_eq!(listed, described);
    }
}
