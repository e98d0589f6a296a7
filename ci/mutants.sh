#!/usr/bin/env bash
# Mutation testing: changes the source in one place after the other, and runs the fast tests on each. Takes a day.
# `ci/mutants.sh` runs all parts, `ci/mutants.sh edges fleet` some; other arguments go to cargo-mutants:
# `ci/mutants.sh core --shard 0/4`, `ci/mutants.sh core -F crates/core/src/line.rs`.
# What survives and why it may stands in .cargo/mutants.toml; whatever else survives makes this fail. A mutant that
# never ends counts as found. The lists are in target/mutants/PART/mutants.out.
# `ci/mutants.sh chosen` plants those of ci/chosen.txt, without cargo-mutants; `ci/mutants.sh chosen L1 C3` some. A
# line `# L1: why` there says why one may survive. `ci/mutants.sh --check` only looks whether each of these, and each
# pattern of .cargo/mutants.toml, still fits the code.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

root="$PWD"
out="$CARGO_TARGET_DIR/mutants"
tree="$out/tree"
export CARGO_TARGET_DIR="$out/target" CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=false

# plant LEVEL: a copy to change, with this level of optimization.
plant() {
    export CARGO_PROFILE_DEV_OPT_LEVEL="$1"
    rm -rf "$tree"
    mkdir -p "$tree"
    git ls-files -z --cached --others --exclude-standard Cargo.toml Cargo.lock README.md .cargo api crates src tests adapters/{fleet,kit} |
        tar --null -T - -cf - | tar xmf - -C "$tree"
    cd "$tree"
    sed -i -E -e '/^\[profile/,/^$/d' -e 's/^members = .*/members = ["crates\/core"]/' -e '/^default-members/d' Cargo.toml
}

# judge TESTS... -- ARGUMENTS...: every mutant that the arguments choose, by the tests in the library and in these binaries.
judge() {
    local status=0 lists="$out/$part/mutants.out" tests=(--lib)
    while [[ "$1" != -- ]]; do
        tests+=(--test "$1")
        shift
    done
    mkdir -p "$out/$part"
    cargo mutants --workspace --test-workspace=true --in-place --config "$tree/.cargo/mutants.toml" --timeout 60 --no-shuffle --output "$out/$part" "${@:2}" \
        -- "${tests[@]}" || status=$?
    # 3: some never ended, and perhaps some survived besides.
    if [[ -s "$lists/missed.txt" ]]; then
        printf 'survived in %s:\n%s\n' "$part" "$(<"$lists/missed.txt")" >&2
        status=2
    fi
    ((status == 0 || status == 3))
}

# each_chosen COMMAND: with the name, the file and the change of each chosen mutant, or of those in `names`, planted.
each_chosen() {
    local name file change status=0
    while read -r name file change; do
        [[ "$name" != '#' && (-z "${names[*]}" || " ${names[*]} " == *" $name "*) ]] || continue
        perl -0pe "$change" "$file" >"$out/changed"
        if cmp -s "$file" "$out/changed"; then
            printf '%s: fits nothing in %s\n' "$name" "$file"
            status=1
        else
            "$1" "$name" "$file" || status=1
        fi
    done <"$root/ci/chosen.txt"
    return "$status"
}

# The tests inside of the library come first, then those of their kind, and waiters.
# shellcheck disable=SC2317 # called by its name
judge_chosen() {
    local test
    local -A kinds=([P]='operations buckets' [L]='buckets' [C]='buckets declared strategies' [D]='declared buckets strategies')
    found() {
        printf '%s: found by %s\n' "$name" "$({ grep -m1 -oP '^---- \K\S+' "$out/chosen/$name.log" || printf 'a test that never ends'; })"
    }
    cp "$file" "$out/before"
    cp "$out/changed" "$file"
    for test in --lib ${kinds[${name:0:1}]} waiting; do
        [[ "$test" == --lib ]] || test="--test=$test"
        if ! timeout 600 cargo test --quiet "$test" >"$out/chosen/$name.log" 2>&1; then
            cp "$out/before" "$file"
            ! grep -q '^error: could not compile' "$out/chosen/$name.log" || { printf '%s: does not build\n' "$name"; return 1; }
            found
            return
        fi
    done
    cp "$out/before" "$file"
    grep -q "^# $name: " "$root/ci/chosen.txt" || { printf '%s: survives\n' "$name"; return 1; }
    printf '%s: survives for a reason\n' "$name"
}

# The patterns of .cargo/mutants.toml: each names a file that is there, and functions that it has.
fitting_patterns() {
    python3 - <<'PYTHON'
import pathlib, re, sys, tomllib

source = {str(p): p.read_text() for top in ("src", "crates/core/src", "adapters/fleet/src") for p in pathlib.Path(top).rglob("*.rs")}
wrong = []
for pattern in tomllib.loads(pathlib.Path(".cargo/mutants.toml").read_text())["exclude_re"]:
    path = pattern[pattern.index("src/") :].split(".*")[0].split(r":\d")[0] if "src/" in pattern else "src/"
    if path.count("(") > path.count(")"):
        path = path[: path.index("(")]
    files = [name for name in source if re.search(path.split(":")[0], name)]
    names = re.sub(r"<[^>]*>", "", pattern).split(" in ")[-1] if " in " in pattern else ""
    functions = re.findall(r"(?:::|[(|]|^)([a-z_]{3,})(?=[|)$(]|$)(?!\)_)", names)
    missing = [f for f in functions if not any(re.search(rf"\b(fn|mod|const|static) {f}\b", source[n]) for n in files)]
    if not files or missing:
        wrong.append(f"{pattern}\n  fits no {'function ' + ', '.join(missing) if files else 'file'}")
print("\n".join(wrong))
sys.exit(bool(wrong))
PYTHON
}

run() {
    case "$part" in
        core)
            plant 1
            judge buckets laws declared -- --file 'crates/core/src/{atomic,law,line}/**' --file 'crates/core/src/{bits,fixed,line,time}.rs' "$@"
            ;;
        edges)
            plant 0
            judge http config seen strategies -- --file 'src/{backoff,clock,headers,headers/retry_after,random}.rs' --file 'crates/core/src/{permit,print}.rs' \
                --file 'src/{classify,aws_config}/**' "$@"
            ;;
        strategy)
            plant 0
            judge strategies operations seen -- --file 'src/strategy/**' "$@"
            ;;
        waiting)
            plant 0
            judge operations scopes buckets waiting http -- --file 'src/{operation,scope,wait}/**' --file 'crates/core/src/{set/**,limit.rs}' "$@"
            ;;
        fleet)
            plant 1
            cd adapters/fleet
            judge -- --all-features "$@"
            ;;
        chosen)
            plant 1
            mkdir -p "$out/chosen"
            each_chosen judge_chosen
            ;;
    esac
}

parts=() rest=() names=() survived=0
mkdir -p "$out"
if [[ "${1:-}" == --check ]]; then
    status=0
    each_chosen true || status=1
    fitting_patterns || status=1
    exit "$status"
fi
for word; do
    case "$word" in
        core | edges | strategy | waiting | fleet | chosen) parts+=("$word") ;;
        *) rest+=("$word") ;;
    esac
done
((${#parts[@]} > 0)) || parts=(core edges strategy waiting fleet)
[[ "${parts[*]}" != chosen ]] || names=("${rest[@]}")
for part in "${parts[@]}"; do
    (run "${rest[@]}") || survived=1
done
exit "$survived"
