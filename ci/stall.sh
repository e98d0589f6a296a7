#!/usr/bin/env bash
# Threads stopped at every atomic step: the others must finish in a bounded number of steps.
# Then the accesses of each operation to shared cache lines, counted. Arguments go to the test runner.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

RUSTFLAGS="--cfg stall" cargo test --release -p stall-tests --lib --target-dir "$stall_target" -- "$@"
RUSTFLAGS="--cfg stall" cargo test --release -p stall-tests --features counts --lib --target-dir "$stall_target" -- "$@"
