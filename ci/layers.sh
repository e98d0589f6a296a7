#!/usr/bin/env bash
# The rules of the source that no lint knows. Each file of src/ stands in a layer and imports only
# from its own and those above it in the table; what belongs in one place stays there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Top-level modules of src/, one layer a line, values first. A new one has to be put here.
layers="
time fixed
cubic meter aws paced line backoff budget
atomic
clock random
wait
strategy
scope
config headers
classify
run
"
# The only files with floats: they convert the state for people to read.
floats_in="src/atomic/snapshot.rs"
max_file=400 max_function=60

status=0
complain() {
    printf '%s\n' "$1" >&2
    status=1
}

# Prints FILE:LINE: TEXT of the code of a file: no comments, no string contents, no test module.
code() {
    awk -v name="$1" '
        /^#\[cfg\((all\()?test/ { tests = 1; next }
        tests && /^(mod|pub mod) [a-z_]+ *\{/ { exit }
        tests && /^(#|[ \t]|\)\])/ { next }
        { tests = 0; gsub(/"([^"\\]|\\.)*"/, "\"\""); sub(/\/\/.*/, "") }
        NF { print name ":" FNR ": " $0 }
    ' "$1"
}

# refuse RULE PATTERN FILES...: no code line of the files may match.
refuse() {
    local rule="$1" pattern="$2" file hits
    shift 2
    for file in "$@"; do
        hits="$(code "$file" | grep -P "^[^:]+:[0-9]+: .*?(?:$pattern)" || true)"
        [[ -z "$hits" ]] || complain "$rule:"$'\n'"$hits"
    done
}

mapfile -t sources < <(git ls-files --cached --others --exclude-standard 'src/*.rs')
mapfile -t everything < <(git ls-files --cached --others --exclude-standard '*.rs')
((${#sources[@]} > 0)) || complain "no sources found"

# outside PREFIX: the sources whose path does not start so.
outside() { printf '%s\n' "${sources[@]}" | grep -v "^$1" || true; }

mapfile -t not_atomic < <(outside src/atomic/)
mapfile -t not_sync < <(outside src/atomic/sync.rs)
mapfile -t not_clock < <(outside src/clock.rs)
mapfile -t not_float < <(outside "$floats_in")
refuse "atomics belong in src/atomic" '\bOrdering::(Relaxed|Acquire|Release|AcqRel|SeqCst)\b|\bAtomic[A-Z]\w*|\bsync::atomic\b|\bfence\(' "${not_atomic[@]}"
refuse "the atomic types come from src/atomic/sync.rs" '\b(core|std|loom)::sync::atomic|\bportable_atomic\b' "${not_sync[@]}"
refuse "clocks are read in src/clock.rs" '\bInstant\b|\bSystemTime\b|\bquanta::' "${not_clock[@]}"
refuse "floats belong in $floats_in" '\bf(32|64)\b' "${not_float[@]}"
refuse "no unsafe code" '\bunsafe\b' "${sources[@]}"
refuse "no locks" '\b(Mutex|RwLock|Condvar)\b' "${not_sync[@]}" # there, in the mock of a word that loom lacks
# The fleet's connection is made by its background tasks, which wait for each other there; no request does.
mapfile -t adapters < <(git ls-files --cached --others --exclude-standard 'adapters/*/src/*.rs' | grep -v '^adapters/fleet/src/engine.rs$')
refuse "no locks" '\b(Mutex|RwLock|Condvar)\b' "${adapters[@]}"

# Prints "MODULE NAME" for each name that lib.rs re-exports, and "MODULE MODULE" for each module.
names() {
    code src/lib.rs | sed -E 's/^[^ ]+ //' | tr '\n' ' ' | tr ';' '\n' | awk '
        match($0, /(^|[ )}])mod +[a-z_]+ *$/) { n = split($0, w, " "); print w[n], w[n] }
        /pub use +(crate::)?[a-z_]+::/ {
            sub(/.*pub use +(crate::)?/, "")
            module = $0; sub(/::.*/, "", module)
            gsub(/[^A-Za-z0-9_]+/, " ")
            n = split($0, w, " ")
            for (i = 2; i <= n; i++) print module, w[i]
        }'
}

# Prints each name that a file imports from the top of the crate.
imports() {
    code "$1" | sed -E 's/^[^ ]+ //' | tr '\n' ' ' | awk -v top="$2" '
        {
            if (top) gsub(/(^|[^A-Za-z0-9_:])super::/, " crate::")
            while (match($0, /(^|[^A-Za-z0-9_])crate::/)) {
                $0 = substr($0, RSTART + RLENGTH)
                if (substr($0, 1, 1) != "{") {
                    match($0, /^[A-Za-z0-9_]+/); print substr($0, 1, RLENGTH); continue
                }
                depth = 0; name = ""
                for (i = 1; i <= length($0); i++) {
                    c = substr($0, i, 1)
                    if (c == "{") { depth++; if (depth == 1) continue }
                    if (c == "}") depth--
                    if ((depth == 1 && c == ",") || depth == 0) {
                        sub(/^ +/, "", name); sub(/[^A-Za-z0-9_].*/, "", name)
                        if (name != "") print name
                        name = ""
                        if (depth == 0) break
                        continue
                    }
                    name = name c
                }
            }
        }' | sort -u
}

# Prints the number of a module's layer, or nothing if it has none.
layer() { awk -v module="$1" '{ for (i = 1; i <= NF; i++) if ($i == module) print NR }' <<<"$layers"; }

# Every model that a comment of the core names exists.
while read -r model; do
    grep -q "fn ${model#*::}()" "loom-tests/src/${model%%::*}.rs" 2>/dev/null || complain "no model $model in loom-tests"
done < <(grep -rhoE "\`($(basename -as .rs loom-tests/src/*.rs | paste -sd '|'))::[a-z_]+\`" src/atomic | tr -d '`' | sort -u)

declare -A home=()
while read -r module name; do home["$name"]="$module"; done < <(names)
for file in "${sources[@]}"; do
    [[ "$file" != src/lib.rs ]] || continue
    path="${file#src/}"
    module="${path%%/*}" module="${module%.rs}"
    # Text only, and links to everything.
    [[ "$module" != guide ]] || continue
    own="$(layer "$module")"
    [[ -n "$own" ]] || { complain "$file: its module has no layer in ci/layers.sh"; continue; }
    top=1
    [[ "$path" != */* ]] || top=""
    while read -r name; do
        from="${home[$name]:-}"
        [[ -n "$from" ]] || { complain "$file: $name is not a name of src/lib.rs"; continue; }
        other="$(layer "$from")"
        [[ -z "$other" ]] || ((other <= own)) ||
            complain "$file: imports $name from $from, a layer below its own"
        done < <(imports "$file" "$top")
done

for file in "${everything[@]}"; do
    lines="$(wc -l <"$file")"
    ((lines <= max_file)) || complain "$file: $lines lines, more than $max_file"
    long="$(awk -v most="$max_function" '
        {
            line = $0
            gsub(/"([^"\\]|\\.)*"/, "", line); sub(/\/\/.*/, "", line)
            gsub(/\047(\\.|[^\\\047])\047/, "", line); gsub(/\[[^][]*\]/, "", line)
        }
        !inside && match(line, /(^|[^A-Za-z0-9_])fn +[A-Za-z0-9_]+/) {
            name = substr(line, RSTART, RLENGTH); sub(/.*fn +/, "", name)
            inside = 1; opened = 0; depth = 0; first = FNR; line = substr(line, RSTART + RLENGTH)
        }
        inside {
            n = length(line)
            for (i = 1; i <= n && inside; i++) {
                c = substr(line, i, 1)
                if (c == "{") { depth++; opened = 1 }
                if (c == "}") depth--
                if (c == ";" && !opened) inside = 0
                if (opened && depth == 0) {
                    inside = 0
                    if (FNR - first + 1 > most) print FILENAME ":" first ": " name " has " FNR - first + 1 " lines"
                }
            }
        }' "$file")"
    [[ -z "$long" ]] || complain "$long, more than $max_function"
done
exit "$status"
