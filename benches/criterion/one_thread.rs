//! Each case on one thread, under criterion:
//! `cargo bench -p paceline-benches --bench one_thread -- standard`.

use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use paceline_benches::case::Seat;
use paceline_benches::cases::all;
use paceline_benches::path::Path;

fn one_thread(criterion: &mut Criterion) {
    let cases = all();
    for path in Path::ALL {
        let mut group = criterion.benchmark_group(path.key());
        for case in cases.iter().filter(|case| case.path == path) {
            // Made when the case is chosen, and kept: some take a second to get where they are
            // measured.
            let mut stage = None;
            group.bench_function(case.name, |bencher| {
                let stage = stage.get_or_insert_with(case.stage);
                let mut runner = stage(Seat {
                    thread: 0,
                    threads: 1,
                });
                bencher.iter_custom(|times| {
                    let began = Instant::now();
                    runner(times);
                    began.elapsed()
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, one_thread);
criterion_main!(benches);
