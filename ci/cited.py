#!/usr/bin/env python3
"""Lists the sentences of ci/cited.txt that no code implements, and the code of the published rules that cites none.

A comment `//= SOURCE: sentence` stands beside the code; further lines begin with `//=` too. Fails if a
sentence has no code, or a comment cites none of the list.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("AWS", "Smithy", "botocore")
# All functions here are rules of the publication.
RULES = [
    "crates/core/src/law/aws.rs",
    "crates/core/src/law/cubic.rs",
    "crates/core/src/atomic/retry_quota.rs",
    "src/backoff.rs",
]


def cited(path):
    """Yields each citation of a file, with the number of its last line."""
    text, last = [], 0
    for number, line in enumerate(path.read_text().splitlines() + [""], 1):
        found = re.match(r"\s*//= ?(.*)", line)
        begins = found and re.match(rf"({'|'.join(SOURCES)}): ", found[1])
        if text and (not found or begins):
            yield " ".join(text), last
            text = []
        if found:
            text.append(found[1].strip())
            last = number


def without(path, lines):
    """Yields the functions of a file, up to its tests, that have no citation above or in them."""
    code = path.read_text().split("\n#[cfg(test)]\n")[0].splitlines()
    starts = [n for n, line in enumerate(code, 1) if re.match(r"\s*(pub(\(.*?\))? )?(const )?fn ", line)]
    for start, end in zip(starts, starts[1:] + [len(code)]):
        first = start
        while first > 1 and re.match(r"\s*(//|#\[)", code[first - 2]):
            first -= 1
        if not any(first <= line < end for line in lines):
            yield re.search(r"fn (\w+)", code[start - 1])[1]


def main():
    lines = [line for line in (ROOT / "ci/cited.txt").read_text().splitlines() if not line.startswith("#")]
    wanted = [line for line in lines if not re.match(r"\w+: -", line)]
    places, wrong = {}, []
    for path in sorted([*(ROOT / "crates/core/src").rglob("*.rs"), *(ROOT / "src").rglob("*.rs")]):
        name = str(path.relative_to(ROOT))
        for text, line in cited(path):
            places.setdefault(text, []).append((name, line))
            if text not in wanted:
                wrong.append(f"{name}:{line} cites what the list has not: {text}")
    missing = [text for text in wanted if text not in places]
    for text in wanted:
        print(f"{text}\n    {', '.join(f'{name}:{line}' for name, line in places.get(text, [])) or 'NO CODE'}")
    for line in lines:
        if line not in wanted:
            print(f"not code: {line}")
    print("\nfunctions of the published rules without a sentence, which are how and not what:")
    for name in RULES:
        at = [line for found in places.values() for place, line in found if place == name]
        print(f"    {name}: {', '.join(without(ROOT / name, at))}")
    for line in wrong + [f"no code: {text}" for text in missing]:
        print(line, file=sys.stderr)
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
