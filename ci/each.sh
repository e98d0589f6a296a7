#!/usr/bin/env bash
# The runner of the models, and of a million scopes: `each.sh BINARY FILTERS...` runs each test in a process of its own, as
# many at once as there are processors. As threads of one process they wait for each other whenever a model makes its
# stacks. Those that are ignored run alone with `--ignored`, and with the others if there are filters.
set -euo pipefail

one() {
    local said
    if said="$("$1" --include-ignored --exact "$2" 2>&1)"; then
        grep -m1 '^test .* \.\.\. ' <<<"$said"
        ((SECONDS < 10)) || printf '  in %d s: %s\n' "$SECONDS" "$2"
    else
        printf '%s\n' "$said"
        return 1
    fi
}
export -f one

listed() { "$@" --list --format terse | sed -n 's/: test$//p'; }
mapfile -t names < <(listed "$@")
if (($# == 1)); then
    mapfile -t names < <(printf '%s\n' "${names[@]}" | grep -vxF -f <(listed "$1" --ignored))
fi
((${#names[@]} > 0)) || { echo "no test matches ${*:2}" >&2; exit 1; }
# shellcheck disable=SC2016 # for the shells that it starts
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'one "$1" "$2"' one "$1" {}
printf 'test result: ok. %d passed\n' "${#names[@]}"
