#!/usr/bin/env bash
# What to run while working: under two minutes once built.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

lint() { cargo clippy --workspace --exclude paceline-benches --all-targets --features tokio -- -D warnings; }
tests() { cargo test --workspace --exclude paceline-benches --features tokio --lib --tests; }

step fmt ci/fmt.sh
step layers ci/layers.sh
step clippy lint
step tests tests
step loom ci/loom.sh quota:: teeth::
skip "the rest" "ci/all.sh runs it"
closing
