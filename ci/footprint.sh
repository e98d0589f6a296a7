#!/usr/bin/env bash
# What depending on a crate costs: the crates in its tree, itself among them, and the seconds of a release build from nothing, each in a
# package that has only this dependency. The processor's seconds are worth something on a busy machine too. Arguments pick crates:
# `ci/footprint.sh paceline governor`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

root="$PWD"
work="$CARGO_TARGET_DIR/footprint"
# A user's build, not a test's.
unset CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_CODEGEN_UNITS

declare -A dependency=(
    [paceline]="paceline = { path = \"$root\" }"
    [paceline-core]="paceline-core = { path = \"$root/crates/core\" }"
    [paceline-with-quanta]="paceline = { path = \"$root\", features = [\"quanta\"] }"
    [aws-smithy-runtime]='aws-smithy-runtime = { version = "=1.16.2", features = ["client"] }'
    [throttle-net]='throttle-net = "=2.0.0"'
    [governor]='governor = "=0.10.4"'
    [better-bucket]='better-bucket = "=1.1.0"'
    [ratelimit]='ratelimit = "=2.0.0"'
    [leaky-bucket]='leaky-bucket = "=1.1.2"'
    [tower]='tower = { version = "=0.5.3", features = ["retry"] }'
    [backon]='backon = "=1.6.0"'
)
(($# > 0)) || set -- paceline paceline-core paceline-with-quanta aws-smithy-runtime throttle-net governor better-bucket ratelimit leaky-bucket tower backon

printf '| dependency | crates in its tree, itself among them | release build, s | of the processor, s |\n|---|---|---|---|\n'
TIMEFORMAT='%R %U %S'
for name; do
    [[ -n "${dependency[$name]:-}" ]] || { printf 'no dependency named %s\n' "$name" >&2; exit 2; }
    rm -rf "${work:?}/$name"
    mkdir -p "$work/$name/src"
    : >"$work/$name/src/lib.rs"
    printf '[package]\nname = "of-%s"\nversion = "0.0.0"\nedition = "2024"\n\n[workspace]\n\n[dependencies]\n%s\n' \
        "$name" "${dependency[$name]}" >"$work/$name/Cargo.toml"
    cd "$work/$name"
    cargo fetch --quiet
    # One line for each crate that is built here, without the package itself.
    crates="$(cargo tree --edges normal,build --prefix none --format '{p}' | sed 's/ (\*)$//' | sort -u | grep -vc "^of-$name ")"
    took="$({ time CARGO_TARGET_DIR="$work/$name/target" cargo build --quiet --release; } 2>&1)"
    awk -v name="$name" -v crates="$crates" '{ printf "| %s | %d | %.1f | %.1f |\n", name, crates, $1, $2 + $3 }' <<<"$took"
    rm -rf target
done
