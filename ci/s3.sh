#!/usr/bin/env bash
# The real SDKs against a real S3 server behind a real rate limiter: 4,003 copies in each mode, counted at the proxy.
# Sets up what it needs in the target folder, from package registries; leaves nothing running. Arguments pick modes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

copies="${COPIES:-4003}" workers="${WORKERS:-64}" rate="${RATE:-100}" burst="${BURST:-100}"
longest=150 # seconds for one mode
all_modes="sdk-standard sdk-adaptive aws-law paced boto3-legacy boto3-standard boto3-adaptive"
declare -A titles=(
    [sdk-standard]="SDK, standard, 3" [sdk-adaptive]="SDK, adaptive, 4"
    [aws-law]="paceline, the published law, 4" [paced]="paceline, the paced law, 4"
    [boto3-legacy]="boto3, legacy, 5" [boto3-standard]="boto3, standard, 3" [boto3-adaptive]="boto3, adaptive, 4"
)
here="$PWD/adapters/aws/compare"
place="$CARGO_TARGET_DIR/s3" # what is set up, and is kept
moto="moto[s3,server]==5.2.5" boto="boto3==1.44.5"

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

# unpack PACKAGE...: puts Debian's packages into the place, so that the system starts no daemon of theirs.
unpack() {
    mkdir -p "$place/debs" "$place/root"
    (cd "$place/debs" && { apt-get download -qq -o APT::Sandbox::User=root "$@" || { apt-get update -qq && apt-get download -qq -o APT::Sandbox::User=root "$@"; }; }) >&2
    local deb
    for deb in "$place"/debs/*.deb; do dpkg-deb -x "$deb" "$place/root"; done
}

set_up() {
    mkdir -p "$place"
    nginx="$(command -v nginx || true)"
    [[ -n "$nginx" ]] || nginx="$place/root/usr/sbin/nginx"
    [[ -x "$nginx" ]] || unpack nginx
    if [[ ! -x "$place/venv/bin/moto_server" ]]; then
        python3 -m venv "$place/venv"
        "$place/venv/bin/pip" install --quiet "$moto" "$boto"
    fi
    cargo build --manifest-path adapters/Cargo.toml -p paceline-aws --example copy_many
    copy_many="$CARGO_TARGET_DIR/debug/examples/copy_many"
}

free_port() {
    "$place/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
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

start_server() {
    server="$(free_port)"
    "$place/venv/bin/moto_server" -H 127.0.0.1 -p "$server" >"$run/server.log" 2>&1 &
    started+=("$!")
    await_port "$server"
    "$copy_many" --endpoint "http://127.0.0.1:$server" --mode seed
}

# start_proxy MODE: with a full bucket and an empty log.
start_proxy() {
    local dir="$run/$1"
    mkdir -p "$dir"
    proxy="$(free_port)"
    sed -e "s|@DIR@|$dir|; s|@HERE@|$here|; s|@SERVER@|$server|; s|@PROXY@|$proxy|; s|@RATE@|$rate|; s|@BURST@|$burst|" \
        "$here/nginx.conf.in" >"$dir/nginx.conf"
    "$nginx" -p "$dir" -e "$dir/error.log" -c "$dir/nginx.conf" &
    started+=("$!")
    await_port "$proxy"
}

# ended: waits for what was started last. A signal is heard meanwhile, as it would not be behind a program in front.
ended() {
    local last=$((${#started[@]} - 1)) came=0
    wait "${started[last]}" || came=$?
    unset 'started[last]'
    return "$came"
}

# copy MODE ENDPOINT: becomes the program that does it.
copy() {
    case "$1" in
    boto3-*) exec timeout "$longest" "$place/venv/bin/python" "$here/boto_copy.py" "$2" "${1#boto3-}" "$copies" "$workers" ;;
    *) exec timeout "$longest" "$copy_many" --endpoint "$2" --mode "$1" --copies "$copies" --workers "$workers" ;;
    esac
}

set_up
start_server
ideal="$(awk -v c="$copies" -v r="$rate" -v b="$burst" 'BEGIN { printf "%.1f", (c - b) / r }')"
rows="" status=0
declare -A seconds=()
# shellcheck disable=SC2086 # words on purpose
(($# > 0)) || set -- $all_modes
for mode; do
    start_proxy "$mode"
    printf '%s: ' "$mode" >&2
    copy "$mode" "http://127.0.0.1:$proxy" >&2 &
    started+=("$!")
    ended || status=1
    kill -QUIT "${started[-1]}" # it writes its log down
    ended || true
    checked=()
    [[ "$mode" != paced ]] || checked=(--check "$rate")
    row="$("$place/venv/bin/python" "$here/table.py" "$run/$mode/access.log" "${titles[$mode]}" "$copies" "${checked[@]}")" || status=1
    rows+="$row"$'\n'
    seconds["$mode"]="$(awk -F'|' '{ print $7 + 0 }' <<<"$row")"
done
if [[ -n "${seconds[paced]:-}" && -n "${seconds[sdk-adaptive]:-}" ]]; then
    awk -v ours="${seconds[paced]}" -v theirs="${seconds[sdk-adaptive]}" 'BEGIN { exit !(ours < theirs) }' ||
        { printf 'paced: took no less time than the SDK in adaptive mode\n' >&2; status=1; }
fi

printf '\n%s copies by %s workers, %s a second after a burst of %s; %s s is ideal; load %s at the end\n\n' \
    "$copies" "$workers" "$rate" "$burst" "$ideal" "$(cut -d' ' -f1 /proc/loadavg)"
printf '| mode, sends at most | copied | failed | requests | throttled | seconds | fewest copied in a second |\n'
printf '|---|---|---|---|---|---|---|\n%s' "$rows"
exit "$status"
