#!/usr/bin/env bash
# The rules of the source that no lint knows: what belongs in one place stays there, imports go one way, and every
# model that a comment names exists.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# How high the files stand on each other: with `--floors` the script says that alone.
floors() { python3 ci/floors.py src:8:0 src/atomic:4:0 src/atomic/counter:3:0 src/atomic/send_rate:6:0 src/strategy:8:0; }
[[ "${1-}" != --floors ]] || { floors; exit; }

status=0
complain() {
    printf '%s\n' "$1" >&2
    status=1
}

# Prints FILE:LINE: TEXT of the code of the files: no comments, no string contents, no test module at the end.
code() {
    local file
    for file in "$@"; do
        awk -v name="$file" '
            /^#\[cfg\((all\()?test/ { tests = 1; next }
            tests && /^(mod|pub mod) [a-z_]+ *\{/ { exit }
            tests && /^(#|[ \t]|\)\])/ { next }
            { tests = 0; gsub(/"([^"\\]|\\.)*"/, "\"\""); sub(/\/\/.*/, "") }
            NF { print name ":" FNR ": " $0 }
        ' "$file"
    done
}

# refuse RULE PATTERN FILES...: no code line of the files may match.
refuse() {
    local hits
    hits="$(code "${@:3}" | grep -P "^[^:]+:[0-9]+: .*?(?:$2)" || true)"
    [[ -z "$hits" ]] || complain "$1:"$'\n'"$hits"
}

mapfile -t sources < <(git ls-files --cached --others --exclude-standard 'src/*.rs')
((${#sources[@]} > 0)) || complain "no sources found"

# outside PATTERN, within PATTERN: the sources whose path does not match, and those whose path does.
outside() { printf '%s\n' "${sources[@]}" | grep -vE "^$1" || true; }
within() { printf '%s\n' "${sources[@]}" | grep -E "^$1" || true; }

mapfile -t not_atomic < <(outside src/atomic/)
mapfile -t not_sync < <(outside 'src/atomic/(sync|mocked).rs')
mapfile -t not_clock < <(outside src/clock.rs)
mapfile -t not_float < <(outside src/atomic/send_rate/snapshot.rs)
mapfile -t values < <(within 'src/(time|fixed|bits|line|backoff|headers)\.rs|src/(law|headers)/')
mapfile -t words < <(within src/atomic/)
refuse "atomics belong in src/atomic" '\bOrdering::(Relaxed|Acquire|Release|AcqRel|SeqCst)\b|\bAtomic[A-Z]\w*|\bsync::atomic\b|\bfence\(' "${not_atomic[@]}"
refuse "the atomic types come from src/atomic/sync.rs" '\b(core|std|loom)::sync::atomic|\bportable_atomic\b' "${not_sync[@]}"
refuse "clocks are read in src/clock.rs" '\bInstant\b|\bSystemTime\b|\bquanta::' "${not_clock[@]}"
refuse "floats belong in src/atomic/send_rate/snapshot.rs" '\bf(32|64)\b' "${not_float[@]}"
refuse "no locks" '\b(Mutex|RwLock|Condvar)\b' "${not_sync[@]}" # there, in the mock of a word that loom lacks
# The layers of src/guide/architecture.md, from the top. Backoffs are values that ask for a random number.
edges='scope|config|classify|operation'
upper="clock|random|wait|set|strategy|$edges"
mapfile -t strategies < <(within src/strategy/)
mapfile -t waits < <(within 'src/(wait|set)/')
mapfile -t clocks < <(within 'src/(clock|random)\.rs')
refuse "strategies import upwards" "\\bcrate::($edges)\\b" "${strategies[@]}"
refuse "waiting imports upwards" "\\bcrate::(strategy|$edges)\\b" "${waits[@]}"
refuse "sources import upwards" "\\bcrate::(wait|set|strategy|$edges)\\b" "${clocks[@]}"
refuse "values import upwards" "\\bcrate::(atomic|${upper/random|/})\\b" "${values[@]}"
refuse "words import upwards" "\\bcrate::($upper)\\b" "${words[@]}"

# Adapters' requests take no lock either, unless they have to wait: the fleet's line is behind one, as that of tokio's
# semaphore is. The fleet's tasks and aws's waiting operation only try one.
mapfile -t adapters < <(git ls-files --cached --others --exclude-standard 'adapters/*/src/*.rs' |
    grep -vE '^adapters/(kit/.*|(fleet/src/(engine|line)|aws/src/turn)\.rs)$')
refuse "no locks" '\b(Mutex|RwLock|Condvar)\b' "${adapters[@]}"

# Every model that a comment of the core names exists.
while read -r model; do
    grep -q "fn ${model#*::}()" "loom-tests/src/${model%%::*}.rs" 2>/dev/null || complain "no model $model in loom-tests"
done < <(grep -rhoE "\`($(basename -as .rs loom-tests/src/*.rs | paste -sd '|'))::[a-z_]+\`" src/atomic | tr -d '`' | sort -u)

# The core stays small: code lines without tests, comments and what only models see, and files.
mapfile -t core < <(within src/atomic/ | grep -vE 'tests(\.rs|/)|/(modelled|mocked|stall)\.rs')
lines="$(code "${core[@]}" | wc -l)"
printf 'src/atomic: %d lines of code in %d files\n' "$lines" "${#core[@]}"
((lines <= 6140)) || complain "src/atomic has $lines lines of code, more than 6,140"
((${#core[@]} <= 37)) || complain "src/atomic has ${#core[@]} files, more than 37"

# No file is long.
mapfile -t files < <(printf '%s\n' "${sources[@]}" | grep -vE 'tests(\.rs|/)')
for file in "${files[@]}"; do
    lines="$(code "$file" | wc -l)"
    ((lines <= 400)) || complain "$file has $lines lines of code, more than 400"
done

floors || status=1
exit "$status"
