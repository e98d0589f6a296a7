//! The metrics in a real exporter: what the dashboard shows exists, and is described.

extern crate alloc;

#[path = "../../tests/support/mod.rs"]
mod support;

use alloc::collections::BTreeSet;
use core::time::Duration;
use std::time::Instant;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use metrics_util::MetricKindMask;
use paceline::{
    Adaptive, Class, Clock, Failure, RetryStrategy, RetryStrategyExt, Standard, law::PacedSettings,
    operation::Next,
};
use support::{Arc, Hands};

/// The exporter of the guide `operating`.
fn exporter(idle: Duration) -> PrometheusRecorder {
    let waits = [0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];
    let buckets = |name: &str| Matcher::Full(name.to_owned());
    PrometheusBuilder::new()
        .idle_timeout(MetricKindMask::ALL, Some(idle))
        .set_buckets_for_metric(buckets("paceline_send_wait_seconds"), &waits)
        .unwrap()
        .set_buckets_for_metric(buckets("paceline_attempts"), &[1.0, 2.0, 3.0, 5.0, 10.0])
        .unwrap()
        .build_recorder()
}

/// Returns the names of the samples, and of what is described.
fn names(text: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let described = text.lines().filter_map(|line| line.strip_prefix("# HELP "));
    let described = described.map(|line| line.split(' ').next().unwrap());
    let samples = text.lines().filter(|line| line.starts_with("paceline_"));
    let samples = samples.map(|line| line.split(['{', ' ']).next().unwrap());
    (samples.collect(), described.collect())
}

/// Returns the metrics that the dashboard names.
fn shown(dashboard: &str) -> BTreeSet<&str> {
    let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
    let starts = dashboard.match_indices("paceline_").map(|(at, _)| at);
    let words = starts.map(|at| dashboard[at..].split(|byte| !is_word(byte)).next());
    words.map(Option::unwrap).collect()
}

#[test]
fn every_metric_of_the_dashboard_is_exported_and_described() {
    let recorder = exporter(Duration::from_secs(600));
    let text = metrics::with_local_recorder(&recorder, || {
        let clock = Arc::new(Hands::default());
        let settings = PacedSettings::fixed(30, Duration::from_secs(60)).unwrap();
        let builder = Adaptive::builder().paced(settings).metrics("orders");
        let builder = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let orders = builder.build().unwrap();
        orders.run(|_| Ok::<_, Failure>(())).unwrap();
        let mut second = orders.operation().class(Class::Background).start();
        while let Next::InLine(rest) = second.next(&*clock, None) {
            clock.sleep(rest.span());
        }
        drop(second);
        orders.snapshot().publish("orders");
        let tables = Standard::builder().scopes().build().unwrap();
        tables.snapshot().publish("tables");
        recorder.handle().render()
    });
    let (exported, described) = names(&text);
    let shown = shown(include_str!("../../src/guide/dashboard.json"));
    assert!(shown.len() > 20);
    let missing: Vec<_> = shown.difference(&exported).collect();
    assert!(missing.is_empty(), "{missing:?} of\n{text}");
    for name in exported {
        let of_histogram = ["_bucket", "_sum", "_count"];
        let family = of_histogram.iter().find_map(|part| name.strip_suffix(part));
        assert!(described.contains(family.unwrap_or(name)), "{name}");
    }
    for sample in [
        "paceline_sends_total{strategy=\"orders\",class=\"foreground\"} 1",
        "paceline_sends_total{strategy=\"orders\",class=\"background\"} 1",
        "paceline_send_wait_seconds_bucket{strategy=\"orders\",class=\"foreground\",le=\"0.001\"} 1",
        "paceline_send_wait_seconds_bucket{strategy=\"orders\",class=\"background\",le=\"1\"} 0",
        "paceline_send_wait_seconds_bucket{strategy=\"orders\",class=\"background\",le=\"5\"} 1",
        "paceline_sends_delayed_total{strategy=\"orders\"} 1",
        "paceline_sends_delayed_background_total{strategy=\"orders\"} 1",
        "paceline_send_rate_background_released_total{strategy=\"orders\"} 1",
        "paceline_attempts_bucket{strategy=\"orders\",le=\"1\"} 2",
        "paceline_attempts_sum{strategy=\"orders\"} 2",
    ] {
        assert!(
            text.lines().any(|line| line == sample),
            "{sample} of\n{text}"
        );
    }
}

#[test]
fn attempts_and_sends_are_counted_however_an_operation_ends() {
    let recorder = exporter(Duration::from_secs(600));
    let text = metrics::with_local_recorder(&recorder, || {
        let builder = Standard::builder()
            .base_delay(Duration::ZERO)
            .max_attempts(3);
        let orders = builder.metrics("orders").build().unwrap();
        let mut answers = [Err(Failure::transient()), Ok(())].into_iter();
        orders.run(|_| answers.next().unwrap()).unwrap();
        drop(orders.run(|_| Err::<(), _>(Failure::transient())));
        drop(orders.run(|_| Err::<(), _>(Failure::not_retryable())));
        let late = orders.operation().deadline(Duration::ZERO);
        drop(late.run(|_| Ok::<_, Failure>(())));
        recorder.handle().render()
    });
    for sample in [
        "paceline_sends_total{strategy=\"orders\",class=\"foreground\"} 6",
        "paceline_attempts_sum{strategy=\"orders\"} 6",
        "paceline_attempts_count{strategy=\"orders\"} 3",
    ] {
        assert!(
            text.lines().any(|line| line == sample),
            "{sample} of\n{text}"
        );
    }
}

#[test]
fn scopes_share_a_series_unless_each_has_its_own() {
    let recorder = exporter(Duration::from_secs(600));
    let text = metrics::with_local_recorder(&recorder, || {
        let builder = Standard::builder();
        let shared = builder.clone().metrics("tenants").scopes().build().unwrap();
        let each = builder.clone().scopes();
        let each = each.exceptions(move |key| Some(builder.clone().metrics(key).build()));
        for scopes in [shared, each.build().unwrap()] {
            for key in ["one", "two"] {
                let operation = scopes.operation().scope(key);
                operation.run(|_| Ok::<_, Failure>(())).unwrap();
            }
        }
        recorder.handle().render()
    });
    for (name, sends) in [("tenants", 2), ("one", 1), ("two", 1)] {
        let sample =
            format!("paceline_sends_total{{strategy=\"{name}\",class=\"foreground\"}} {sends}");
        assert!(text.lines().any(|line| line == sample), "{text}");
    }
}

#[test]
fn the_series_of_a_dropped_scope_ends_and_an_idle_counter_comes_back() {
    let recorder = exporter(Duration::from_millis(1));
    metrics::with_local_recorder(&recorder, || {
        let builder = Standard::builder().metrics("tables").scopes().max_scopes(1);
        let tables = builder.build().unwrap();
        let publish = || {
            tables.snapshot().publish("tables");
            tables.for_each(|table, state| state.snapshot().publish(table));
            recorder.handle().render()
        };
        let run = |scope| {
            let operation = tables.operation().scope(scope);
            operation.run(|_| Ok::<_, Failure>(())).unwrap();
        };
        run("first");
        assert!(publish().contains("strategy=\"first\""));
        run("second"); // there is room for one
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let text = publish();
            let ended = !text.contains("strategy=\"first\"");
            if ended && !text.contains("paceline_sends_total") {
                break;
            }
            assert!(Instant::now() < until, "{text}");
            std::thread::yield_now();
        }
        run("second");
        let text = publish();
        assert!(
            text.contains("paceline_sends_total{strategy=\"tables\",class=\"foreground\"} 1"),
            "{text}"
        );
    });
}
