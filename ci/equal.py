#!/usr/bin/env python3
"""Lists runs of ten equal lines of code that stand in two places of src, of the adapters' src and of examples. Fails if there are any
beyond those of mere forwarders.

Blank lines, comments, `use` lines and tests are no code. `ci/equal.py FOLDER...` looks at these folders alone."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUN = 10
FOLDERS = r"^(src|crates/[^/]+/src|adapters/[^/]+/src|examples)/"
# What stands in each implementation of a trait, the signature of one method; and the two setters of each layer's builder.
FORWARDERS = [r"^\) -> Window \{$", r"^within: None,$"]


def code(text):
    """Returns the lines of code with their numbers."""
    lines, depth, test, use = [], 0, None, False
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"//.*", "", re.sub(r'"(\\.|[^"\\])*"', '""', line)).strip()
        if test is None and re.match(r"#\[(cfg\((all\()?test|test\]|tokio::test)", bare):
            test = depth
            continue
        depth += bare.count("{") - bare.count("}")
        if test is not None:
            if depth <= test and bare.endswith(("}", ";")):
                test = None
            continue
        use = use or bool(re.match(r"(pub(\([^)]*\))? )?use ", bare))
        if bare and not use:
            lines.append((number, re.sub(r"//.*", "", line).strip()))
        use = use and not bare.endswith(";")
    return lines


def runs(files):
    """Returns each longest run as two places and its lines."""
    seen, found = {}, []
    for file in files:
        lines = code((ROOT / file).read_text())
        for at in range(len(lines) - RUN + 1):
            seen.setdefault(tuple(text for _, text in lines[at : at + RUN]), []).append((file, lines, at))
    covered = set()
    for places in seen.values():
        for (one, left, at), (other, right, to) in zip(places, places[1:]):
            if (one, at, other, to) in covered:
                continue
            length = RUN
            while at + length < len(left) and to + length < len(right) and left[at + length][1] == right[to + length][1]:
                length += 1
            covered.update((one, at + step, other, to + step) for step in range(length))
            found.append((length, f"{one}:{left[at][0]}", f"{other}:{right[to][0]}", [text for _, text in left[at : at + length]]))
    return sorted(found, reverse=True)


def is_own(path):
    """A link is no second place."""
    return path.is_file() and not path.is_symlink()


def main():
    wanted = "|".join(map(re.escape, sys.argv[1:]))
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "*.rs"], capture_output=True, text=True, check=True).stdout.split()
    files = [file for file in files if re.match(FOLDERS, file) and not re.search(r"/tests(/|\.rs$)", file)]
    files = [file for file in files if is_own(ROOT / file) and (not wanted or re.match(wanted, file))]
    bad = [run for run in runs(files) if not any(re.search(allowed, text) for allowed in FORWARDERS for text in run[3])]
    for length, one, other, text in bad:
        print(f"{length:3} lines: {one} and {other}: {text[0]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
