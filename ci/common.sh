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

# step NAME COMMAND...: runs it, times it, notes whether it passed, and goes on either way. Where `check.sh` has said how many steps
# come and what they take, it says how far the whole is.
times=() failed=() skipped=() step_number=0
steps_in_all=0 seconds_in_all=0
step() {
    local name="$1" began="$SECONDS" result=passed
    shift
    step_number=$((step_number + 1))
    if ((steps_in_all > 0)); then
        printf '\n== step %d of %d, %d of about %d minutes: %s\n' \
            "$step_number" "$steps_in_all" $((SECONDS / 60)) $(((seconds_in_all + 59) / 60)) "$name"
    else
        printf '\n== %s\n' "$name"
    fi
    "$@" || { result=FAILED; failed+=("$name"); }
    times+=("$(printf '%5d s  %-6s  %s' $((SECONDS - began)) "$result" "$name")")
    printf '== %s: %s in %d s\n' "$name" "$result" $((SECONDS - began))
}

# skip NAME REASON: notes what was not run.
skip() {
    skipped+=("$1: $2")
}

# Prints what each step took, and fails if one of them did.
closing() {
    printf '\n'
    ((${#times[@]} == 0)) || printf '%s\n' "${times[@]}"
    printf '%5d s  in all\n' "$SECONDS"
    ((${#skipped[@]} == 0)) || printf 'skipped: %s\n' "${skipped[@]}"
    printf '%d passed, %d failed, %d skipped\n' $((${#times[@]} - ${#failed[@]})) "${#failed[@]}" "${#skipped[@]}"
    ((${#failed[@]} == 0))
}
