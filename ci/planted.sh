#!/usr/bin/env bash
# Old faults, planted again one by one: the whole systems of fuzz/tests/systems.rs must find each.
# `ci/planted.sh` plants all, `ci/planted.sh D5 K7` some, `ci/planted.sh --check` only looks whether each still fits the
# code. A patch that fits nothing fails, and so does one that is not found. Takes a minute for each: the systems that were
# written for these faults come first, those at random only if they find nothing.
#
# Where the code has no place for a fault any more, its equivalent is planted. D1: what is promised bars requests. D2: a set
# takes all its places at once, and what is promised and never claimed is neither written off nor moved up; D5 is the second
# half of that. D3: more is let go than is left. D4: a set that is refused keeps what it has sent. D6: no weight is refused
# for a limit. D13: a debit counts beside its report. D19: a refill that nothing is heard of never rolls. D21: tries make no
# room in the bucket. K1: an idle time is no end of a drought. K4: what is given up is not counted. K7: as the first part of
# D2. K8: a retry that was paid for and not sent gives nothing back.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out="$CARGO_TARGET_DIR/planted"
tree="$out/tree"

# Each line: the fault, a file, and a change in Perl. Lines with the same name, one after the other, are one patch.
declared=crates/core/src/atomic/send_rate/reports.rs
limits=crates/core/src/atomic/send_rate/limits.rs
patches() {
    cat <<PATCHES
D1 $declared s/limits\\.barred\\(elapsed, sent, weight\\)/limits.barred(elapsed, sent.wrapping_add(self.unclaimed(elapsed)), weight)/
D2 crates/core/src/set/guard.rs s/if wait\\.is_some\\(\\) \\&\\& \\(is_early/if ahead > LEAST || (is_early/
D2 $limits s/unclaimed\\.saturating_sub\\(written_off\\)/unclaimed.saturating_add(written_off.min(0))/
D2 $declared s/if stuck > 0 \\&\\& /if stuck > u64::MAX - 1 \\&\\& /
D3 crates/core/src/law/declared/ledger.rs s/\\(others \\+ i128::from\\(self\\.kept\\)\\)/(i128::from(self.kept) - 8 * others - amount(self.seen.heaviest))/
D4 crates/core/src/set/mod.rs s/match self\\.binding\\(now, weights, class\\) \\{\\n\\s*Some\\(binding\\) =>/match self.binding(now, weights, class).filter(|_| false) {\\n            Some(binding) =>/
D4 crates/core/src/atomic/send_rate/settle.rs s/engaged\\.reports\\(\\)\\.unsend\\(permit\\);//
D5 $limits s/unclaimed\\.saturating_sub\\(written_off\\)/unclaimed.saturating_add(written_off.min(0))/
D5 $declared s/if stuck > 0 \\&\\& /if stuck > u64::MAX - 1 \\&\\& /
D6 $declared s/Some\\(capacity\\) if weight > capacity =>/Some(capacity) if weight > capacity \\&\\& capacity == 0 =>/
D13 $declared s/\\(true, false, Ok\\(more\\)\\) = \\(permit\\.is_ordered\\(\\), is_counted, /(true, _, Ok(more)) = (permit.is_ordered(), is_counted, /
D19 crates/core/src/law/declared/ledger.rs s/if now < over \\{\\n(\\s*)return self\\.probed/if now < over || !resets {\\n\$1return self.probed/
D21 crates/core/src/atomic/send_rate/ask.rs s/engaged\\.line\\(\\)\\.make_room\\(weight\\);//g
K1 src/strategy/adaptive/admit.rs s/drought\\.resumed\\(now, longest\\);//
K4 crates/core/src/atomic/send_rate/record.rs s/let outcome = self\\.law\\.note_unserved\\(outcome\\);/if outcome == Outcome::Unknown { return Recorded::Counted; }\\n\$&/
K7 crates/core/src/set/guard.rs s/if wait\\.is_some\\(\\) \\&\\& \\(is_early/if ahead > LEAST || (is_early/
K8 src/strategy/adaptive.rs s/(fn record_cancelled.*?)self\\.engine\\.give_back\\(\\&mut token\\);/\$1let _ = \\&mut token;/s
Q1 src/strategy/engine.rs s/Weighed::Counts if attempt >= max/Weighed::Counts if attempt > max/
Q2 src/strategy/engine.rs s/Some\\(permit\\) => self\\.add\\(permit\\.cost\\(\\)\\),/Some(_) => self.credit(),/
Q3 src/strategy/engine.rs s/delay >= \\*left\\)/delay > *left \\&\\& left.is_zero())/
Q3 src/operation/attempts.rs s/until\\.min\\(by\\)/until.max(by)/
Q4 src/strategy/turn.rs s/rest\\.check\\(places\\.deadline\\(\\)\\)\\?;//
Q5 crates/core/src/atomic/send_rate/lease.rs s/self\\.last\\.store\\(cursor\\.to_bits\\(\\), Relaxed\\);\\n\\s*self\\.count\\(cursor\\);//
PATCHES
}

# prepare: a copy of what the test is built from.
prepare() {
    rm -rf "$tree"
    mkdir -p "$tree"
    git ls-files -z --cached --others --exclude-standard Cargo.toml Cargo.lock README.md crates src tests/laws/models fuzz |
        tar --null -T - -cf - | tar xmf - -C "$tree"
    sed -i -E -e 's/^members = .*/members = ["crates\/core"]/' -e '/^default-members/d' "$tree/Cargo.toml"
}

# plant NAME: applies its patches, and fails if one changes nothing.
plant() {
    local name file change before
    while read -r name file change; do
        [[ "$name" == "$1" ]] || continue
        before="$(sha256sum <"$tree/$file")"
        perl -0pi -e "$change" "$tree/$file"
        if [[ "$(sha256sum <"$tree/$file")" == "$before" ]]; then
            printf '%s: the patch fits nothing in %s\n' "$1" "$file" >&2
            return 1
        fi
    done < <(patches)
}

# test_systems [FILTER]: plays the systems, or some of them.
test_systems() {
    CARGO_INCREMENTAL=1 CARGO_PROFILE_RELEASE_OPT_LEVEL=2 cargo test --manifest-path "$tree/fuzz/Cargo.toml" \
        --release --test systems --target-dir "$out/target" "$@"
}

mapfile -t names < <(patches | cut -d' ' -f1 | uniq)
is_check=
[[ "${1:-}" != --check ]] || { is_check=1; shift; }
(($# == 0)) || names=("$@")

status=0
if [[ -z "$is_check" ]]; then
    prepare
    test_systems >"$out/clean.log" 2>&1 || { printf 'the tests fail with nothing planted: %s\n' "$out/clean.log" >&2; exit 1; }
fi
for name in "${names[@]}"; do
    prepare
    plant "$name" || { status=1; continue; }
    [[ -z "$is_check" ]] || continue
    if ! test_systems --no-run >"$out/$name.log" 2>&1; then
        printf '%s: does not build, see %s\n' "$name" "$out/$name.log" >&2
        status=1
    elif test_systems old_faults >>"$out/$name.log" 2>&1 && test_systems >>"$out/$name.log" 2>&1; then
        printf '%s: not found\n' "$name" >&2
        status=1
    else
        printf '%s: found: %s\n' "$name" "$(grep -m1 -oE '^(panic|stopped|gap|not back|door|snapshot|accepted|quota|attempts|late|minted|trickle|overtaken|drought|unused|refused|account|starved): .*' "$out/$name.log")"
    fi
done
exit "$status"
