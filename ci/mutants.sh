#!/usr/bin/env bash
# Mutation testing of the core: changes it in one place after the other, and runs the fast tests on each. Takes hours;
# arguments go to cargo-mutants: `ci/mutants.sh --shard 0/4`, `ci/mutants.sh -F src/line.rs`.
# What survives and why it may stands in .cargo/mutants.toml; whatever else survives makes this fail. A mutant that
# never ends counts as found. The lists are in target/mutants/mutants.out.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# A copy in which nothing is built that the tests below do not use.
out="$CARGO_TARGET_DIR/mutants"
tree="$out/tree"
rm -rf "$tree"
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard Cargo.toml Cargo.lock README.md .cargo src \
    'tests/core_*.rs' tests/golden_quota.rs tests/law tests/law_traces.rs tests/paced_traces.rs 'tests/send_rate_*.rs' |
    tar --null -T - -cf - | tar xmf - -C "$tree"
cd "$tree"
sed -i -E -e '/^\[\[example\]\]/,/^$/d' -e 's/^members = .*/members = []/' \
    -e '/^\[dev-dependencies\]/,/^$/{/^\[|^fastrand|^$/!d}' Cargo.toml
export CARGO_TARGET_DIR="$out/target" CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=false
status=0
cargo mutants --in-place --timeout 60 --no-shuffle --output "$out" "$@" || status=$?
# 3: some never ended, and perhaps some survived besides.
((status == 3)) || exit "$status"
if [[ -s "$out/mutants.out/missed.txt" ]]; then
    printf 'survived:\n%s\n' "$(<"$out/mutants.out/missed.txt")" >&2
    exit 2
fi
