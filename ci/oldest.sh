#!/usr/bin/env bash
# The tests of the adapters with the oldest hosts that each supports. Arguments pick adapters.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The oldest version of each host that an adapter supports, and of what else has to be as old; the packages that need it first.
# shellcheck disable=SC2034 # read by its name
oldest_aws="
aws-sdk-s3 1.150.0
aws-runtime 1.10.0
aws-smithy-runtime 1.16.0
aws-smithy-http-client 1.5.0
aws-sigv4 1.6.0
aws-smithy-http 0.64.1
aws-types 1.6.0
aws-smithy-observability 0.3.0
aws-credential-types 1.3.0
aws-smithy-runtime-api 1.19.0
aws-smithy-types 1.9.0
aws-smithy-async 1.3.0
"

# shellcheck disable=SC2034 # read by its name
oldest_backoff="
backon 1.3.0
tokio-retry 0.3.0
"

# shellcheck disable=SC2034 # read by its name
oldest_object_store="
object_store 0.14.0
"

# shellcheck disable=SC2034 # read by its name
oldest_object_store_0_13="
object_store 0.13.0
"

# shellcheck disable=SC2034 # read by its name
oldest_opendal="
opendal 0.59.1
opendal-service-azblob 0.59.1
opendal-service-gcs 0.59.1
opendal-service-s3 0.59.1
opendal-service-webdav 0.59.1
opendal-service-azure-common 0.59.1
opendal-layer-retry 0.59.1
opendal-http-transport-reqwest 0.59.1
opendal-layer-timeout 0.59.1
opendal-core 0.59.1
"

# shellcheck disable=SC2034 # read by its name
oldest_opendal_0_57="
opendal 0.57.0
"

# shellcheck disable=SC2034 # read by its name
oldest_reqwest="
reqwest-middleware 0.5.0
reqwest 0.13.1
"

# shellcheck disable=SC2034 # read by its name
oldest_tower="
reqwest 0.13.1
axum 0.8.0
tonic 0.14.0
tower 0.5.2
tower-layer 0.3.3
tower-service 0.3.3
hyper-util 0.1.12
hyper 1.6.0
http 1.1.0
http-body 1.0.0
http-body-util 0.1.2
pin-project-lite 0.2.16
tokio-util 0.7.11
tokio-stream 0.1.16
tokio 1.38.0
bytes 1.7.1
"

# features PACKAGE: the features to test it with, besides the default ones.
features() {
    case "$1" in
        paceline-reqwest) echo llm ;;
        paceline-tower) echo grpc,policy ;;
    esac
}

# oldest ADAPTER: its tests in a copy of the checkout, whose lock file is changed.
oldest() {
    local copy="$CARGO_TARGET_DIR/oldest-hosts" versions="oldest_${1//-/_}" package version
    mkdir -p "$copy"
    git ls-files --cached --others --exclude-standard -z Cargo.toml README.md crates src adapters |
        tar --null --files-from - -cf - | tar -xf - -C "$copy" || return
    # Alone: what others need of the same hosts is not to be had as old.
    sed -i "s/^members = .*/members = [\"$1\"]/" "$copy/adapters/Cargo.toml" || return
    # Drops what only others need from the lock file, so that the name of a host is not ambiguous.
    cargo update --manifest-path "$copy/adapters/Cargo.toml" --workspace || return
    while read -r package version; do
        [[ -z "$package" ]] ||
            cargo update --manifest-path "$copy/adapters/Cargo.toml" --package "$package" --precise "$version" || return
    done <<<"${!versions}"
    cargo test --manifest-path "$copy/adapters/Cargo.toml" --package "paceline-$1" --features "$(features "paceline-$1")"
}

(($# > 0)) || set -- aws backoff object-store object-store-0-13 opendal opendal-0-57 reqwest tower
for adapter; do
    step "$adapter: oldest hosts" oldest "$adapter"
done
closing
