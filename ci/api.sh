#!/usr/bin/env bash
# The public interface of the core as `api/` has it: with every feature, and with none. Fails with the difference; `ci/api.sh --write`
# takes it over. Needs nightly and `cargo-public-api`, in versions that know each other's format.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

write="${1:-}"

# The guides are documentation only.
interface() {
    cargo public-api --package paceline -ss --target-dir "$CARGO_TARGET_DIR/api" "$@" | grep -v '^pub mod paceline::guide'
}

# same NAME FEATURES...
same() {
    local file="api/$1.txt" found
    shift
    found="$(interface "$@")" || return
    if [[ "$write" == --write ]]; then
        printf '%s\n' "$found" >"$file"
    else
        diff -u --label "$file" --label "src/" "$file" - <<<"$found"
    fi
}

mkdir -p api
step "every feature" same paceline --all-features
step "no feature" same paceline-no-features --no-default-features
closing
