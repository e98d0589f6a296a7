#!/usr/bin/env bash
# A release. `ci/release.sh --dry-run` makes each archive, builds each from an empty folder, and prints what would be published and tagged, in
# order. `ci/release.sh --publish` publishes and tags after that. What has its tag already is left out.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mode="${1:-}"
[[ "$mode" == --dry-run || "$mode" == --publish ]] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
[[ -z "$(git status --porcelain)" ]] || { echo 'the checkout has changes: cargo packs what is committed' >&2; exit 1; }

ci/package.sh

# field NAME MANIFEST
field() { sed -n "s/^$1 = \"\(.*\)\"/\1/p" "$2" | head -1; }

version="$(field version Cargo.toml)"
grep -q "^## $version\$" CHANGELOG.md || {
    printf 'CHANGELOG.md has no heading "## %s"\n' "$version" >&2
    [[ "$mode" == --dry-run ]]
}
# Each after what it needs: the registry has to have that.
manifests=(crates/core/Cargo.toml Cargo.toml)
for name in $(sed -n 's/^members = \[\(.*\)\]/\1/p' adapters/Cargo.toml | tr -d '",' | sed 's/ kit//') fleet; do
    manifests+=("adapters/$name/Cargo.toml")
done
for manifest in "${manifests[@]}"; do
    package="$(field name "$manifest")" number="$(field version "$manifest")"
    tag="${package#paceline-}-v$number"
    [[ "$package" != paceline && "$package" != paceline-core ]] || tag="v$number"
    # The core has no tag, but that of `paceline`, which comes after it.
    if git rev-parse -q --verify "refs/tags/$tag" >/dev/null; then
        printf '%s %s: has its tag\n' "$package" "$number"
        continue
    fi
    printf '%s %s: cargo publish --manifest-path %s\n' "$package" "$number" "$manifest"
    [[ "$mode" == --dry-run ]] || cargo publish --locked --manifest-path "$manifest"
    [[ "$package" == paceline-core ]] || {
        printf '%s %s: git tag %s\n' "$package" "$number" "$tag"
        [[ "$mode" == --dry-run ]] || git tag --annotate --message "$package $number" "$tag"
    }
done
