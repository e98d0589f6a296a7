//! A home for the benchmark `contention`, which `cargo bench` runs.
