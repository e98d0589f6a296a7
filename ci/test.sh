#!/usr/bin/env bash
# The tests and doctests: without features, with the default ones and with tokio; debug and release.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo test -p paceline --no-default-features --lib --tests
cargo test --workspace
cargo test --workspace --features tokio
cargo test --workspace --features tokio --release
