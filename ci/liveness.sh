#!/usr/bin/env bash
# The model of crates/core/src/atomic/send_rate/waiters.pml and its broken twins, by spin: the model has no run in which a waiter sleeps for
# good, and each twin has one. Needs spin and a C compiler, and 4 GB of memory for each processor.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out="$CARGO_TARGET_DIR/liveness"
rm -rf "$out" && mkdir -p "$out"
cp crates/core/src/atomic/send_rate/waiters.pml "$out"
cd "$out"

# play NAME WANTED FLAGS...: WANTED is the number of errors.
play() {
    local name="$1" wanted="$2" line
    shift 2
    mkdir "$name"
    cd "$name"
    spin "$@" -a ../waiters.pml >/dev/null
    cc -O2 -w -DNFAIR=4 -o pan pan.c
    ./pan -a -f -m200000 -w27 -N served >log 2>&1
    line="$(grep -E '^State-vector' log)"
    printf '%-16s %s, %s states\n' "$name" "${line##*, }" "$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log)"
    [[ "$line" == *"errors: $wanted" ]] && ! grep -q 'max search depth too small' log
}

export -f play
{
    printf '%s\n' "all-go-on 0" "one-stops 0 -DSTOPS" "twin-6 1 -DSTOPS -DBROKEN=6"
    printf 'twin-%s 1 -DBROKEN=%s\n' 1 1 2 2 3 3 4 4 5 5 7 7 8 8
} | xargs -P "$(nproc)" -I{} bash -c 'set -euo pipefail; play {}'
