#!/usr/bin/env python3
"""Lists each public item of `api/` with how many files of adapters, examples, guides (and READMEs),
benches, and tests (with fuzz targets and models) name it. `ci/users.py --lonely` lists those that no adapter, example
or guide names.

An item is looked for by its name, as a word: one that is a common word has too many users."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What the derives and the traits of `core` make.
DERIVED = {
    "clone", "eq", "fmt", "hash", "default", "from", "cmp", "partial_cmp", "drop", "deref", "as_ref", "into_iter",
    "serialize", "deserialize", "source", "try_from", "from_str", "Err", "Error", "next", "poll", "Output", "Item",
    "IntoFuture", "into_future", "borrow", "sum", "index", "add", "sub", "mul",
}
KINDS = [
    ("adapters", r"^adapters/[^/]+/(src|examples)/.*\.rs$"),
    ("examples", r"^examples/.*\.rs$"),
    ("guides", r"^(src/guide/|README|adapters/.*\.md|(crates/core/)?src/lib\.rs|examples/.*\.md)"),
    ("benches", r"^benches/.*\.rs$"),
    ("tests", r"^((tests|fuzz|loom-tests|shuttle-tests|stall-tests)/|adapters/[^/]+/tests/).*\.rs$"),
]


def plain(path):
    """Returns a path without its generics."""
    while (bare := re.sub(r"(::)?<[^<>]*>", "", path)) != path:
        path = bare
    return path


def items():
    """Returns the kind of each item by its path."""
    found = {}
    listed = "".join((ROOT / f"api/{name}.txt").read_text() for name in ("paceline-core", "paceline"))
    for line in listed.splitlines():
        line = plain(re.sub(r"^(#\[[^\]]*\] )+", "", line).replace("->", ""))
        match = re.match(r"pub (?:const |unsafe |async )*(fn|struct|enum|trait|type|mod|macro) paceline(?:_core)?::(\w+(?:::\w+)*)", line)
        # Variants and fields have no keyword: they stand with their type.
        if match and match[2].split("::")[-1] not in DERIVED:
            found.setdefault(match[2], match[1])
    return found


def main():
    flags = set(sys.argv[1:])
    files = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    words = {kind: {} for kind, _ in KINDS}
    for file in files:
        for kind, pattern in KINDS:
            if re.search(pattern, file) and (ROOT / file).exists():
                for word in set(re.findall(r"\w+", (ROOT / file).read_text(errors="ignore"))):
                    words[kind].setdefault(word, []).append(file)
                break
    shown = 0
    print("| item | " + " | ".join(kind for kind, _ in KINDS) + " |")
    print("|---" * (len(KINDS) + 1) + "|")
    for path, kind in sorted(items().items()):
        name = path.split("::")[-1]
        users = [len(words[of].get(name, ())) for of, _ in KINDS]
        if kind == "mod" or ("--lonely" in flags and any(users[:3])):
            continue
        shown += 1
        print(f"| {kind} {path} | " + " | ".join(str(count or "") for count in users) + " |")
    print(f"\n{shown} items")


if __name__ == "__main__":
    main()
