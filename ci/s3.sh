#!/usr/bin/env bash
# The real SDKs against a real rate limiter: 4,003 copies in each mode, counted at the limiter. Behind it answers a stub
# of nginx, which a busy machine hardly slows. Sets up what it needs in the target folder, from package registries;
# leaves nothing running. Arguments pick modes. Settings are variables:
#   WORKERS=64 of each client, CLIENTS=1 processes, LIMITER=nginx (a token bucket) or haproxy (a sliding window of a
#   second), RATE=100 a second, BURST=100 at once (nginx), COPIES=4003 of all clients together, RUNS=1 of each mode.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

copies="${COPIES:-4003}" workers="${WORKERS:-64}" clients="${CLIENTS:-1}" runs="${RUNS:-1}"
limiter="${LIMITER:-nginx}" rate="${RATE:-100}" burst="${BURST:-100}"
longest=240 # seconds for one run
all_modes="sdk-standard sdk-adaptive aws-law paced bulk boto3-legacy boto3-standard boto3-adaptive"
declare -A titles=(
    [sdk-standard]="SDK, standard, 3" [sdk-adaptive]="SDK, adaptive, 4"
    [aws-law]="paceline, the published law, 4" [paced]="paceline, the paced law, 4" [bulk]="paceline, bulk"
    [fixed]="a client that knows the limit"
    [boto3-legacy]="boto3, legacy, 5" [boto3-standard]="boto3, standard, 3" [boto3-adaptive]="boto3, adaptive, 4"
)
here="$PWD/adapters/aws/compare"
place="$CARGO_TARGET_DIR/s3" # what is set up, and is kept
boto="boto3==1.44.5"
[[ -f "$here/$limiter.conf.in" ]] || { printf 'no limiter %s: nginx or haproxy\n' "$limiter" >&2; exit 2; }

run="$(mktemp -d)"
chmod 755 "$run"
started=()
# shellcheck disable=SC2317 # reached by the trap
stop() {
    local pid
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    started=()
}
trap 'stop; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM

# installed PROGRAM: prints its path. What is not installed is unpacked from Debian's packages, which starts no daemon.
installed() {
    local found deb
    found="$(command -v "$1" || true)"
    if [[ -z "$found" ]]; then
        found="$place/root/usr/sbin/$1"
        if [[ ! -x "$found" ]]; then
            mkdir -p "$place/debs" "$place/root"
            (cd "$place/debs" && { apt-get download -qq -o APT::Sandbox::User=root "$1" ||
                { apt-get update -qq && apt-get download -qq -o APT::Sandbox::User=root "$1"; }; }) >&2
            for deb in "$place"/debs/*.deb; do dpkg-deb -x "$deb" "$place/root"; done
        fi
    fi
    printf '%s\n' "$found"
}

set_up() {
    mkdir -p "$place"
    nginx="$(installed nginx)"
    [[ "$limiter" != haproxy ]] || haproxy="$(installed haproxy)"
    if [[ "$*" == *boto3-* && ! -x "$place/venv/bin/python" ]]; then
        python3 -m venv "$place/venv"
        "$place/venv/bin/pip" install --quiet "$boto"
    fi
    cargo build --release --manifest-path adapters/Cargo.toml -p paceline-aws --example copy_many
    copy_many="$CARGO_TARGET_DIR/release/examples/copy_many"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# await_port PORT: whether something listens there within 20 s.
await_port() {
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        # shellcheck disable=SC2188 # opening it is the test
        (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    printf 'nothing listens on port %s\n' "$1" >&2
    return 1
}

# filled FILE DIR: prints it with its blanks filled in.
filled() {
    sed -e "s|@DIR@|$2|; s|@HERE@|$here|; s|@STUB@|$stub|; s|@LIMITER@|${port:-}|; s|@RATE@|$rate|; s|@BURST@|$burst|" "$1"
}

# start_nginx FILE DIR PORT
start_nginx() {
    filled "$1" "$2" >"$2/nginx.conf"
    "$nginx" -p "$2" -e "$2/error.log" -c "$2/nginx.conf" &
    started+=("$!")
    await_port "$3"
}

start_stub() {
    stub="$(free_port)"
    mkdir -p "$run/stub"
    start_nginx "$here/stub.conf.in" "$run/stub" "$stub"
}

# start_limiter DIR: with nothing used up and an empty log.
start_limiter() {
    mkdir -p "$1"
    port="$(free_port)"
    if [[ "$limiter" == haproxy ]]; then
        filled "$here/haproxy.conf.in" "$1" >"$1/haproxy.conf"
        "$haproxy" -db -f "$1/haproxy.conf" >"$1/access.log" 2>"$1/error.log" &
        started+=("$!")
        await_port "$port"
    else
        start_nginx "$here/nginx.conf.in" "$1" "$port"
    fi
}

# stop_last SIGNAL: ends what was started last, which writes its log down.
stop_last() {
    local last=$((${#started[@]} - 1))
    kill -"$1" "${started[last]}"
    wait "${started[last]}" || true
    unset 'started[last]'
}

# client MODE ENDPOINT COPIES: becomes the program that makes them.
client() {
    case "$1" in
    boto3-*) exec timeout "$longest" "$place/venv/bin/python" "$here/boto_copy.py" "$2" "${1#boto3-}" "$3" "$workers" ;;
    *) exec timeout "$longest" "$copy_many" --endpoint "$2" --mode "$1" --copies "$3" --workers "$workers" --rate "$rate" ;;
    esac
}

# copy MODE ENDPOINT: all clients at once; whether all ended in time.
copy() {
    local number part ended=0 pids=()
    for ((number = 0; number < clients; number++)); do
        part=$(((copies + number) / clients))
        client "$1" "$2" "$part" >&2 &
        pids+=("$!")
    done
    started+=("${pids[@]}")
    for part in "${pids[@]}"; do wait "$part" || ended=1; done
    started=("${started[@]:0:${#started[@]}-clients}")
    return "$ended"
}

# shellcheck disable=SC2086 # words on purpose
(($# > 0)) || set -- $all_modes
[[ "$limiter" == nginx ]] || set -- fixed "$@"
set_up "$@"
start_stub

# Without a limit: what the machine manages.
printf 'without a limit: ' >&2
began="$EPOCHREALTIME"
copy sdk-standard "http://127.0.0.1:$stub"
free="$(awk -v c="$copies" -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", c / (b - a) }')"

# At nginx by its settings; elsewhere what a client that knows the limit takes, measured below.
ideal=""
[[ "$limiter" != nginx ]] || ideal="$(awk -v c="$copies" -v r="$rate" -v b="$burst" 'BEGIN { printf "%.1f", (c - b) / r }')"
slow=$((free < 3 * rate))
share=6
((workers * clients > 64)) || share=2
rows="" status=0
for mode; do
    logs=()
    for ((number = 1; number <= runs; number++)); do
        start_limiter "$run/$mode-$number"
        printf '%s: ' "$mode" >&2
        copy "$mode" "http://127.0.0.1:$port" || status=1
        if [[ "$limiter" == haproxy ]]; then stop_last USR1; else stop_last QUIT; fi
        logs+=("$run/$mode-$number/access.log")
    done
    checked=()
    ((slow)) || [[ "$mode" != bulk ]] || checked=(--check "$share" "$ideal")
    row="$(python3 "$here/table.py" "${titles[$mode]}" "$copies" "${checked[@]}" "${logs[@]}")" || status=1
    rows+="$row"$'\n'
    [[ "$mode" != fixed ]] || ideal="$(awk -F'|' '{ print $7 + 0 }' <<<"$row")"
done

printf '\n%s copies by %s client processes of %s workers, %s a second by %s; %s s is ideal; load %s at the end\n' \
    "$copies" "$clients" "$workers" "$rate" "$limiter" "$ideal" "$(cut -d' ' -f1 /proc/loadavg)"
printf 'without a limit the machine makes %s copies a second' "$free"
if ((slow)); then
    printf ': less than three times the limit, so it is the bottleneck. Nothing is checked.\n\n'
else
    printf '\n\n'
fi
printf 'medians of %s runs, and their range\n\n' "$runs"
printf '| mode, sends at most | copied | failed | requests | throttled | seconds | fewest copied in a second |\n'
printf '|---|---|---|---|---|---|---|\n%s' "$rows"
exit "$status"
