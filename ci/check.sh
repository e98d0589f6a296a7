#!/usr/bin/env bash
# Every check, in four stages: `ci/check.sh quick proofs hosts` needs Rust and a C compiler, `ci/check.sh nightly` more tools, which it
# installs where it can. A step alone: `ci/check.sh loom`. What a change since a commit can have broken: `ci/check.sh --changed REV`, by
# the table in ci/changed.txt. `--list` prints the steps. It goes on after a failure and names it at the end. The steps of the stage
# *campaign* take hours and are run one by one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source ci/nightly.sh

# Each step: its stage, its name, and the seconds that it takes on two idle cores with nothing built.
steps() {
    cat <<STEPS
quick fmt 3
quick layers 4
quick fits 3
quick test 110
quick clippy 90
quick doc 30
proofs loom 120
proofs stall 40
proofs shuttle 40
proofs fuzz 60
hosts programs 120
hosts adapters 200
STEPS
    nightly_steps
    campaign_steps
}

# Formatting, of all workspaces.
fmt() {
    local manifest
    cargo fmt --all --check || return
    for manifest in fuzz adapters adapters/fleet examples/clients; do
        cargo fmt --manifest-path "$manifest/Cargo.toml" --all --check || return
    done
}

layers() {
    ci/layers.sh
    ci/equal.py
    ci/cited.py >/dev/null
}

# Whether every planted fault, chosen mutant, mutants' pattern and part of the ablation still fits the code; and the table of changes.
fits() {
    ci/planted.sh --check
    ci/mutants.sh --check
    ci/ablation.py --check
    rows_of_changes
}

# Lints of everything that is no model, with every feature. `loom` is a feature that does nothing without `--cfg loom`. Nightly has the
# models' and the features one by one.
clippy() { cargo clippy --workspace --all-targets --all-features -- -D warnings; }

# Documentation without a broken link. Nightly has the features one by one.
doc() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features; }

# The core's tests: the test command of the README.
tests() { cargo test; }

# The models of the atomic core, each in a process of its own. Those over 15 seconds are ignored here: nightly has them.
loom() { models --lib -- "$@"; }
models() { RUSTFLAGS="--cfg loom" apart test --release -p loom-tests --features strategies --target-dir "$loom_target" "$@"; }

# Threads stopped at every atomic step: the others must finish in a bounded number of steps. Then the accesses of each operation to
# shared cache lines, counted.
stall() {
    local counts
    for counts in "" --features=counts; do
        # shellcheck disable=SC2086 # none, or one word
        RUSTFLAGS="--cfg stall" cargo test --release -p stall-tests $counts --lib --target-dir "$stall_target" -- "$@" || return
    done
}

# What is too large for loom, under thousands of random schedules.
shuttle() { RUSTFLAGS="--cfg shuttle" cargo test --release -p shuttle-tests --features strategies --lib --target-dir "$shuttle_target" -- "$@"; }

# The fuzz targets as ordinary tests, on the stable compiler: corpus, generated inputs and whole systems. Optimized, but with overflow
# checks and debug assertions, as under libFuzzer.
fuzz() {
    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
        cargo test --manifest-path fuzz/Cargo.toml --tests --release --target-dir "$fuzz_target" -- "$@"
}

# The programs of `examples` and `benches`, built together: their tests, and the small examples run, each of which checks what it did. Of
# the measurements each case runs a few times, and no times are looked at.
programs() {
    local packages=(-p paceline-examples -p paceline-benches) name
    cargo test "${packages[@]}" --lib --bins --tests
    cargo build "${packages[@]}" --bin tables --bin web_handler --bin embedding --bin llm_batch
    for name in tables web_handler embedding "llm_batch --requests 400 --svg target/llm_batch_short.svg"; do
        printf -- '-- %s\n' "$name"
        # shellcheck disable=SC2086 # a name and its arguments
        "$CARGO_TARGET_DIR"/debug/$name
    done
}

# The adapters with the newest hosts. Most of their tests wait most of the time.
adapters() { RUST_TEST_THREADS=8 of_adapters test; }
of_adapters() {
    cargo "$1" --manifest-path adapters/Cargo.toml --workspace --features paceline-reqwest/llm,paceline-tower/grpc,paceline-tower/policy "${@:2}"
}

# broken_by FILES...: the steps that a change of these files can break, by the first row of ci/changed.txt that fits each; all of them
# where none fits.
broken_by() {
    local file pattern names row found=()
    for file; do
        row="quick proofs hosts nightly"
        while read -r pattern names; do
            [[ ! "$file" =~ ^($pattern)$ ]] || { row="$names"; break; }
        done < <(grep -vE '^(#|$)' ci/changed.txt)
        found+=("$row")
    done
    printf '%s\n' "${found[*]}" | tr ' ' '\n' | grep -vxE 'nothing|' | sort -u | paste -sd ' '
}

# That the table of changes is sound: it names steps that are there, each row fits a file, and a path without a row runs all.
rows_of_changes() {
    local pattern names name files status=0
    files="$(git ls-files)"
    while read -r pattern names; do
        grep -qE "^($pattern)$" <<<"$files" || { printf 'ci/changed.txt: no file fits %s\n' "$pattern" >&2; status=1; }
        for name in $names; do
            [[ "$name" == nothing ]] || chosen "$name" >/dev/null || status=1
        done
    done < <(grep -vE '^(#|$)' ci/changed.txt)
    [[ "$(broken_by README.md no/such/path)" == "doc hosts nightly package proofs quick shell" ]] || { echo 'ci/changed.txt: a path without a row does not run all' >&2; status=1; }
    return "$status"
}

# chosen NAMES...: the rows of the stages and steps that are named.
chosen() {
    local name rows
    rows="$(steps)"
    for name; do
        awk -v name="$name" '$1 == name || $2 == name { print; found = 1 } END { exit !found }' <<<"$rows" ||
            { printf 'no stage or step %s: see ci/check.sh --list\n' "$name" >&2; return 2; }
    done
}

# --run NAME ARGUMENTS...: a step in a shell of its own, in which the first failure ends the step.
case "${1:-}" in
    --run)
        set -e
        name="$2"
        shift 2
        [[ "$name" != test ]] || name=tests # the shell has a `test` of its own
        for stage in nightly_ campaign_ ""; do
            ! declare -F "$stage$name" >/dev/null || { "$stage$name" "$@"; exit; }
        done
        exit 2
        ;;
    --list)
        steps
        exit
        ;;
    --changed)
        mapfile -t files < <({ git diff --name-only "${2:?a commit}"; git ls-files --others --exclude-standard; } | sort -u)
        read -ra words < <(broken_by "${files[@]}")
        ((${#words[@]} > 0)) || { echo 'nothing to check'; exit 0; }
        set -- "${words[@]}"
        printf 'to check: %s\n' "$*"
        ;;
esac
# One step, with words for its tests: `ci/check.sh loom quota::`.
if (($# > 1)) && [[ " loom stall shuttle fuzz " == *" $1 "* ]] && ! chosen "$2" >/dev/null 2>&1; then
    exec "$0" --run "$1" "${@:2}"
fi
(($# > 0)) || { sed -n '2,6s/^# //p' "$0"; exit 2; }
plan="$(chosen "$@")"
mapfile -t plan < <(awk '!seen[$2]++' <<<"$plan")
steps_in_all="${#plan[@]}"
seconds_in_all="$(printf '%s\n' "${plan[@]}" | awk '{ sum += $3 } END { print sum }')"
for row in "${plan[@]}"; do
    read -r _ name _ <<<"$row"
    if reason="$(unavailable "$name")"; then
        steps_in_all=$((steps_in_all - 1))
        skip "$name" "$reason"
    else
        step "$name" "$0" --run "$name"
    fi
done
closing
