#!/usr/bin/env python3
"""Weakens every memory ordering of the crate in turn, and tears every read-modify-write into a load
and a store, and runs the models on each. Fails if the models notice nothing, unless
ci/orderings.txt says why.

It finds the sites itself: an ordering that it cannot attribute to one is an error, and so is an
entry of the list that fits none. Arguments are files to do alone; `--list` only prints the sites.
What was caught is kept in target/orderings, and not done again while its file has the same code,
but for its tests.
`--listed` judges what is listed instead, which takes all models each time, and fails if one of
these is caught.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target/orderings"
TREE = WORK / "tree"
EXCUSES = ROOT / "ci/orderings.txt"
# What stands for the atomics in models and tests, or names them.
NO_SITES = {"crates/core/src/atomic/sync.rs"}
ORDERING = re.compile(r"\b(Relaxed|Acquire|Release|AcqRel|SeqCst)\b")
IMPORT = re.compile(r"\b(?:atomic|seam|super)::sync::|\bsync::atomic\b|\bportable_atomic\b")
CALL = re.compile(r"\.(load|store|swap|fetch_\w+|compare_exchange(?:_weak)?)\s*\(|\b(fence)\s*\(")
WEAKER = {"Acquire": ["Relaxed"], "Release": ["Relaxed"], "AcqRel": ["Acquire", "Release"],
          "SeqCst": ["AcqRel"], "Relaxed": []}


def code_of(text):
    """The text with comments, strings and test modules blanked, at the same offsets."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r'//[^\n]*|"(?:[^"\\]|\\.)*"', blank, text)
    for test in reversed(list(re.finditer(r"#\[cfg\((?:all\()?test\b[^\n]*\n\s*mod \w+ \{", text))):
        end = closing(text, test.end() - 1)
        text = text[: test.start()] + re.sub(r"[^\n]", " ", text[test.start() : end]) + text[end:]
    return re.sub(r"\buse [^;]*;", blank, text)


def closing(text, opening):
    """The offset right after the bracket that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0:
            return at + 1
    raise SystemExit("unbalanced brackets")


def mutations(file):
    """Yields (key, changed text) for each way to weaken a site of `file`."""
    text = (ROOT / file).read_text()
    if not IMPORT.search(text):
        return
    code = code_of(text)
    attributed, seen = set(), {}
    for call in CALL.finditer(code):
        end = closing(code, call.end() - 1)
        orders = [(m.start() + call.end(), m.group()) for m in ORDERING.finditer(code[call.end() : end])]
        if not orders:
            continue  # not an atomic's method
        name = call.group(1) or call.group(2)
        orders = orders[-2:] if name.startswith("compare") else orders[-1:]
        attributed.update(at for at, _ in orders)
        function = re.findall(r"\bfn (\w+)", code[: call.start()])[-1]
        owner = re.findall(r"(?m)^impl(?:<[^>{]*>)? (\w+)", code[: call.start()])
        function = "::".join(owner[-1:] + [function])
        site = " ".join(code[call.start() : end].split()).replace("( ", "(").replace(", )", ")")
        site = f"{file} {function} {site}"
        seen[site] = seen.get(site, 0) + 1
        if seen[site] > 1:
            site += f" ({seen[site]})"
        if name == "fence":
            yield f"{site}: removed", text[: call.start()] + "()" + text[end:]
            continue
        for at, order in orders:
            half = " on failure" if name.startswith("compare") and at == orders[-1][0] else ""
            for weaker in WEAKER[order]:
                if half and weaker in ("Release", "AcqRel"):
                    raise SystemExit(f"{site}: no such ordering of a failure")
                yield f"{site}: {order} -> {weaker}{half}", text[:at] + weaker + text[at + len(order) :]
        if name not in ("load", "store"):
            torn = "torn_exchange" if name.startswith("compare") else name.replace("fetch", "torn")
            at = code.index(name, call.start())
            changed = text[:at] + torn + text[at + len(name) :]
            changed = re.sub(r"(?m)^( *)use (?=(?:crate::atomic|crate::seam|super)::sync::)",
                             r"\1#[allow(unused_imports)]\n\1use crate::seam::sync::{Torn as _, TornFetch as _};\n\1use ", changed)
            yield f"{site}: torn", changed
    for order in ORDERING.finditer(code):
        if order.start() not in attributed:
            line = code.count("\n", 0, order.start()) + 1
            raise SystemExit(f"{file}:{line}: an ordering of no site that this script knows")


def excuses():
    """The keys of ci/orderings.txt."""
    return {line for line in EXCUSES.read_text().splitlines() if line.startswith(("src/", "crates/"))}


def copied_tree():
    """A copy of what the models need, so that edits do not change what is judged."""
    subprocess.run(["rm", "-rf", TREE], check=True)
    TREE.mkdir(parents=True)
    copy = "git ls-files -z Cargo.toml Cargo.lock crates src loom-tests | tar --null -T - -c | tar -xmC"
    subprocess.run(["bash", "-euo", "pipefail", "-c", f"{copy} {TREE}"], cwd=ROOT, check=True)
    manifest = (TREE / "Cargo.toml").read_text()
    manifest = re.sub(r"(?ms)^\[dev-dependencies\].*?(?=^\[)", "", manifest)
    manifest = re.sub(r"(?ms)^\[\[example\]\].*?(?=^\[|\Z)", "", manifest)
    manifest = re.sub(r"(?m)^members = .*", 'members = ["crates/core", "loom-tests"]', manifest)
    manifest = re.sub(r"(?m)^default-members = .*\n", "", manifest)
    (TREE / "Cargo.toml").write_text(manifest)


class TooLong(Exception):
    """The models did not end within ten times what they take on the unchanged code."""


def built(narrow):
    """Builds the models, and returns the binary."""
    flags = "--cfg loom --cfg narrow" if narrow else "--cfg loom"
    env = dict(os.environ, RUSTFLAGS=flags, CARGO_PROFILE_RELEASE_LTO="false",
               CARGO_PROFILE_RELEASE_CODEGEN_UNITS="16", CARGO_INCREMENTAL="1",
               CARGO_TARGET_DIR=str(WORK / ("narrow" if narrow else "wide")))
    run = ["cargo", "test", "--release", "-p", "loom-tests", "--features", "strategies", "--lib", "--no-run", "--message-format=json"]
    built = subprocess.run(run, cwd=TREE, env=env, capture_output=True, text=True)
    if built.returncode:
        raise SystemExit(f"it does not build:\n{built.stderr[-2000:]}")
    return re.findall(r'"executable":"([^"]+)"', built.stdout)[-1]


def models(binary, filters, limit=None):
    """Runs the models that match until one fails: "passed", or that one. Whatever is neither ends the
    script."""
    # One at a time: the threads of a process wait for each other where models make their stacks.
    env = dict(os.environ, RUST_BACKTRACE="0", RUST_TEST_THREADS="1")
    run = subprocess.Popen([binary, "--include-ignored", *filters], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    late = []
    timer = threading.Timer(limit, lambda: (late.append(True), run.kill())) if limit else None
    if timer:
        timer.start()
    said = []
    try:
        for line in run.stdout:
            said.append(line)
            if failed := re.match(r"test (\S+) .*FAILED", line):
                run.kill()
                return failed.group(1)
        if run.wait() == 0 and not any(" 0 passed" in line for line in said):
            return "passed"
    finally:
        if timer:
            timer.cancel()
    if late:
        raise TooLong
    raise SystemExit(f"no model ran to its end:\n{''.join(said)[-2000:]}")


def main():
    asked = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    files = asked or sorted(str(path.relative_to(ROOT)) for top in ("crates/core/src", "src")
                            for path in (ROOT / top).rglob("*.rs") if "tests" not in path.parts and path.name != "tests.rs")
    todo = {file: list(mutations(file)) for file in files if file not in NO_SITES}
    todo = {file: changes for file, changes in todo.items() if changes}
    excused, listed = excuses(), "--listed" in sys.argv
    keys = {key for changes in todo.values() for key, _ in changes}
    stale = {key for key in excused if not asked or key.split()[0] in asked} - keys
    if stale:
        raise SystemExit("no such site any more:\n" + "\n".join(sorted(stale)))
    if "--list" in sys.argv:
        print("\n".join(sorted(keys)), f"\n{len(keys)} weakenings in {len(todo)} files")
        return
    WORK.mkdir(parents=True, exist_ok=True)
    known_file = WORK / "caught.json"
    known = json.loads(known_file.read_text()) if known_file.exists() else {}
    copied_tree()
    took, missed, unneeded = {}, [], []
    unchanged = {}
    for narrow in (False, True):
        unchanged[narrow] = WORK / f"unchanged-{'narrow' if narrow else 'wide'}"
        shutil.copy(built(narrow), unchanged[narrow])

    def seconds(filters, narrow):
        """How long some models take on the code as it is."""
        run = (narrow, *filters)
        if run not in took:
            began = time.monotonic()
            if (failed := models(unchanged[narrow], filters)) != "passed":
                raise SystemExit(f"{failed} fails on the code as it is")
            took[run] = time.monotonic() - began
        return took[run]

    for file, changes in todo.items():
        original = (ROOT / file).read_text()
        digest = hashlib.sha256(" ".join(code_of(original).split()).encode()).hexdigest()
        named = sorted(set(re.findall(r"`(\w+::\w+)`", original)) & MODELS)
        # The models that the file names, one after the other from the shortest, and then all of them.
        runs = sorted(((["--exact", name], False) for name in named), key=lambda run: seconds(*run))
        runs += [(["quota::"], True)] if file.endswith("retry_quota.rs") else []
        runs += [([], False)]
        for key, changed in changes:
            if (key in excused) != listed or known.get(key) == digest:
                continue
            (TREE / file).write_text(changed)
            by, too_long, binaries = None, [], {}
            for filters, narrow in runs:
                try:
                    binaries[narrow] = binaries.get(narrow) or built(narrow)
                    by = models(binaries[narrow], filters, 10 * max(seconds(filters, narrow), 1))
                except TooLong:
                    too_long.append(" ".join(filters))
                    continue
                if by != "passed":
                    break
            if by in (None, "passed") and too_long:
                raise SystemExit(f"{key}: not judged, since these did not end: {', '.join(too_long)}")
            by = None if by == "passed" else by
            if by and key in excused:
                unneeded.append(key)
            elif by:
                known[key] = digest
                known_file.write_text(json.dumps(known, indent=0))
            elif not listed:
                missed.append(key)
            print("caught by " + by if by else "argued" if listed else "MISSED", key, flush=True)
        (TREE / file).write_text(original)
    print(f"{len(keys)} weakenings, {len(excused & keys)} listed, {len(missed)} missed")
    if unneeded:
        print("listed, but caught:", *unneeded, sep="\n")
    if missed:
        print("not caught:", *missed, sep="\n")
    sys.exit(bool(missed or unneeded))


MODELS = {f"{path.stem}::{name}" for path in (ROOT / "loom-tests/src").glob("*.rs")
          for name in re.findall(r"(?m)^fn (\w+)\(\) \{", path.read_text())}

main()
