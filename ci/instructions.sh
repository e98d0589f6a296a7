#!/usr/bin/env bash
# Instructions per operation, counted by callgrind: exact, and the same on every run. Each case runs twice, the second
# time 10,000 operations longer; the difference is theirs. Arguments pick cases: `ci/instructions.sh standard/`.
# Cases that read a time stamp counter by themselves are left out: it is not calibrated under callgrind.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if ! command -v valgrind >/dev/null; then
    printf 'This needs valgrind (Debian: apt-get install valgrind).\n' >&2
    exit 2
fi
# As measured, not as tested; and without instructions that valgrind does not know.
unset CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_CODEGEN_UNITS
cargo build --quiet --release -p paceline-benches
harness="$CARGO_TARGET_DIR/release/paceline-benches"
few=1000 more=11000

# instructions CASE TIMES: how many the whole process takes.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$harness" --only "$1" --just "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

printf '| case | instructions per operation |\n|---|---|\n'
"$harness" --list --only "${1:-}" | while read -r case; do
    if ! from="$(instructions "$case" "$few")" || ! to="$(instructions "$case" "$more")"; then
        printf '| %s | does not run under callgrind |\n' "$case"
        continue
    fi
    awk -v name="$case" -v from="$from" -v to="$to" -v times=$((more - few)) \
        'BEGIN { printf "| %s | %.1f |\n", name, (to - from) / times }'
done
