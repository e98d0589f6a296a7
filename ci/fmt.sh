#!/usr/bin/env bash
# Formatting, of all three workspaces.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check
cargo fmt --manifest-path adapters/Cargo.toml --all --check
cargo fmt --manifest-path adapters/fleet/Cargo.toml --check
