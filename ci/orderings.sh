#!/usr/bin/env bash
# Weakens every non-relaxed memory ordering of the core in turn, and tears every compare-and-swap into a load and
# a store in turn, and runs the models on each. Ends "every weakening is caught", or with those that are not.
# Arguments are files of src/atomic to do alone: `ci/orderings.sh src/atomic/send_rate/head.rs`.
# Those that no model of loom's can see stand in ci/orderings.txt, each with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."

work=target/orderings
mkdir -p "$work"
rm -rf "$work/tree"
mkdir "$work/tree"
git ls-files -z Cargo.toml Cargo.lock src loom-tests | tar --null -T - -cf - | tar -xmf - -C "$work/tree"
root=$PWD
cd "$work/tree"
# The models need nothing of what the examples and tests of the root package need.
sed -i '/^\[dev-dependencies\]/,/^\[/{/^\[dev-dependencies\]/d;/^[a-z]/d}' Cargo.toml
sed -i 's/^members = .*/members = ["loom-tests"]/' Cargo.toml
sed -i '/^\[\[example\]\]/,/^$/d' Cargo.toml
export RUSTFLAGS="--cfg loom" RUST_BACKTRACE=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR="$root/target/loom-mutants"

# The models that the comments of a file name.
names() {
    case $1 in
        */places.rs) echo line:: live_places ;;
        */gate.rs | */hint.rs) echo send_rate:: paced:: ;;
        */head.rs) echo a_wrapped a_reader two_ three_ ;;
        */cells.rs) echo counts:: usage:: occupancy:: latest:: ;;
        */controller.rs) echo no_count a_window a_snapshot_shows a_reset three_ paced:: ;;
        */wake.rs | */waiters.rs) echo waiters:: ;;
        */retry_budget.rs) echo budget:: ;;
        */retry_quota.rs) echo quota:: ;;
        */acquire.rs) echo two_takers a_try_and places_are an_older grants_never ;;
        */counter/*) echo stripes:: no_count ;;
        *) echo send_rate:: paced:: ;;
    esac
}

models() { # names...
    cargo test --release -p loom-tests --lib --no-run >"$root/$work/log" 2>&1 || return
    timeout 300 cargo test --release -p loom-tests --lib -- "$@" >"$root/$work/log" 2>&1
}

files=(src/atomic/*.rs src/atomic/counter/*.rs src/atomic/send_rate/*.rs)
checked=(a_ two_)
if (($# > 0)); then
    files=("$@")
    # shellcheck disable=SC2046 # words on purpose
    checked=($(for file in "$@"; do names "$file"; done))
fi
echo "unchanged:"
models "${checked[@]}" || { tail -30 "$root/$work/log"; echo "the models fail on the code as it is"; exit 1; }
caught=0
missed=()
try() { # file line from to
    local file=$1 line=$2 from=$3 to=$4 what by key result
    what="$file:$line: $from -> $to"
    cp "$file" "$root/$work/original"
    sed -i "${line}s/${from}/${to}/" "$file"
    if [ "$to" = "torn_exchange" ]; then
        # In each module that imports an atomic.
        sed -i -E 's/^( *)use (crate::atomic|super)::sync::/\1#[allow(unused_imports)]\n\1use crate::atomic::sync::Torn as _;\n&/' "$file"
    fi
    # shellcheck disable=SC2046 # words on purpose
    if models $(names "$file"); then
        result=0
    else
        result=$?
    fi
    if [ "$result" = 0 ] && [[ $file == */retry_quota.rs ]]; then
        # Once more in the form for targets without native 64-bit words.
        # shellcheck disable=SC2046 # words on purpose
        RUSTFLAGS="$RUSTFLAGS --cfg narrow" CARGO_TARGET_DIR="$root/target/loom-mutants-narrow" models $(names "$file") ||
            result=$?
    fi
    if [ "$result" = 0 ]; then
        key="$file: $(sed -n "${line}p" "$root/$work/original" | sed 's/^ *//') -> $to"
        if grep -qF "$key" "$root/ci/orderings.txt"; then
            echo "argued  $what"
        else
            echo "MISSED  $what"
            missed+=("$key")
        fi
    elif grep -q 'test result: FAILED' "$root/$work/log"; then
        caught=$((caught + 1))
        by=$(grep -m1 -oE '^test [a-z_:]+ \.\.\. FAILED' "$root/$work/log" | cut -d' ' -f2)
        echo "caught  $what by $by"
    elif [ "$result" = 124 ]; then
        # A loop that nothing bounds any more: as it is, the model ends in seconds.
        caught=$((caught + 1))
        echo "caught  $what by a model that does not end"
    else
        tail -20 "$root/$work/log"
        echo "neither built nor ran to its end: $what"
        exit 1
    fi
    cp "$root/$work/original" "$file"
}

while IFS=: read -r file line text; do
    case $text in
        *"load(Acquire)"*) try "$file" "$line" 'load(Acquire)' 'load(Relaxed)' ;;
    esac
    case $text in
        *"Release, Relaxed)"*) try "$file" "$line" 'Release, Relaxed)' 'Relaxed, Relaxed)' ;;
    esac
    case $text in
        *"fetch_"*"Release)"*) try "$file" "$line" 'Release)' 'Relaxed)' ;;
    esac
    case $text in
        *".compare_exchange_weak("*) try "$file" "$line" 'compare_exchange_weak' 'torn_exchange' ;;
        *".compare_exchange("*) try "$file" "$line" 'compare_exchange' 'torn_exchange' ;;
    esac
done < <(grep -nHE 'load\(Acquire\)|Release, Relaxed\)|fetch_.*Release\)|\.compare_exchange' "${files[@]}" \
    | grep -v '^src/atomic/sync.rs' | grep -vE '^[^:]*:[0-9]*: *(//|use )')

echo "$caught weakenings caught"
if [ ${#missed[@]} -eq 0 ]; then
    echo "every weakening is caught, or argued in ci/orderings.txt"
else
    printf 'not caught: %s\n' "${missed[@]}"
    exit 1
fi
