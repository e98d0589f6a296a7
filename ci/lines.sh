#!/usr/bin/env bash
# Lines of code of the crates, of the core's atomic words and of the examples: without blank lines, comments and tests.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# count FILES...: prints how many of their lines are code. An item under `#[cfg(test)]` or `#[test]`
# is none, up to its last brace or its semicolon.
count() {
    awk '
        FNR == 1 { test = 0 }
        {
            gsub(/\\./, "")
            gsub(/'\''[{}";]'\''/, "")
            gsub(/"[^"]*"/, "s")
            sub(/\/\/.*/, "")
        }
        /^[ \t]*$/ { next }
        !test && /^[ \t]*#\[(cfg\((all\()?test|test\]|tokio::test)/ { test = 1; depth = opened = 0; next }
        test && (attribute || (!opened && /^[ \t]*#\[/)) { attribute = !/\][ \t]*$/; next }
        test {
            ups = gsub(/\{/, "")
            depth += ups - gsub(/\}/, "")
            opened += ups
            if (depth <= 0 && (opened || /[;,][ \t]*$/)) test = 0
            next
        }
        { lines++ }
        END { print lines + 0 }
    ' "$@"
}

# row NAME FOLDER
row() {
    local files
    mapfile -t files < <(git ls-files --cached --others --exclude-standard "$2/*.rs" | grep -vE '(^|/)tests(\.rs|/)' |
        while read -r file; do [[ ! -f "$file" ]] || printf '%s\n' "$file"; done)
    printf '%-24s %5d %7d\n' "$1" "${#files[@]}" "$(count "${files[@]}")"
}

printf '%-24s %5s %7s\n' "" files lines
for folder in crates/core/src crates/core/src/atomic src examples; do
    row "$folder" "$folder"
done
