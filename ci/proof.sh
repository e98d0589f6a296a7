#!/usr/bin/env bash
# Everything that argues for the core: models and their broken twins, stopped threads, random schedules, and the comparisons with
# models of other kinds. Needs Rust only; under ten minutes on two cores once built.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

differential() {
    cargo test --features tokio --test linearizability --test law_traces --test paced_traces --test quota_threads \
        --test send_rate_threads --test send_rate_extremes --test send_rate_paced_extremes
}

step "loom, and teeth" ci/loom.sh
step stall ci/stall.sh
step shuttle ci/shuttle.sh
step "fuzz targets as tests" ci/fuzz-smoke.sh
step differential differential
skip "every ordering weakened, every mutant, libFuzzer, sanitizers" \
    "ci/orderings.py, ci/mutants.sh, ci/extra.sh: hours, or nightly"
closing
