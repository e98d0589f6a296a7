#!/usr/bin/env bash
# What is too large for loom, under thousands of random schedules. Arguments go to the test runner.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

RUSTFLAGS="--cfg shuttle" cargo test --release -p shuttle-tests --lib --target-dir "$shuttle_target" -- "$@"
