#!/usr/bin/env bash
# Every check that needs only Rust and a C compiler. Goes on after a failure and names it at the end.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

step fmt ci/fmt.sh
step layers ci/layers.sh
step clippy ci/clippy.sh
step doc ci/doc.sh
step loom ci/loom.sh
step stall ci/stall.sh
step shuttle ci/shuttle.sh
step fuzz-smoke ci/fuzz-smoke.sh
step test ci/test.sh
step examples ci/examples.sh
step benches ci/benches.sh
skip "oldest compiler, sanitizers, libFuzzer, other targets, licences, shell scripts" \
    "they need nightly, apt or more tools: ci/extra.sh"
skip "adapters, and the comparison with real SDKs" "their hosts take minutes to build: ci/adapters.sh, ci/s3.sh"
closing
