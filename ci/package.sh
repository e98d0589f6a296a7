#!/usr/bin/env bash
# The packages as they would be published: what is in each, that it builds from that alone, and the core's documentation as docs.rs
# builds it. Wants a checkout without changes, as publishing does.
# Before `paceline` is in the registry, the adapters' packages can be built only with a patch that puts this checkout's core in its
# place, and `cargo publish --dry-run` of an adapter fails. After it: `cargo publish --dry-run --manifest-path adapters/...`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)"
core=(--config "patch.crates-io.paceline.path='$PWD'" --config "patch.crates-io.paceline-core.path='$PWD/crates/core'")

# contents MANIFEST PACKAGE: both licences and the README are in it, and nothing but sources beside them.
contents() {
    local files odd file
    files="$(cargo package --list --quiet --locked --manifest-path "$1" --package "$2")" || return
    for file in LICENSE-APACHE LICENSE-MIT README.md src/lib.rs; do
        grep -qx "$file" <<<"$files" || { printf '%s: no %s\n' "$2" "$file" >&2; return 1; }
    done
    odd="$(grep -vxE '\.cargo_vcs_info\.json|Cargo\.(lock|toml|toml\.orig)|LICENSE-(APACHE|MIT)|(README|CHANGELOG|OPERATIONS)\.md|dashboard\.json|src/[a-z0-9_/]+\.rs|src/([a-z]+/)*[A-Za-z_]+\.(md|lua|txt|json)' <<<"$files" || true)"
    [[ -z "$odd" ]] || { printf '%s: what is this for?\n%s\n' "$2" "$odd" >&2; return 1; }
}

# Without a word of the tests and examples that stay out, one line for each.
quietly() { "$@" 2> >(grep -v '^warning: ignoring ' >&2); }

# documented FOLDER ARGUMENTS...: docs.rs has the package, and not the repository around it; and nightly.
documented() {
    local as_there=(cargo) cfg=""
    ! cargo +nightly --version >/dev/null 2>&1 || as_there=(cargo +nightly) cfg="--cfg docsrs"
    RUSTDOCFLAGS="-D warnings $cfg" "${as_there[@]}" doc --no-deps --all-features --target-dir "$CARGO_TARGET_DIR/api" \
        --manifest-path "$1/Cargo.toml" "${@:2}"
}

packaged() { quietly cargo package --no-verify --locked "${core[@]}" --manifest-path "$1" --workspace "${@:2}"; }

# Each archive, unpacked where nothing else is, builds from what is in it: the adapters with the unpacked core. The core's documentation too.
unpacked() {
    local into archive
    quietly cargo package --locked --no-verify --package paceline-core --package paceline || return # a dry run keeps no archive
    into="$(mktemp -d)" || return
    for archive in "$CARGO_TARGET_DIR"/package/paceline*-"$version".crate; do
        tar -xzf "$archive" -C "$into" || return
    done
    for archive in "$into"/*/; do
        (cd "$archive" && cargo check --lib --offline --config "patch.crates-io.paceline.path='$into/paceline-$version'" \
            --config "patch.crates-io.paceline-core.path='$into/paceline-core-$version'" \
            --target-dir "$CARGO_TARGET_DIR/unpacked") || { rm -rf "$into"; return 1; }
    done
    documented "$into/paceline-core-$version" || { rm -rf "$into"; return 1; }
    documented "$into/paceline-$version" --config "patch.crates-io.paceline-core.path='$into/paceline-core-$version'" || { rm -rf "$into"; return 1; }
    rm -rf "$into"
}

step "paceline-core: contents" contents crates/core/Cargo.toml paceline-core
step "paceline: contents" contents Cargo.toml paceline
# All but the kit of their tests, which is not published.
for adapter in $(sed -n 's/^members = \[\(.*\)\]/\1/p' adapters/Cargo.toml | tr -d '",' | sed 's/ kit//'); do
    step "paceline-$adapter: contents" contents adapters/Cargo.toml "paceline-$adapter"
done
step "paceline-fleet: contents" contents adapters/fleet/Cargo.toml paceline-fleet
step "adapters: packages" packaged adapters/Cargo.toml --exclude paceline-kit
step "fleet: package" packaged adapters/fleet/Cargo.toml
step "archives from an empty folder" unpacked
skip "cargo publish --dry-run of the adapters" "it asks the registry for paceline $version, which is published first"
closing
