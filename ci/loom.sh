#!/usr/bin/env bash
# The models of the atomic core. Arguments are filters: `ci/loom.sh quota` runs some. `--narrow` has the quota's other form
# alone, where 64-bit words are not native. `--long` has the models of minutes alone, which are left out if there is no
# argument.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cfg="--cfg loom" target="$loom_target"
if [[ "${1:-}" == --narrow ]]; then
    cfg="--cfg loom --cfg narrow" target="$loom_target-narrow"
    set -- quota::
elif [[ "${1:-}" == --long ]]; then
    set -- --ignored
fi
RUSTFLAGS="$cfg" apart test --release -p loom-tests --lib --target-dir "$target" -- "$@"
