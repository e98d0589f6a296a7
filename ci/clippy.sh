#!/usr/bin/env bash
# Lints, warnings denied: every feature set, the models under their cfg, the fuzz workspace.
# `loom` is a feature that does nothing without `--cfg loom`, so `--all-features` is a plain build.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo clippy --workspace --exclude paceline-benches --all-targets --all-features -- -D warnings
cargo clippy --workspace --exclude paceline-benches --all-targets -- -D warnings
cargo clippy -p paceline --lib --tests --no-default-features -- -D warnings
cargo clippy -p paceline --lib --tests --no-default-features --features std -- -D warnings
# Each alone: together they hide what one of them leaves unused.
for feature in metrics scopes serde tracing; do
    cargo clippy -p paceline --lib --no-default-features --features "$feature" -- -D warnings
done
RUSTFLAGS="--cfg loom" cargo clippy -p loom-tests --all-targets --target-dir "$loom_target" -- -D warnings
RUSTFLAGS="--cfg shuttle" cargo clippy -p shuttle-tests --all-targets --target-dir "$shuttle_target" -- -D warnings
RUSTFLAGS="--cfg stall" cargo clippy -p stall-tests --all-targets --target-dir "$stall_target" -- -D warnings
RUSTFLAGS="--cfg stall" cargo clippy -p stall-tests --features counts --all-targets --target-dir "$stall_target" -- -D warnings
cargo clippy --manifest-path fuzz/Cargo.toml --all-targets --features libfuzzer --target-dir "$fuzz_target" -- -D warnings
