#!/usr/bin/env bash
# The small examples, run: each checks what it did, and fails if it was not as it says.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

for example in tables thread_pool web_handler embedding; do
    printf -- '-- %s\n' "$example"
    cargo run --quiet --example "$example"
done
