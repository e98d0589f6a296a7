//! The fuzz targets as ordinary tests: over the committed corpus, and over generated inputs.

use std::{fs, path::Path};

use fastrand::Rng;
use paceline_fuzz::{answers, config, declared, headers, law, limiter, line, quota, sets};

/// Runs `target` over `inputs` generated inputs of up to `longest` bytes, and over its corpus.
fn run(name: &str, inputs: u64, longest: usize, target: fn(&[u8])) {
    for seed in 0..inputs {
        let mut rng = Rng::with_seed(seed);
        let mut input = vec![0; rng.usize(..=longest)];
        rng.fill(&mut input);
        println!("{name}, generated from seed {seed}"); // the last one is shown if it fails
        target(&input);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let entries = fs::read_dir(&folder).expect("each target has a corpus");
    let mut read = 0;
    for entry in entries {
        let path = entry.expect("the corpus is readable").path();
        println!("{}", path.display());
        target(&fs::read(&path).expect("the corpus is readable"));
        read += 1;
    }
    assert!(read > 0, "no input in {}", folder.display());
}

#[test]
fn quota_vs_model() {
    run("quota_vs_model", 20_000, 2_048, quota::quota_vs_model);
}

#[test]
fn law_vs_f64() {
    run("law_vs_f64", 2_000, 1_024, law::law_vs_f64);
}

#[test]
fn line_vs_model() {
    run("line_vs_model", 10_000, 1_024, line::line_vs_model);
}

#[test]
fn limiter() {
    run("limiter", 20_000, 1_024, limiter::limiter);
}

#[test]
fn sets() {
    run("sets", 20_000, 1_024, sets::sets);
}

#[test]
fn config() {
    run("config", 20_000, 1_024, config::config);
}

#[test]
fn declared() {
    run("declared", 5_000, 512, declared::declared);
}

#[test]
fn headers() {
    run("headers", 100_000, 64, headers::headers);
}

#[test]
fn answers() {
    run("answers", 100_000, 128, answers::answers);
}
