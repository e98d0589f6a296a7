#!/usr/bin/env bash
# The public interface of each crate as `api/` has it, with every feature. Fails with the difference; `ci/api.sh --write`
# takes it over. Needs nightly and `cargo-public-api`, in versions that know each other's format.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

write="${1:-}"

# The guides are documentation only.
interface() {
    cargo public-api --package "$1" -ss --all-features --target-dir "$CARGO_TARGET_DIR/api" | grep -v '^pub mod paceline::guide'
}

# same PACKAGE
same() {
    local file="api/$1.txt" found
    found="$(interface "$1")" || return
    if [[ "$write" == --write ]]; then
        printf '%s\n' "$found" >"$file"
    else
        diff -u --label "$file" --label "src/" "$file" - <<<"$found"
    fi
}

mkdir -p api
for package in paceline-core paceline; do
    step "$package" same "$package"
done
closing
