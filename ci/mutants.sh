#!/usr/bin/env bash
# Mutation testing: changes the source in one place after the other, and runs the fast tests on each. Takes a day.
# `ci/mutants.sh` runs all parts, `ci/mutants.sh edges fleet` some; other arguments go to cargo-mutants:
# `ci/mutants.sh core --shard 0/4`, `ci/mutants.sh core -F src/line.rs`.
# What survives and why it may stands in .cargo/mutants.toml; whatever else survives makes this fail. A mutant that
# never ends counts as found. The lists are in target/mutants/PART/mutants.out.
# `ci/mutants.sh chosen` plants those of ci/chosen.txt, without cargo-mutants; `ci/mutants.sh chosen L1 C3` some. A
# line `# L1: why` there says why one may survive.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out="$CARGO_TARGET_DIR/mutants"
tree="$out/tree"
export CARGO_TARGET_DIR="$out/target" CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=false

# plant LEVEL WHICH...: a copy to change, with this level of optimization. Its tests are one program, since linking
# takes longest, and two that are folders; `grep WHICH...` picks among their names.
plant() {
    export CARGO_PROFILE_DEV_OPT_LEVEL="$1"
    rm -rf "$tree"
    mkdir -p "$tree"
    git ls-files -z --cached --others --exclude-standard Cargo.toml Cargo.lock README.md .cargo api src tests examples/common \
        adapters/{fleet,promises} |
        tar --null -T - -cf - | tar xmf - -C "$tree"
    cd "$tree"
    sed -i -E -e '/^\[\[example\]\]/,/^$/d' -e '/^\[profile/,/^$/d' -e 's/^members = .*/members = []/' \
        -e 's/^autobenches = .*/autotests = false/' Cargo.toml
    printf '\n[[test]]\nname = "%s"\npath = "%s.rs"\n' all all config tests/config/main waiting tests/waiting/main >>Cargo.toml
    gather "${@:2}"
}

gather() {
    find tests -maxdepth 1 -name '*.rs' -printf '%f\n' | sed 's/\.rs$//' | { grep "$@" || true; } |
        sed 's/.*/#[path = "tests\/&.rs"]\nmod &;/' >all.rs
}

# judge ARGUMENTS...: every mutant that they choose; `skipped` goes to the tests.
skipped=()
judge() {
    local status=0 lists="$out/$part/mutants.out"
    mkdir -p "$out/$part"
    cargo mutants --in-place --config "$tree/.cargo/mutants.toml" --timeout 60 --no-shuffle --output "$out/$part" "$@" \
        -- --lib --tests -- "${skipped[@]}" || status=$?
    # 3: some never ended, and perhaps some survived besides.
    if [[ -s "$lists/missed.txt" ]]; then
        printf 'survived in %s:\n%s\n' "$part" "$(<"$lists/missed.txt")" >&2
        status=2
    fi
    ((status == 0 || status == 3))
}

# Above the core: without the tests that take long, measure, want a process or files that the copy lacks.
above() {
    plant 0 -vxE '.*_(allocations|extremes|traces)|compiler_messages|learned_rate|linearizability|public_.*|scopes_million|send_rate_(places|tuned|untimed)|soak'
    local skipped=(--skip waiters::tests::counts_are_those_of_a_plain_line)
    judge "$@"
}

# chosen [NAME...]: mutants chosen by hand: the tests inside of the library come first, then those of their kind, and waiters.
chosen() {
    local root="$PWD" name file change reasons status=0
    reasons="$(grep '^# ' ci/chosen.txt)"
    local -A kinds=(
        [P]='attempts|cancelled|declared_sets|reporting|run_(async|loop)|send_set|send_rate_(forgotten|places)'
        [L]='core_send_rate|send_charge|send_rate_(corners|places|threads|untimed|weights)'
        [C]='declared_sets|send_set|strategy_seen|two_classes'
        [D]='declared(_sets|_services|_strategy)?|send_set|several_limits'
    )
    plant 1 -vE .
    mkdir -p "$out/chosen"
    # fails WHICH: with what is planted now.
    fails() { ! timeout 600 cargo test --quiet "$@" >"$out/chosen/$name.log" 2>&1; }
    while read -r name file change; do
        [[ "$name" != '#' && (-z "$*" || " $* " == *" $name "*) ]] || continue
        gather -xE "${kinds[${name:0:1}]}"
        cp "src/$file" "$out/chosen/before"
        perl -0pi -e "$change" "src/$file"
        if cmp -s "src/$file" "$out/chosen/before"; then
            printf '%s: fits nothing in %s\n' "$name" "$file"
            status=1
        elif ! fails --lib && ! fails --test all && ! fails --test waiting; then
            if grep -q "^# $name: " <<<"$reasons"; then
                printf '%s: survives for a reason\n' "$name"
            else
                printf '%s: survives\n' "$name"
                status=1
            fi
        elif grep -q '^error: could not compile' "$out/chosen/$name.log"; then
            printf '%s: does not build\n' "$name"
            status=1
        else
            printf '%s: found by %s\n' "$name" "$({ grep -m1 -oP '^---- \K\S+' "$out/chosen/$name.log" || printf 'a test that never ends'; })"
        fi
        cp "$out/chosen/before" "src/$file"
    done <"$root/ci/chosen.txt"
    return "$status"
}

parts=() rest=() survived=0
for word; do
    case "$word" in
        core | edges | strategy | waiting | fleet | chosen) parts+=("$word") ;;
        *) rest+=("$word") ;;
    esac
done
((${#parts[@]} > 0)) || parts=(core edges strategy waiting fleet)

run() {
    local of_src='src/{backoff,clock,headers,permit,random,snapshot}.rs'
    case "$part" in
        core)
            plant 1 -xE 'core_.*|declared|golden_quota|learned_rate|(law|paced)_traces|send_rate_.*|send_set'
            judge --file 'src/{atomic,law,line}/**' --file 'src/{bits,fixed,line,time}.rs' "$@"
            ;;
        edges) above --file "$of_src" --file 'src/{classify,config}/**' "$@" ;;
        chosen) chosen "$@" ;;
        strategy) above --file 'src/strategy/**' "$@" ;;
        waiting) above --file 'src/{operation,scope,set,wait}/**' "$@" ;;
        fleet)
            plant 1 -vE .
            cd adapters/fleet
            judge --all-features "$@"
            ;;
    esac
}
for part in "${parts[@]}"; do
    (run "${rest[@]}") || survived=1
done
exit "$survived"
