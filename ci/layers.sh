#!/usr/bin/env bash
# The rules of the source that no lint knows: what belongs in one place stays there, imports go one way, and every
# model that a comment names exists.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# How high the files stand on each other: with `--floors` the script says that alone.
floors() {
    local core=crates/core/src
    python3 ci/floors.py "$core:8:0" "$core/atomic:4:0" "$core/atomic/counter:3:0" "$core/atomic/send_rate:6:0" src:8:0 src/strategy:8:0
}
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

mapfile -t sources < <(git ls-files --cached --others --exclude-standard 'src/*.rs' 'crates/*/src/*.rs')
((${#sources[@]} > 0)) || complain "no sources found"

# outside PATTERN, within PATTERN: the sources whose path does not match, and those whose path does.
outside() { printf '%s\n' "${sources[@]}" | grep -vE "^$1" || true; }
within() { printf '%s\n' "${sources[@]}" | grep -E "^$1" || true; }

core=crates/core/src
mapfile -t not_atomic < <(outside "$core/atomic/|src/(cells|usage)\.rs")
mapfile -t not_sync < <(outside "$core/atomic/sync.rs")
mapfile -t not_clock < <(outside src/clock.rs)
mapfile -t not_float < <(outside "$core/(atomic/send_rate/snapshot|print)\.rs")
mapfile -t values < <(within "$core/(time|fixed|bits|line)\.rs|$core/law/")
mapfile -t words < <(within "$core/atomic/")
refuse "atomics belong in $core/atomic" '\bOrdering::(Relaxed|Acquire|Release|AcqRel|SeqCst)\b|\bAtomic[A-Z]\w*|\bsync::atomic\b|\bfence\(' "${not_atomic[@]}"
refuse "the atomic types come from $core/atomic/sync.rs" '\b(core|std|loom)::sync::atomic|\bportable_atomic\b' "${not_sync[@]}"
refuse "clocks are read in src/clock.rs" '\bInstant\b|\bSystemTime\b|\bquanta::' "${not_clock[@]}"
refuse "floats belong in snapshots" '\bf(32|64)\b' "${not_float[@]}"
refuse "no locks" '\b(Mutex|RwLock|Condvar)\b' "${sources[@]}"
# The layers of src/guide/architecture.md that cargo does not see: those within a crate.
edges='scope|config|classify|operation'
mapfile -t strategies < <(within src/strategy/)
mapfile -t waits < <(within src/wait/)
mapfile -t sources_of < <(within 'src/(clock|random|backoff|headers|cells|usage)')
refuse "strategies import upwards" "\\bcrate::($edges)\\b" "${strategies[@]}"
refuse "waiting imports upwards" "\\bcrate::(strategy|$edges)\\b" "${waits[@]}"
refuse "sources import upwards" "\\bcrate::(wait|strategy|$edges)\\b" "${sources_of[@]}"
refuse "values import upwards" "\\bcrate::(atomic|set|limit|pool)\\b" "${values[@]}"
refuse "words import upwards" "\\bcrate::(set|limit|pool)\\b" "${words[@]}"

# Adapters' requests take no lock either, unless they have to wait: the fleet's line is behind one, as that of tokio's
# semaphore is. The fleet's tasks and aws's waiting operation only try one.
mapfile -t adapters < <(git ls-files --cached --others --exclude-standard 'adapters/*/src/*.rs' |
    grep -vE '^adapters/(kit/.*|(fleet/src/(engine|line)|aws/src/turn)\.rs)$')
refuse "no locks" '\b(Mutex|RwLock|Condvar)\b' "${adapters[@]}"

# Every model that a comment of the core names exists.
while read -r model; do
    grep -q "fn ${model#*::}()" "loom-tests/src/${model%%::*}.rs" 2>/dev/null || complain "no model $model in loom-tests"
done < <(grep -rhoE "\`($(basename -as .rs loom-tests/src/*.rs | paste -sd '|'))::[a-z_]+\`" crates src | tr -d '`' | sort -u)

# The core stays small: code lines without tests, comments and what only models see, and files.
mapfile -t files < <(printf '%s\n' "${words[@]}" | grep -vE 'tests(\.rs|/)')
lines="$(code "${files[@]}" | wc -l)"
printf '%s: %d lines of code in %d files\n' "$core/atomic" "$lines" "${#files[@]}"
((lines <= 5880)) || complain "$core/atomic has $lines lines of code, more than 5,880"
((${#files[@]} <= 36)) || complain "$core/atomic has ${#files[@]} files, more than 36"

# What the crates have in common beyond the core's public face stays small: the guide `maintainers` lists it. `seam` has ten names.
hidden="$(grep -rA4 'doc(hidden)' "$core" --include='*.rs' --exclude=limit.rs --exclude=lib.rs | grep -cE '\bpub (const )?(fn|NO_TIME)|const NO_TIME' || true)"
printf 'hidden items of the core: %d, and 10 of seam\n' "$hidden"
((hidden <= 25)) || complain "the core hides $hidden items from its users, more than 25"

# No file is long.
mapfile -t files < <(printf '%s\n' "${sources[@]}" | grep -vE 'tests(\.rs|/)')
for file in "${files[@]}"; do
    lines="$(code "$file" | wc -l)"
    ((lines <= 400)) || complain "$file has $lines lines of code, more than 400"
done

floors || status=1
exit "$status"
