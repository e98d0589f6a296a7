#!/usr/bin/env bash
# The fuzz targets as ordinary tests, on the stable compiler: corpus and generated inputs.
# Optimized, but with overflow checks and debug assertions, as under libFuzzer.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
cargo test --manifest-path fuzz/Cargo.toml --tests --release --target-dir "$fuzz_target"
