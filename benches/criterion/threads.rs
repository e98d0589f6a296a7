//! Each case on 1 to N threads, under criterion:
//! `cargo bench -p paceline-benches --bench threads -- standard`.
//!
//! The time is that of one thread's operation while the others do as many; the report draws it over
//! the threads.

use std::thread::available_parallelism;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use paceline_benches::cases::all;
use paceline_benches::path::Path;
use paceline_benches::pool::{cores, together};

fn threads(criterion: &mut Criterion) {
    let most = available_parallelism()
        .map_or(2, core::num::NonZero::get)
        .max(2);
    let cores = cores();
    let cases = all();
    for path in Path::ALL {
        let mut group = criterion.benchmark_group(format!("{}, threads", path.key()));
        for case in cases.iter().filter(|case| case.path == path) {
            let mut stage = None;
            for count in (1..=most).filter(|count| count.is_power_of_two() || *count == most) {
                group.bench_with_input(
                    BenchmarkId::new(case.name, count),
                    &count,
                    |bencher, count| {
                        let stage = stage.get_or_insert_with(case.stage);
                        bencher.iter_custom(|times| together(stage, *count, times, &cores));
                    },
                );
            }
        }
        group.finish();
    }
}

criterion_group!(benches, threads);
criterion_main!(benches);
