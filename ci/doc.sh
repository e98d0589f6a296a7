#!/usr/bin/env bash
# The documentation, warnings denied.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude paceline-benches --no-deps --all-features
