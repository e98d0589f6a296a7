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
step adapters ci/adapters.sh --tests
skip "oldest compiler, sanitizers, libFuzzer, other targets, licences, shell scripts" \
    "they need nightly, apt or more tools: ci/extra.sh"
skip "adapters with their oldest hosts, the fleet, the comparison with real SDKs" \
    "they take many minutes, redis-server or Python: ci/adapters.sh, ci/extra.sh fleet, ci/s3.sh"
closing
