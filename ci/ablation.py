#!/usr/bin/env python3
"""Switches each rule of the declared law off alone, plays the scenes of examples/declared and 150
random systems that tell little, and prints what gets worse: the table in crates/core/src/law/declared/README.md.

The switches are put into a copy, so the law has none. Arguments are parts to do alone; `--check`
only looks whether each switch fits the code, exactly once. Options after `--` go to the scenes,
`-- --seed 501` if there are none. Takes about two minutes of a processor for each part.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target/ablation"
TREE = WORK / "tree"
LAW = "crates/core/src/law/declared/"
COPIED = ["Cargo.toml", "Cargo.lock", "README.md", "crates", "src", "tests/laws/models", "fuzz", "examples"]

# part, file, text, and what stands for it; `OFF` is true while the part is switched off.
SWITCHES = [
    ("others foreseen", "level", "brought(seen.foreseen(), trips)", "brought(if OFF { 0 } else { seen.foreseen() }, trips)"),
    ("others foreseen", "level", "brought(seen.foreseen(), age.min(seen.trip * 4))",
     "brought(if OFF { 0 } else { seen.foreseen() }, age.min(seen.trip * 4))"),
    ("foreseen for some trips", "level", "let trips = age.min(seen.trip * 2);", "let trips = if OFF { age } else { age.min(seen.trip * 2) };"),
    ("foreseen for some trips", "level", "age.min(seen.trip * 4));", "if OFF { age } else { age.min(seen.trip * 4) });"),
    ("alone below a tenth", "seen", "if self.is_alone() { 0 } else", "if !OFF && self.is_alone() { 0 } else"),
    ("one kept back", "seen", "if self.foreseen() <= 0 {", "if OFF || self.foreseen() <= 0 {"),
    ("more kept for more others", "seen", "one + one * others / (own * FOR_ONE)", "one + if OFF { 0 } else { one * others / (own * FOR_ONE) }"),
    ("L/4 kept at most", "ledger", "amount(self.limit) / MOST_KEPT", "amount(self.limit) / if OFF { 1 } else { MOST_KEPT }"),
    ("31/32 are enough for what is kept back", "level", "own.max(whole - whole / NEARLY)", "own.max(if OFF { whole } else { whole - whole / NEARLY })"),
    ("a sixteenth of a sliding window", "level", "i128::from(ledger.window / SLIDING_PARTS)", "i128::from(ledger.window / if OFF { 1 } else { SLIDING_PARTS })"),
    ("a later one that says more", "hear", "&& self.overtakes()", "&& !OFF && self.overtakes()"),
    ("an older one that says less", "hear", "if next.fresh || left >= next.left", "if OFF || next.fresh || left >= next.left"),
    ("a late answer of the window before", "hear", "let is_past = !next.fresh", "let is_past = !OFF && !next.fresh"),
    ("in flight over a reset", "hear", "let least = if self.next.seen.is_alone() {", "let least = if !OFF && self.next.seen.is_alone() {"),
    ("weight of the heaviest", "seen", ".max(u64::from(weight))", ".max(if OFF { 1 } else { u64::from(weight) })"),
    ("what was sent in a silent window", "hear", "next.fresh && (since_roll ||", "next.fresh && (!OFF && since_roll ||"),
    ("resets intersected", "hear", "next.reset = if next.reset.meets(reset) {", "next.reset = if !OFF && next.reset.meets(reset) {"),
    ("windows by the date", "clock", "let whole = told.refills", "let whole = !OFF && told.refills"),
    ("the reset moved", "infer", "next.moved += 1;", "if OFF { return; } next.moved += 1;"),
    ("sliding", "infer", "if knows && ahead * 2 < refill {", "if !OFF && knows && ahead * 2 < refill {"),
    ("a window that is nearly a usual one", "infer", "let near = signed(next.window / NEAR);", "let near = signed(if OFF { 0 } else { next.window / NEAR });"),
    ("windows learned", "infer", "let is_window = next.resets()", "let is_window = !OFF && next.resets()"),
    ("guess: an exact reset", "infer", "if ahead < next.seen.trip * 2 && unit", "if !OFF && ahead < next.seen.trip * 2 && unit"),
    ("guess: usual windows", "infer", "(_, Some(usual)) if ahead < SOON", "(_, Some(usual)) if !OFF && ahead < SOON"),
    ("a refill is averaged", "infer", "next.window = snapped(own - own / 4 + mean / 4).max(1);",
     "next.window = if OFF { own } else { snapped(own - own / 4 + mean / 4).max(1) };"),
    ("usual windows within 3 %", "infer", "let near = |usual: &&u64| usual.abs_diff(nanos)", "let near = |usual: &&u64| !OFF && usual.abs_diff(nanos)"),
    ("a rise begins a window", "infer", "let rough = self.is_rough(", "let rough = !OFF && self.is_rough("),
    ("a second by the date", "infer", "let is_same = !next.fresh", "let is_same = !OFF && !next.fresh"),
    ("a reset in milliseconds", "infer", "!last.clock.millis && is_heard", "!OFF && !last.clock.millis && is_heard"),
    ("given up", "hear", "if self.next.doubt >= DOUBTS {", "if !OFF && self.next.doubt >= DOUBTS {"),
    ("windows from first use", "hear", "if self.next.opens {", "if !OFF && self.next.opens {"),
    ("asked again where a window lasts", "hear", "if rough {", "if !OFF && rough {"),
    ("of the window before", "hear", "let is_of_it = rough", "let is_of_it = (!OFF && rough)"),
    ("estimates learned", "seen", "if !self.cheaper ||", "if OFF || !self.cheaper ||"),
    ("a token in ten seconds at first", "plan", "let is_guess = is_new", "let is_guess = !OFF && is_new"),
    ("others halved", "ledger", "_ if self.fresh => 0,", "_ if OFF => self.seen.others,\n            _ if self.fresh => 0,"),
    ("a second forgets less", "ledger", "0..=SECOND =>", "0..=SECOND if !OFF =>"),
    ("kept back shrinks", "ledger", "kept: self.kept - self.kept / KEPT_PART", "kept: if OFF { self.kept } else { self.kept - self.kept / KEPT_PART }"),
    ("a silent window brings all back", "ledger", "if resets { 0 } else { unheard }", "if OFF || resets { 0 } else { unheard }"),
    ("σ to ¾, not 1", "seen", "(half * root(half)) >> 32", "(half * if OFF { half } else { root(half) }) >> 32"),
    ("promised charged to the pace", "plan", "- promised.min(amount(ledger.limit))", "- if OFF { 0 } else { promised.min(amount(ledger.limit)) }"),
    ("the first token of a window", "plan", "self.at.saturating_sub(self.lead(rate))", "if OFF { self.at } else { self.at.saturating_sub(self.lead(rate)) }"),
    ("a whole first token", "plan", "let token = if self.seen.is_alone() {", "let token = if !OFF && self.seen.is_alone() {"),
    ("a first token that is missing", "plan", "self.fresh && self.seen.is_alone() && self.at", "!OFF && self.fresh && self.seen.is_alone() && self.at"),
    ("L/W at first", "plan", "now < self.early_until()", "!OFF && now < self.early_until()"),
    ("the end of a window is not known", "plan", "let is_blind = !self", "let is_blind = !OFF && !self"),
    ("no burst beside another limit", "plan", "} else if self.is_contradicted(now) &&", "} else if !OFF && self.is_contradicted(now) &&"),
    ("what does not help", "throttle", "self.unhelped = calm &&", "self.unhelped = !OFF && calm &&"),
    ("asked at once after an hour", "plan", "let unheard = now >=", "let unheard = !OFF && now >="),
    ("15/16 then", "plan", ".scaled(15, 16)", ".scaled(if OFF { 16 } else { 15 }, 16)"),
    ("a service that declares no more", "throttle", "let silent = refused.now", "let silent = !OFF && refused.now"),
    ("another limit", "throttle", "self.contradicted = now", "self.contradicted = if OFF { 0 } else { now }"),
    ("reports say too much", "throttle", "if self.resets() && signed(until)", "if !OFF && self.resets() && signed(until)"),
    ("unclaimed is written off", "../../atomic/send_rate/limits", "unclaimed.saturating_sub(written_off)",
     "unclaimed.saturating_sub(if OFF { 0 } else { written_off })"),
    ("a limit that is not told any more sets no pace", "../../atomic/send_rate/reports", "!ledger.is_old(heard)", "OFF || !ledger.is_old(heard)"),
    ("places move up", "../../atomic/send_rate/reports", "if stuck > 0 &&", "if !OFF && stuck > 0 &&"),
]

WITHOUT = """
extern crate std;
/// Whether a part is switched off.
pub(crate) fn without(part: &str) -> bool {
    static PART: std::sync::OnceLock<std::string::String> = std::sync::OnceLock::new();
    PART.get_or_init(|| std::env::var("WITHOUT").unwrap_or_default()) == part
}
"""


def copy():
    shutil.rmtree(TREE, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COPIED],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, TREE / name)
    manifest = TREE / "Cargo.toml"
    manifest.write_text(re.sub(r"(?m)^(default-)members = .*", r'\1members = ["."]', re.sub(r"(?m)^members = .*", 'members = ["crates/core", "examples"]', manifest.read_text())))
    lib = TREE / "crates/core/src/lib.rs"
    lib.write_text(lib.read_text() + WITHOUT)


def fits():
    """Puts the switches in, and returns whether each has exactly one place."""
    good = True
    for part, name, old, new in SWITCHES:
        file = (TREE / LAW / f"{name}.rs").resolve()
        text = file.read_text()
        count = text.count(old)
        if count != 1:
            print(f"{part}: found {count} times in {file.relative_to(TREE)}: {old}", file=sys.stderr)
            good = False
            continue
        file.write_text(text.replace(old, new.replace("OFF", f'crate::without("{part}")')))
    return good


def run(program, options, part):
    done = subprocess.run([str(program), *options], env={**os.environ, "WITHOUT": part}, capture_output=True, text=True)
    return done.stdout


def scenes(text):
    """The scenes by name: used, throttled in %, Jain's index."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 6 and re.fullmatch(r"[\d.]+", cells[3]):
            jain = float(cells[6]) if re.fullmatch(r"[\d.]+", cells[6]) else 1.0
            found[cells[0]] = (float(cells[3]), float(cells[4].rstrip(" %")), jain)
    return found


def moves(before, after):
    """What a scene loses and gains: use below 0.98, throttles, equal parts; in units that count."""
    worse = max((min(before[0], 0.98) - min(after[0], 0.98)) / 0.02, (after[1] - before[1]) / 0.2, (before[2] - after[2]) / 0.03)
    better = max((min(after[0], 0.98) - min(before[0], 0.98)) / 0.02, (before[1] - after[1]) / 0.2, (after[2] - before[2]) / 0.03)
    return worse, better


def shown(name, before, after):
    parts = []
    for label, digits, old, new, unit in zip("utJ", (2, 1, 2), before, after, (0.02, 0.2, 0.03)):
        if abs(old - new) >= unit:
            parts.append(f"{label} {old:.{digits}f} > {new:.{digits}f}")
    return f"{name} {', '.join(parts)}"


def systems(text):
    fails = re.search(r"(\d+) of \d+ systems fail", text)
    used = re.search(r"used: mean ([\d.]+)", text)
    stops = sum(int(count) for count in re.findall(r"^  (?:stopped|gap): (\d+)", text, re.M))
    return int(fails[1]), stops, float(used[1])


def main():
    arguments = sys.argv[1:]
    if "--help" in arguments:
        print(__doc__)
        return 0
    options = arguments[arguments.index("--") + 1:] if "--" in arguments else ["--seed", "501"]
    arguments = arguments[: arguments.index("--")] if "--" in arguments else arguments
    copy()
    if not fits():
        return 1
    if arguments == ["--check"]:
        return 0
    target = WORK / "target"
    for program in (["-p", "paceline-examples", "--bin", "declared"],
                    ["--manifest-path", "fuzz/Cargo.toml", "--example", "systems"]):
        subprocess.run(["cargo", "build", "--quiet", "--release", *program, "--target-dir", str(target)], cwd=TREE, check=True)
    programs = [(target / "release/declared", ["--law", "Declared", *options]),
                (target / "release/examples/systems", ["--untold", "--systems", "150"])]

    def played(part):
        first, second = (run(program, options, part) for program, options in programs)
        return part, scenes(first), systems(second)

    parts = arguments or list(dict.fromkeys(part for part, *_ in SWITCHES))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(played, ["", *parts])
        _, whole, (fails, stops, used) = next(runs)
        print("| without | worse, better | what moves most | systems that fail; stop or pause; used |\n|---|---|---|---|")
        print(f"| nothing | | | {fails}; {stops}; {used:.3f} |", flush=True)
        for part, after, (fails, stops, used) in runs:
            both = {name: moves(before, after[name]) for name, before in whole.items()}
            worse = sorted((name for name in both if both[name][0] >= 1), key=lambda name: -both[name][0])
            better = sorted((name for name in both if both[name][1] >= 1), key=lambda name: -both[name][1])
            most = [shown(name, whole[name], after[name]) for name in dict.fromkeys([*worse[:3], *better[: max(1, 3 - len(worse))]])]
            print(f"| {part} | {len(worse)}, {len(better)} | {'; '.join(most)} | {fails}; {stops}; {used:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
