#!/usr/bin/env bash
# Mutation testing of the core: changes it in one place after the other, and runs the fast tests on each. Takes over an hour;
# arguments go to cargo-mutants: `ci/mutants.sh --shard 0/4`, `ci/mutants.sh -f src/line.rs`.
# What survives and why it may stands in .cargo/mutants.toml.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# A copy in which nothing is built that the tests below do not use.
tree="$CARGO_TARGET_DIR/mutants/tree"
rm -rf "$tree"
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard Cargo.toml Cargo.lock README.md .cargo src \
    'tests/core_*.rs' tests/golden_quota.rs tests/law tests/law_traces.rs 'tests/send_rate_*.rs' |
    tar --null -T - -cf - | tar xf - -C "$tree"
cd "$tree"
sed -i -E -e '/^\[\[example\]\]/,/^$/d' -e 's/^members = .*/members = []/' \
    -e '/^\[dev-dependencies\]/,/^$/{/^\[|^fastrand|^$/!d}' Cargo.toml
export CARGO_TARGET_DIR="${tree%/tree}/target" CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=false
(($# > 0)) || set -- --output ..
exec cargo mutants --in-place --timeout 20 --minimum-test-timeout 20 --no-shuffle "$@"
