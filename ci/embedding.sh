#!/usr/bin/env bash
# paceline inside other crates. For each host: its published source is fetched and changed by the insertions of
# `ci/embedding/hosts/HOST.sh`, its own tests run, and one program (`HOST.rs`) sends to a service that throttles, before and after. Prints a
# table; what each command printed is in the target folder. Arguments pick hosts: `ci/embedding.sh tokio-retry`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

root="$PWD"
work="$CARGO_TARGET_DIR/embedding"
export CARGO_TARGET_DIR="$work/target"
most_lines=60 most_crates=4

die() { printf '%s: %s\n' "$host" "$1" >&2; exit 1; }

# insert FILE ANCHOR BEFORE AFTER: the anchor stands in the file once.
insert() {
    local text rest
    text="$(<"$at/$1")"
    [[ "$text" == *"$2"* ]] || die "$1 has no anchor: $2"
    rest="${text#*"$2"}"
    [[ "$rest" != *"$2"* ]] || die "$1 has an anchor twice: $2"
    printf '%s\n' "${text%%"$2"*}$3$2$4$rest" >"$at/$1"
}
before() { insert "$1" "$2" "$3" ""; }
after() { insert "$1" "$2" "" "$3"; }

# logged NAME COMMAND...: shows what the command said only if it fails.
logged() {
    local log="$work/$host/$1.log"
    shift
    "$@" >"$log" 2>&1 || { tail -40 "$log" >&2; die "failed: $*"; }
}

# package WHEN: the program, with the host's source beside it.
package() {
    mkdir -p "$work/$host/$1/src"
    cp "$root/ci/embedding/hosts/$host.rs" "$work/$host/$1/src/main.rs"
    cp -r "$root/ci/embedding/stub" "$work/$host/$1/"
    cat >"$work/$host/$1/Cargo.toml" <<TOML
[workspace]
members = ["host"]
resolver = "3"
[package]
name = "$1"
edition = "2024"
[features]
after = []
[dependencies]
embedding-stub = { path = "stub" }
$host = { path = "host", default-features = false, features = [$features] }
tokio = { version = "1.38", features = ["macros", "rt-multi-thread"] }
$needs
TOML
}

# The published source, by a package that depends on it: into the folder `host`.
fetch() {
    local into="$work/$host/fetched" source
    mkdir -p "$into/src" && : >"$into/src/lib.rs"
    # shellcheck disable=SC2154 # set by the host's file
    printf '[package]\nname = "fetched"\nedition = "2024"\n[workspace]\n[dependencies]\n%s = "=%s"\n' "$host" "$version" >"$into/Cargo.toml"
    logged fetch cargo fetch --manifest-path "$into/Cargo.toml"
    source="$(cargo metadata --format-version 1 --offline --manifest-path "$into/Cargo.toml" |
        grep -oE '"manifest_path":"[^"]*/'"$host-$version"'/Cargo.toml"' | head -1 | cut -d'"' -f4)"
    cp -r "$(dirname "$source")" "$1"
    rm -f "$1/Cargo.lock"
}

# in_package WHEN COMMAND...: cargo in a package.
in_package() { cargo "$2" --manifest-path "$work/$host/$1/Cargo.toml" "${@:3}"; }

tree() { in_package "$1" tree --package "$host" --edges normal,build --prefix none --format '{p}' | sed 's/ (.*//' | sort -u; }

# The newest `rust-version` among the crates of the host's tree.
compiler() {
    tree "$1" >"$work/$host/tree-$1"
    in_package "$1" metadata --format-version 1 | python3 -c '
import json, sys
named = {tuple(line.split()[:2]) for line in open(sys.argv[1])}
packages = json.load(sys.stdin)["packages"]
found = [p["rust_version"] for p in packages if (p["name"], "v" + p["version"]) in named and p["rust_version"]]
print(max(found, key=lambda text: [int(part) for part in text.split(".")]))' \
        "$work/$host/tree-$1"
}

measure() {
    local at="$work/$host/after/host" added seconds lines own passed ignored left_out
    local features="" needs="" untested="" tests=() skipped=() inserted=paced.rs module=src/paced.rs taken=paceline-core place=crates/core
    # shellcheck source=/dev/null
    source "$root/ci/embedding/hosts/$host.sh"
    rm -rf "${work:?}/$host"
    package before && fetch "$work/$host/before/host"
    package after && cp -r "$work/$host/before/host" "$at"
    cp "$root/ci/embedding/$inserted" "$at/$module"
    printf '\n[dependencies.%s]\npath = "%s"\n' "$taken" "$root/$place" >>"$at/Cargo.toml"
    change
    # Without comments and empty lines.
    lines="$({ diff -rN "$work/$host/before/host" "$at" || true; } | grep '^> ' | grep -cvE '^> *(//.*)?$')"
    ((lines <= most_lines)) || die "$lines lines"

    logged lock in_package before generate-lockfile
    cp "$work/$host/before/Cargo.lock" "$work/$host/after/"
    logged before in_package before build --package before
    logged after in_package after build --package after --features after
    added="$(comm -13 <(tree before) <(tree after))"
    (($(wc -l <<<"$added") <= most_crates)) || die "adds $added"

    # The processor's seconds to build what is added, from nothing: other work on the machine does not count.
    local clean=() TIMEFORMAT='%U %S'
    while read -r name _; do clean+=(--package "$name"); done <<<"$added"
    logged clean in_package after clean "${clean[@]}"
    seconds="$({ time logged rebuilt in_package after build --package "$taken"; } 2>&1 | awk 'END { printf "%.1f", $1 + $2 }')"

    own="none: $untested"
    if [[ -z "$untested" ]]; then
        logged tests in_package after test --package "$host" --no-fail-fast "${tests[@]}" -- "${skipped[@]/#/--skip=}"
        passed="$(awk '/^test result/ { n += $4 } END { print n + 0 }' "$work/$host/tests.log")"
        ignored="$(awk '/^test result/ { n += $8 } END { print n + 0 }' "$work/$host/tests.log")"
        left_out="$(awk '/^test result/ { n += $12 } END { print n + 0 }' "$work/$host/tests.log")"
        ((passed > 0)) || die "no test ran"
        own="$passed, $ignored, $left_out"
    fi

    logged run-before in_package before run --package before
    logged run-after in_package after run --package after --features after
    printf '| %s %s | %d | %d: %s | %s | %s, %s | %s | %s | %s |\n' "$host" "$version" "$lines" "$(wc -l <<<"$added")" \
        "$(awk '{ print $1 }' <<<"$added" | paste -sd' ')" "$seconds" "$(compiler before)" "$(compiler after)" \
        "$own" "$(figures before)" "$(figures after)"
}

# The last line of what a program printed.
figures() { awk 'END { printf "%d, %d (%.0f %%), %d, %d s", $1, $2, 100 * $2 / $1, $3, $4 }' "$work/$host/run-$1.log"; }

(($# > 0)) || set -- tokio-retry reqwest-retry object_store kube-client async-openai
mkdir -p "$work"
printf '| host | lines | crates added | seconds to build them | oldest compiler of the tree, before and after | own tests: passed, ignored by the host, skipped | requests, throttled, operations lost: before | after |\n'
printf '|---|---|---|---|---|---|---|---|\n'
for host; do
    [[ -f "ci/embedding/hosts/$host.sh" ]] || { printf 'no host named %s\n' "$host" >&2; exit 2; }
    measure
done
