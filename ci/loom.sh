#!/usr/bin/env bash
# The models of the atomic core. Arguments are filters: `ci/loom.sh quota` runs some.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# models CFG TARGET FILTERS...
models() {
    RUSTFLAGS="$1" cargo --config "target.'cfg(all())'.runner = '$PWD/ci/each.sh'" \
        test --release -p loom-tests --lib --target-dir "$2" -- "${@:3}"
}

models "--cfg loom" "$loom_target" "$@"
# The quota has another form where 64-bit words are not native.
models "--cfg loom --cfg narrow" "$loom_target-narrow" quota::
