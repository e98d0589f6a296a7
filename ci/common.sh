# Sourced by the other scripts: goes to the top of the checkout and says where builds go.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
# The release profile is for measuring, and slow to link. Tests have cargo's own.
export CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
# Each crate is built once, and what incremental builds keep is half of the target folder.
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"
# A panic names its line without.
export CARGO_PROFILE_DEV_DEBUG=0
# shellcheck disable=SC2034 # for the scripts that source this
loom_target="$CARGO_TARGET_DIR/loom"
# shellcheck disable=SC2034
shuttle_target="$CARGO_TARGET_DIR/shuttle"
# shellcheck disable=SC2034
stall_target="$CARGO_TARGET_DIR/stall"
# shellcheck disable=SC2034
fuzz_target="$CARGO_TARGET_DIR/fuzz"

# apart ARGUMENTS...: cargo, with each test in a process of its own.
apart() { cargo --config "target.'cfg(all())'.runner = '$PWD/ci/each.sh'" "$@"; }

# step NAME COMMAND...: runs it, times it, notes whether it passed, and goes on either way.
passed=0 failed=() skipped=()
step() {
    local name="$1" began="$SECONDS"
    shift
    printf '\n== %s\n' "$name"
    if "$@"; then
        passed=$((passed + 1))
        printf '== %s: passed in %d s\n' "$name" $((SECONDS - began))
    else
        failed+=("$name")
        printf '== %s: FAILED in %d s\n' "$name" $((SECONDS - began))
    fi
}

# skip NAME REASON: notes what was not run.
skip() {
    skipped+=("$1: $2")
}

# Prints the results of the steps, and fails if one of them did.
closing() {
    printf '\nThe whole took %d s.\n' "$SECONDS"
    ((${#skipped[@]} == 0)) || printf 'Skipped: %s\n' "${skipped[@]}"
    ((${#failed[@]} == 0)) || printf 'Failed: %s\n' "${failed[@]}"
    printf 'steps: %d passed, %d failed, %d skipped\n' "$passed" "${#failed[@]}" "${#skipped[@]}"
    ((${#failed[@]} == 0))
}
