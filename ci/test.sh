#!/usr/bin/env bash
# The tests and doctests: the buckets alone, and everything, with overflow checks and in release.
# Tests and examples see every feature but the models' always: the crate is its own dev-dependency with them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo test -p paceline --no-default-features --lib
cargo test --workspace --exclude paceline-benches --features tokio
cargo test --workspace --exclude paceline-benches --features tokio --release
