#!/usr/bin/env bash
# Every check that needs only Rust and a C compiler. `ci/all.sh` goes on after a failure and names it at the end;
# `ci/all.sh clippy doc` runs some, and stops at the first failure.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Formatting, of all workspaces.
fmt() {
    cargo fmt --all --check
    for manifest in fuzz adapters adapters/fleet; do
        cargo fmt --manifest-path "$manifest/Cargo.toml" --all --check
    done
}

layers() { ci/layers.sh; }

# Lints, warnings denied: every feature set, the models under their cfg, the fuzz workspace.
# `loom` is a feature that does nothing without `--cfg loom`, so `--all-features` is a plain build.
clippy() {
    cargo clippy --workspace --exclude paceline-benches --all-targets --all-features -- -D warnings
    # The library alone: beside tests it has all their features. Each feature alone: together they hide what one leaves unused.
    cargo clippy -p paceline --lib -- -D warnings
    cargo clippy -p paceline --lib --no-default-features -- -D warnings
    for feature in metrics quanta scopes serde tracing; do
        cargo clippy -p paceline --lib --no-default-features --features "$feature" -- -D warnings
    done
    RUSTFLAGS="--cfg loom" cargo clippy -p loom-tests --all-targets --target-dir "$loom_target" -- -D warnings
    RUSTFLAGS="--cfg shuttle" cargo clippy -p shuttle-tests --all-targets --target-dir "$shuttle_target" -- -D warnings
    RUSTFLAGS="--cfg stall" cargo clippy -p stall-tests --all-targets --target-dir "$stall_target" -- -D warnings
    RUSTFLAGS="--cfg stall" cargo clippy -p stall-tests --features counts --all-targets --target-dir "$stall_target" -- -D warnings
    cargo clippy --manifest-path fuzz/Cargo.toml --all-targets --features libfuzzer --target-dir "$fuzz_target" -- -D warnings
}

# Documentation without a broken link: with every feature, with the default ones and with none. ci/extra.sh has each alone.
doc() {
    export RUSTDOCFLAGS="-D warnings"
    cargo doc --workspace --exclude paceline-benches --no-deps --all-features
    cargo doc -p paceline --no-deps
    cargo doc -p paceline --no-deps --no-default-features
}

loom() { ci/loom.sh; }
stall() { ci/stall.sh; }
shuttle() { ci/shuttle.sh; }

# The fuzz targets as ordinary tests, on the stable compiler: corpus and generated inputs.
# Optimized, but with overflow checks and debug assertions, as under libFuzzer.
fuzz() {
    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
        cargo test --manifest-path fuzz/Cargo.toml --tests --release --target-dir "$fuzz_target"
}

# All tests, with overflow checks. ci/extra.sh has them in release. The models, the stopped threads and the fuzz targets are
# optimized here too.
# Tests and examples see every feature but the models' always: the crate is its own dev-dependency with them.
tests() { cargo test --workspace --exclude paceline-benches --features tokio; }

# The small examples, run: each checks what it did, and fails if it was not as it says.
examples() {
    for example in tables web_handler embedding; do
        printf -- '-- %s\n' "$example"
        cargo run --quiet --example "$example"
    done
    printf -- '-- llm_batch\n'
    cargo run --quiet --example llm_batch -- --requests 400 --svg target/llm_batch_short.svg
}

# That the measurements still measure: lints, and each case a few times. No times are looked at.
# Last but one, since the peers take minutes to build.
benches() {
    cargo clippy -p paceline-benches --all-targets -- -D warnings
    cargo test -p paceline-benches --lib --tests
}

adapters() { ci/adapters.sh --tests; }

steps=(fmt layers clippy doc loom stall shuttle fuzz tests examples benches adapters)
for name; do
    [[ " ${steps[*]} " == *" $name "* ]] || { printf 'no step %s; there are: %s\n' "$name" "${steps[*]}" >&2; exit 2; }
done
for name; do
    "$name"
done
(($# == 0)) || exit 0

for name in "${steps[@]}"; do
    step "$name" ci/all.sh "$name" # another shell, in which the first failure ends the step
done
skip "oldest compiler, sanitizers, libFuzzer, other targets, licences, shell scripts" \
    "they need nightly, apt or more tools: ci/extra.sh"
skip "all tests in release, a million scopes, two models of minutes, adapters with their oldest hosts, the fleet, the comparison with real SDKs" \
    "they take many minutes, redis-server or Python: ci/adapters.sh, ci/extra.sh release fleet, ci/s3.sh"
closing
