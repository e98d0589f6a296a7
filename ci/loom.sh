#!/usr/bin/env bash
# The models of the atomic core. Arguments go to the test runner: `ci/loom.sh quota` runs some.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

RUSTFLAGS="--cfg loom" cargo test --release -p loom-tests --lib --target-dir "$loom_target" -- "$@"
# The quota has another form where 64-bit words are not native.
RUSTFLAGS="--cfg loom --cfg narrow" cargo test --release -p loom-tests --lib --target-dir "$loom_target-narrow" -- quota::
