#!/usr/bin/env bash
# That the measurements still measure: lints, and each case a few times. No times are looked at.
# Apart from the other scripts, since the peers take minutes to build.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo clippy -p paceline-benches --all-targets -- -D warnings
cargo test -p paceline-benches --lib --tests
